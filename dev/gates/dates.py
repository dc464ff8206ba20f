# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on what ages: known faults of kernel_check, what programs ask of their host, and all sources.

python -m dev.gates.dates [DAYS]      what is to be read again in the next days, 90 if no number is given
"""

from __future__ import annotations

import ast
import json
import sys
from datetime import date, datetime, timedelta, timezone
from typing import Iterator

from dev import ROOT
from dev.gates import Copy
from dev.gates.references import DAY, SOURCES

KNOWN_FAULTS = "plugins/module_utils/_concerns/kernel_check/advisories.py"
PROGRAMS = "plugins/module_utils/_programs/"
# What is called with a name or source, the day on which its source was read, and the last day on which that holds.
ADVISORY, PAGE = ("Advisory", "name", "checked", "expires"), ("Page", "reference", "read", "again")
# Longer than this nobody can say that a fault is still as it was described.
LONGEST = timedelta(days=730)
TODAY = datetime.now(timezone.utc).date()  # of the whole run, also after midnight
# A page of others is read again after this.
A_YEAR = timedelta(days=365)


def known_faults_are_current(copy: Copy) -> "list[str]":
    """No entry of the known faults has expired, or holds for more than two years from the day its source was read."""
    return _expired(copy, [name for name in copy.names if name == KNOWN_FAULTS], ADVISORY)


def pages_of_programs_are_current(copy: Copy) -> "list[str]":
    """No page of a program's maintainers is due to be read again, or would not be for more than two years."""
    return _expired(copy, copy.having(".py", below=PROGRAMS), PAGE)


def sources_are_current(copy: Copy) -> "list[str]":
    """No page of sources.json was read more than a year ago."""
    return [
        f"{place}: it was to be read again on {day}: read it, correct what follows from it, and give it the new day"
        for day, place in _sources(copy)
        if day < TODAY
    ]


def due(copy: Copy, until: date) -> "list[str]":
    """What is to be read again until a day, the first first."""
    dated = _sources(copy)
    for files, form in ((copy.having(KNOWN_FAULTS), ADVISORY), (copy.having(".py", below=PROGRAMS), PAGE)):
        for file in files:
            for line, name, _read, last in _entries(copy.text(file), *form):
                dated += [(date.fromisoformat(last), f"{file}:{line}: {name}")] if last else []
    return [f"{day} {place}" for day, place in sorted(dated) if day <= until]


def _sources(copy: Copy) -> "list[tuple[date, str]]":
    """When each page of others is to be read again, and its name."""
    known = json.loads(copy.text(SOURCES)) if SOURCES in copy.names else {}
    return [
        (date.fromisoformat(entry["checked"]) + A_YEAR, f"{SOURCES}: {name}")
        for name, entry in known.items()
        if DAY.fullmatch(entry["checked"]) and entry["checked"]
    ]


def _expired(copy: Copy, files: "list[str]", form: "tuple[str, ...]") -> "list[str]":
    return [
        f"{file}:{line}: {name}: {problem}"
        for file in files
        for line, name, checked, expires in _entries(copy.text(file), *form)
        for problem in _problems(checked, expires)
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


def _problems(checked: str, expires: str) -> "Iterator[str]":
    try:
        read, last = date.fromisoformat(checked), date.fromisoformat(expires)
    except ValueError:
        yield "its days are no dates such as 2027-06-30"
        return
    if last < TODAY:
        yield f"it expired on {expires}: read its source again, then change the entry or give it new days"
    if read > TODAY:
        yield f"its source was read on {checked}, which is still to come"
    if last - read > LONGEST:
        yield f"it would hold from {checked} to {expires}, longer than two years"


if __name__ == "__main__":
    DAYS = int(sys.argv[1]) if sys.argv[1:] else 90
    UNTIL = TODAY + timedelta(days=DAYS)
    print("\n".join(due(Copy(ROOT), UNTIL)) or f"Nothing is to be read again in {DAYS} days.")
