# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever of the clock source. PRIVATE to the collection."""

from __future__ import annotations

from .._facts import clock
from .._plan import Value
from .base import Beside, KernelValue


class ClockSource(KernelValue):
    """The counter from which the kernel takes the time."""

    def __init__(self, what: str) -> None:
        # CS_NAME_LEN is 32 in kernel/time/clocksource.c.
        super().__init__(what, f"{clock.CLOCKSOURCE}/current_clocksource", r"[A-Za-z0-9_-]{1,31}")

    def choice(self) -> Value:
        return clock.observe(self.host).kernel_choice

    def fitting(self, original: Value, beside: Beside) -> Value:
        facts = clock.observe(self.host)
        return original if original in (facts.available or (original,)) else facts.kernel_choice


LEVERS = (ClockSource("clock.current"),)
