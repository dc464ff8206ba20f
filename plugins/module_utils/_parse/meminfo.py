# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/meminfo and a node's meminfo. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict

# A node's file begins each line with "Node 0 ". Lines without a unit are counts (HugePages_Total).
_LINE = re.compile(r"(?:Node\s+[0-9]+\s+)?([A-Za-z0-9_()]+):\s*([0-9]{1,18})(\s+kB)?\s*", re.ASCII)


def parse(text: str) -> Dict[str, int]:
    """Name → value: bytes where the file has kB, else a count. Raises nothing."""
    numbers: Dict[str, int] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None:
            numbers[match.group(1)] = int(match.group(2)) * (1024 if match.group(3) else 1)
    return numbers
