# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of environment variables (/etc/default, /etc/sysconfig) and the unit that reads them. PRIVATE.

A variable's text is kept verbatim, with its quotes: what nearmetal didn't add is never quoted
again. Shells source these files, too, so only what both read alike is changed.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

# A whole line "NAME=…"; a line that is continued by a backslash at its end is never changed.
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.ASCII)
_PLAIN = re.compile(r"\"[^\"\\$`]*\"|'[^'\\]*'|[A-Za-z0-9_.,:=+/@-]*", re.ASCII)
_VARIABLE = r"\$([A-Za-z_][A-Za-z0-9_]*)"


def assignment(text: str, name: str) -> Optional[str]:
    """The verbatim text after the last `name=`; None when no line sets it."""
    matches = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return ([None, *(match[2] for match in matches if match and match[1] == name)])[-1]


def words(raw: str) -> Optional[Tuple[str, ...]]:
    """The words of a variable's text; None when quotes or escapes make it more than plain words."""
    if not _PLAIN.fullmatch(raw):
        return None
    return tuple(raw.strip("\"'").split())


def extended(raw: str, word: str) -> Optional[str]:
    """The text with one more word at its end; None when it isn't plain."""
    if words(raw) is None:
        return None
    if raw[:1] in ("'", '"'):
        return f"{raw[:-1]}{' ' if raw[1:-1] else ''}{word}{raw[-1]}"
    return f'"{raw} {word}"' if raw else word


def assigned(text: str, name: str, raw: Optional[str]) -> str:
    """The file's text with `name=raw` in place of its last such line, or at its end; None removes that line."""
    lines = text.splitlines(keepends=True)
    matches = [_LINE.fullmatch(line.strip()) for line in lines]
    places = [number for number, match in enumerate(matches) if match and match[1] == name]
    if not places:
        end = "\n" if text and not text.endswith("\n") else ""
        return text if raw is None else f"{text}{end}{name}={raw}\n"
    line = lines[places[-1]]
    before, after = line[: line.index(name)], line[len(line.rstrip()) :]
    lines[places[-1]] = "" if raw is None else f"{before}{name}={raw}{after}"
    return "".join(lines)


def reads(unit: str) -> Tuple[Tuple[str, ...], Optional[str]]:
    """The environment files that a unit names, in their order, and the variable that its command line ends in."""
    files: List[str] = []
    variable = None
    for line in unit.splitlines():
        key, _sign, value = line.strip().partition("=")
        if key == "EnvironmentFile":
            files = [*files, value.lstrip("-")] if value else []
        elif key == "ExecStart":
            match = re.fullmatch(_VARIABLE, value.split()[-1], re.ASCII) if value.split() else None
            variable = match[1] if match else None
    return tuple(files), variable
