# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/stat: what each CPU spent its time on. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple

# user nice system idle iowait irq softirq steal; guest time is part of user.
_LINE = re.compile(r"^cpu([0-9]{1,5})((?: [0-9]{1,20}){8,10})\s*$", re.ASCII | re.MULTILINE)


class Times(NamedTuple):
    """Ticks of one CPU since boot."""

    total: int
    interrupts: int  # irq and softirq
    stolen: int = 0  # by other guests of the same host


def parse(text: str) -> Dict[int, Times]:
    """CPU → its times; CPUs that are offline have no line. Raises nothing."""
    processes = {}
    for cpu, numbers in _LINE.findall(text):
        ticks = [int(number) for number in numbers.split()[:8]]
        processes[int(cpu)] = Times(sum(ticks), ticks[5] + ticks[6], ticks[7])
    return processes
