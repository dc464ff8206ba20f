# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/net/netstat and /proc/net/snmp: counters of the network's protocols. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict

_NAMES = re.compile(r"([A-Za-z0-9]{1,32}):((?: [A-Za-z0-9]{1,64}){1,400}) *", re.ASCII)
_VALUES = re.compile(r"([A-Za-z0-9]{1,32}):((?: -?[0-9]{1,20}){1,400}) *", re.ASCII)


def parse(text: str) -> Dict[str, int]:
    """Protocol and counter → value: {"TcpExt.ListenDrops": 3}. Raises nothing.

    Each protocol has a line of names, and below it a line of as many values.
    """
    statistics: Dict[str, int] = {}
    lines = text.splitlines()
    for above, below in zip(lines, lines[1:]):
        names, values = _NAMES.fullmatch(above), _VALUES.fullmatch(below)
        if names is None or values is None or names[1] != values[1]:
            continue
        words, numbers = names[2].split(), values[2].split()
        if len(words) == len(numbers):
            statistics.update((f"{names[1]}.{word}", int(number)) for word, number in zip(words, numbers))
    return statistics
