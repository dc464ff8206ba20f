# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/stat: what each CPU spent its time on. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional

_LINE = re.compile(r"^(cpu[0-9]{0,5})((?: +[0-9]{1,20}){8,10})\s*$", re.ASCII | re.MULTILINE)

Ticks = Dict[str, List[int]]  # "cpu" for all, "cpu0", … → user, nice, system, idle, iowait, irq, softirq, steal


class Times(NamedTuple):
    """Ticks of one CPU, or of all, since boot."""

    total: int
    interrupts: int  # irq and softirq
    stolen: int = 0  # by other guests of the same host


def ticks(text: str) -> Ticks:
    """The ticks since boot; guest time is part of user. Raises nothing."""
    return {name: [int(number) for number in numbers.split()[:8]] for name, numbers in _LINE.findall(text)}


def parse(text: str) -> Dict[int, Times]:
    """CPU → its times; CPUs that are offline have no line. Raises nothing."""
    return {int(name[len("cpu") :]): _times(spent) for name, spent in ticks(text).items() if name != "cpu"}


def parse_all(text: str) -> Optional[Times]:
    """The times of all CPUs together, also of those that are offline now; None without their line."""
    spent = ticks(text).get("cpu")
    return _times(spent) if spent is not None else None


def _times(spent: List[int]) -> Times:
    return Times(sum(spent), spent[5] + spent[6], spent[7])
