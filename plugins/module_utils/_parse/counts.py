# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/vmstat and a node's numastat: a name and a number per line. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict

_LINE = re.compile(r"^([a-z0-9_]{1,64}) ([0-9]{1,20})[ \t]*$", re.ASCII | re.MULTILINE)


def parse(text: str) -> Dict[str, int]:
    """Name → number; all other lines are left out. Raises nothing."""
    return {name: int(number) for name, number in _LINE.findall(text)}
