# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real-time clock, by which a load is timed where the kernel's own clock is under test. PRIVATE to the collection.

All clocks that a program may read run on the clock source. When two clock sources are compared, each would be timed
by itself. The real-time clock isn't switched. It has whole seconds only (Documentation/ABI/testing/sysfs-class-rtc),
so the kernel's clock, which has fractions, is compared with it from the start of one second to the start of another.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from ..._error import NearmetalError
from ..._facts.host import Host
from .running import Experiment

PATH = "/sys/class/rtc/rtc0/since_epoch"
CONCERN = "clocksource"  # its source is a clock, and its kernel arguments decide about it
_LOOK = 0.002  # seconds between two reads, before and after the load
_MOST_LOOKS = 5000  # reads within which a second must begin


class Second(NamedTuple):
    """The start of a second, in seconds by both clocks."""

    real: int
    kernel: float


def needed(experiment: Experiment) -> bool:
    """Whether the states differ in the clock source, or in what decides about it."""
    return any(action.concern == CONCERN for action in experiment.difference)


def require(host: Host) -> int:
    """Seconds since 1970 by the real-time clock. Raises NearmetalError on a host without it."""
    now = host.number(PATH)
    if now is None:
        raise NearmetalError(
            "prove_timed would time the load by the very clock that is compared, and this host has no real-time clock"
            f" beside it ({PATH}): set prove_on: controller, or let the command print its figures"
        )
    return now


def next_second(host: Host) -> Second:
    """Wait until a second begins. Raises NearmetalError when none does."""
    first = require(host)
    for _look in range(_MOST_LOOKS):
        time.sleep(_LOOK)
        now = require(host)
        if now != first:
            return Second(now, time.monotonic())
    raise NearmetalError(f"the host's real-time clock stands still at {first} ({PATH}), so the load can't be timed")


def seconds(measured: float, first: Second, last: Second) -> float:
    """The real duration of what took `measured` seconds by the kernel's clock, between `first` and `last`."""
    return measured * (last.real - first.real) / (last.kernel - first.kernel)
