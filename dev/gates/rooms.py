# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large the parts of the project are, and may be: `python -m dev.gates.rooms` prints it.

rooms.toml has the limits, and what may write to a host.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Any, NamedTuple

import tomllib

from dev import ROOT
from dev.gates import Copy

UTILS = "plugins/module_utils/"
ROOMS: "dict[str, Any]" = tomllib.loads(Path(__file__).with_name("rooms.toml").read_text(encoding="utf-8"))
_AGENT = """import io, zipfile
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
print(*zipfile.ZipFile(io.BytesIO(bundle.build("0"))).namelist(), sep="\\n")"""
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


class Size(NamedTuple):
    """How much there is to read."""

    lines: int
    code: int  # lines of Python without blanks, comments, docstrings and imports
    files: int  # that aren't empty


def path_of(name: str) -> str:
    """A name of rooms.toml, from the root of the project."""
    return name if name.startswith("plugins/") else UTILS + name


def writers(copy: Copy) -> "dict[str, list[str]]":
    """Each row of what may write → its files. A file is in the row that names it most closely."""
    rows: "dict[str, list[str]]" = {row: [] for row in ROOMS["writers"]}
    for name in copy.having(".py", below=UTILS):
        matching = [row for row in rows if name.startswith(path_of(row))]
        if matching:
            rows[max(matching, key=len)].append(name)
    return rows


def size(copy: Copy, names: "list[str]") -> Size:
    """The size of these files together."""
    texts = {name: copy.text(name) for name in names}
    return Size(
        sum(text.count("\n") for text in texts.values()),
        sum(_code(text) for name, text in texts.items() if name.endswith(".py")),
        sum(bool(text) for text in texts.values()),
    )


def _code(text: str) -> int:
    lines: "set[int]" = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.Expr) and is_text):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _agent(copy: Copy) -> "list[str]":
    """The sources that the agent on a host is made of."""
    if f"{UTILS}_host/bundle.py" not in copy.names:
        return []
    listed = subprocess.run(
        [sys.executable, "-c", _AGENT],
        env={"PYTHONPATH": str(copy.root / ".ansible/collections")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    names = {name.partition("/ec2/")[2] for name in listed.stdout.splitlines()}
    return [name for name in copy.names if name in names]


def sizes(copy: Copy) -> "dict[str, Size]":
    """The size of each part that has a limit."""
    parts = {
        "what may write": [name for names in writers(copy).values() for name in names],
        "the installed agent": _agent(copy),
        "plugins": copy.having(".py", below="plugins/"),
        "tests, with their data": copy.having("", below="tests/"),
    }
    return {part: size(copy, names) for part, names in parts.items()}


def rooms_keep_their_size(copy: Copy) -> "list[str]":
    """What may write, the agent, the plugins and the tests are no larger than rooms.toml allows."""
    return [
        f"{part}: {count:,} {unit}, {count - most:,} more than allowed; replace or remove as much of this part,"
        " or raise the limit in dev/gates/rooms.toml and say in the commit what it buys"
        for part, found in sizes(copy).items()
        for unit, most in ROOMS["sizes"][part]["most"].items()
        for count in [getattr(found, unit)]
        if count > most
    ]


def table(copy: Copy) -> str:
    """For each part what there is, what is allowed, and what is wanted."""
    lines = [f"{'':24}{'lines':^24}{'code':^24}{'files':^24}", f"{'':24}" + f"{'is':>8}{'most':>8}{'wanted':>8}" * 3]
    for part, found in sizes(copy).items():
        cells = [
            number
            for unit in Size._fields
            for number in (
                getattr(found, unit),
                *(ROOMS["sizes"][part][limit].get(unit) for limit in ("most", "wanted")),
            )
        ]
        lines.append(f"{part:24}" + "".join(f"{'' if number is None else format(number, ','):>8}" for number in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Copy(ROOT)))
