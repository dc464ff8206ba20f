# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on what ages: the known faults that kernel_check tells of, and what programs ask of their host."""

from __future__ import annotations

import ast
from datetime import date, datetime, timedelta, timezone
from typing import Iterator

from dev.gates import Copy

KNOWN_FAULTS = "plugins/module_utils/_concerns/kernel_check/advisories.py"
PROGRAMS = "plugins/module_utils/_programs/"
# What is called with a name or source, the day on which its source was read, and the last day on which that holds.
ADVISORY, PAGE = ("Advisory", "name", "checked", "expires"), ("Page", "reference", "read", "again")
# Longer than this nobody can say that a fault is still as it was described.
LONGEST = timedelta(days=730)


def known_faults_are_current(copy: Copy) -> "list[str]":
    """No entry of the known faults has expired, or holds for more than two years from the day its source was read."""
    return _expired(copy, [name for name in copy.names if name == KNOWN_FAULTS], ADVISORY)


def pages_of_programs_are_current(copy: Copy) -> "list[str]":
    """No page of a program's maintainers is due to be read again, or would not be for more than two years."""
    return _expired(copy, copy.having(".py", below=PROGRAMS), PAGE)


def _expired(copy: Copy, files: "list[str]", form: "tuple[str, ...]") -> "list[str]":
    today = datetime.now(timezone.utc).date()
    return [
        f"{file}:{line}: {name}: {problem}"
        for file in files
        for line, name, checked, expires in _entries(copy.text(file), *form)
        for problem in _problems(checked, expires, today)
    ]


def _entries(text: str, called: str, *keys: str) -> "Iterator[tuple[int, str, str, str]]":
    """Line, name, and the two days of each entry, as they are written."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == called:
            given = {word.arg: word.value for word in node.keywords}
            name, checked, expires = (_text(given.get(key)) for key in keys)
            yield node.lineno, name, checked, expires


def _text(node: "ast.expr | None") -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _problems(checked: str, expires: str, today: date) -> "Iterator[str]":
    try:
        read, last = date.fromisoformat(checked), date.fromisoformat(expires)
    except ValueError:
        yield "its days are no dates such as 2027-06-30"
        return
    if last < today:
        yield f"it expired on {expires}: read its source again, then change the entry or give it new days"
    if read > today:
        yield f"its source was read on {checked}, which is still to come"
    if last - read > LONGEST:
        yield f"it would hold from {checked} to {expires}, longer than two years"
