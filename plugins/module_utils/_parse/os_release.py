# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""os-release files. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict

_ASSIGNMENT = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.ASCII)
_ESCAPE = re.compile(r'\\([\\"$`])')


def parse(text: str) -> Dict[str, str]:
    """Name → value, unquoted; as in a shell, the last assignment of a name wins.

    Other lines are left out. Raises nothing.
    """
    variables: Dict[str, str] = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.fullmatch(line)
        if match is None:
            continue
        value = match.group(2).strip()
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = _ESCAPE.sub(r"\1", value[1:-1])
        elif len(value) >= 2 and value[0] == value[-1] == "'":
            value = value[1:-1]
        variables[match.group(1)] = value
    return variables
