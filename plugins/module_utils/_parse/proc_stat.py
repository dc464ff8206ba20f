# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/stat: what each CPU spent its time on. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional

# user nice system idle iowait irq softirq steal; guest time is part of user.
_TICKS = r"((?: +[0-9]{1,20}){8,10})\s*$"
_LINE = re.compile(f"^cpu([0-9]{{1,5}}){_TICKS}", re.ASCII | re.MULTILINE)
_ALL = re.compile(f"^cpu{_TICKS}", re.ASCII | re.MULTILINE)


class Times(NamedTuple):
    """Ticks of one CPU, or of all, since boot."""

    total: int
    interrupts: int  # irq and softirq
    stolen: int = 0  # by other guests of the same host


def parse(text: str) -> Dict[int, Times]:
    """CPU → its times; CPUs that are offline have no line. Raises nothing."""
    return {int(cpu): _times(numbers) for cpu, numbers in _LINE.findall(text)}


def parse_all(text: str) -> Optional[Times]:
    """The times of all CPUs together, also of those that are offline now; None without their line."""
    found = _ALL.search(text)
    return _times(found[1]) if found is not None else None


def _times(numbers: str) -> Times:
    ticks = [int(number) for number in numbers.split()[:8]]
    return Times(sum(ticks), ticks[5] + ticks[6], ticks[7])
