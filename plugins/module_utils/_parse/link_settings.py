# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that give an interface its MTU: systemd.network(5), interfaces(5), ifcfg, NetworkManager's keyfiles. Pure.

PRIVATE to the collection.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Dict, List, Mapping, Optional, Tuple

# Section, key and value of each line that assigns, in the file's order.
Lines = Tuple[Tuple[str, str, str], ...]

_SECTION = re.compile(r"\[([^\]]*)\]")
_IFACE = re.compile(r"(auto|allow-\S+|iface|mapping|source|source-directory|no-\S+)\s+(\S+)")
_NUMBER = re.compile(r"[0-9]{1,6}", re.ASCII)
# Limits on the cost of a condition in a hostile file.
_MOST_GLOBS, _LONGEST_GLOB, _MOST_STARS = 256, 64, 4


def lines(text: str) -> Lines:
    """The assignments of a file with sections; other lines are left out."""
    section = ""
    assignments: List[Tuple[str, str, str]] = []
    for raw in text.splitlines():
        line = raw.strip()
        named = _SECTION.fullmatch(line)
        if named:
            section = named[1]
        elif "=" in line and not line.startswith(("#", ";")):
            key, _sign, value = line.partition("=")
            assignments.append((section, key.strip(), value.strip()))
    return tuple(assignments)


def matches(assignments: Lines, interface: Mapping[str, str]) -> bool:
    """Whether an interface meets the section Match; a condition about a key that `interface` lacks counts as met.

    Lists of one key add up, an empty one starts over, `!` inverts a list.
    """
    conditions: Dict[str, List[str]] = {}
    for section, key, value in assignments:
        if section == "Match":
            conditions[key] = [*conditions.get(key, []), *value.split()][:_MOST_GLOBS] if value else []
    return all(_met(wanted, interface[key]) for key, wanted in conditions.items() if key in interface and wanted)


def _met(wanted: List[str], value: str) -> bool:
    inverted = wanted[0].startswith("!")
    globs = [word.lstrip("!").lower() for word in wanted]
    return any(_fits(value.lower(), glob) for glob in globs) != inverted


def _fits(value: str, glob: str) -> bool:
    """Whether the value matches; a glob longer than any name, driver or address in the kernel matches nothing."""
    if max(len(value), len(glob)) > _LONGEST_GLOB or glob.count("*") > _MOST_STARS:
        return False
    try:
        return fnmatchcase(value, glob)
    except re.error:  # a range such as [e-1], in Python 3.8
        return False


def last(assignments: Lines, section: str, key: str) -> Optional[str]:
    """The last value of a key; None when the file has none, or it isn't a number."""
    values = [value for where, name, value in assignments if (where, name) == (section, key)]
    return _number(values[-1]) if values else None


def parse_ifupdown(text: str) -> Dict[str, str]:
    """Interface → the MTU that interfaces(5) gives it."""
    mtus: Dict[str, str] = {}
    current = ""
    for raw in text.splitlines():
        line = raw.strip()
        stanza = _IFACE.match(line)
        if stanza:
            current = stanza[2] if stanza[1] == "iface" else ""
        elif current and line.startswith("mtu"):
            number = _number(line[3:].strip())
            if number is not None:
                mtus[current] = number
    return mtus


def parse_ifcfg(text: str) -> Optional[str]:
    """The MTU of an ifcfg file, which a shell reads."""
    values = [value.strip("\"'") for _section, key, value in lines(text) if key == "MTU"]
    return _number(values[-1]) if values else None


def _number(text: str) -> Optional[str]:
    return text if _NUMBER.fullmatch(text) else None
