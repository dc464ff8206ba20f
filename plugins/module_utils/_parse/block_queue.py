# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queue files of a block device: their values, and how the kernel rounds a written value. Pure. PRIVATE.

The rules are those of block/blk-sysfs.c and include/linux/jiffies.h, Linux 5.0 to 6.12.
"""

from __future__ import annotations

import re
from typing import FrozenSet, Optional, Tuple

# The files of /sys/block/<disk>/queue that a knob of the same name writes.
ATTRIBUTES = (
    "io_timeout",
    "scheduler",
    "read_ahead_kb",
    "nr_requests",
    "nomerges",
    "rq_affinity",
    "max_sectors_kb",
    "write_cache",
)

# The largest number that io_timeout takes.
LONGEST_MS = (1 << 32) - 1
# Ticks per second that x86 and arm64 kernels are built with (kernel/Kconfig.hz).
_HZ = (100, 250, 300, 1000)
# From 2^31 ms on the kernel uses its longest time, in ticks, cut to the 32 bits of a queue's timeout.
_LONGEST_TICKS = (1 << 32) - 2
LEAST_REQUESTS = 4  # BLKDEV_MIN_RQ
_PAGES_KIB = (4, 16, 64)
# A multiple of this many ms is a whole number of ticks whatever HZ is.
_STEP_MS = 20

_WORD = re.compile(r"[a-z0-9_-]{1,32}", re.ASCII)
_CACHE = re.compile(r"write (?:back|through)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)


def schedulers(text: Optional[str]) -> Tuple[Optional[str], Tuple[str, ...]]:
    """The scheduler in use and those on offer, from "mq-deadline [none]"; a device without a choice has "none"."""
    current, offered = None, []
    for word in (text or "").split():
        name = word.strip("[]")
        if not _WORD.fullmatch(name):
            return None, ()
        offered.append(name)
        if word != name:
            current = name
    if current is None and len(offered) == 1:
        current = offered[0]
    return current, tuple(offered)


def number(text: Optional[str]) -> Optional[str]:
    """The text when it is a whole number, as the kernel prints it."""
    return text if text is not None and _NUMBER.fullmatch(text) else None


def valid(attribute: str, value: object) -> bool:
    """Whether the value is of the kind that this file takes."""
    pattern = {"scheduler": _WORD, "write_cache": _CACHE}.get(attribute, _NUMBER)
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def holds(attribute: str, now: Optional[str], wanted: str) -> bool:
    """Whether a file reads `now` after `wanted` was written to it: the kernel rounds some values."""
    return now is not None and (now == wanted or now in _read_back(attribute, wanted))


def remembered(attribute: str, value: Optional[str]) -> Optional[str]:
    """The same text for all readings of one written value, so that a value of nearmetal is recognized."""
    if value is None or not valid(attribute, value) or attribute in ("scheduler", "write_cache"):
        return value
    requested = int(value)
    if attribute == "io_timeout":
        if requested >= 1 << 31 or requested in _timeouts(LONGEST_MS):
            return str(LONGEST_MS)
        return str(-(-requested // _STEP_MS) * _STEP_MS)
    if attribute == "nr_requests":
        return str(max(requested, LEAST_REQUESTS))
    if attribute == "read_ahead_kb":
        return str(requested - requested % max(_PAGES_KIB))
    return value


def timeout_for(seconds: int) -> str:
    """The io_timeout of a queue to which its driver gave so many seconds: the product with HZ wraps at 32 bits."""
    return str(seconds * 1000 & LONGEST_MS)


def _read_back(attribute: str, wanted: str) -> FrozenSet[str]:
    """What the kernel may show after `wanted` was written."""
    if not valid(attribute, wanted) or attribute in ("scheduler", "write_cache"):
        return frozenset((wanted,))
    requested = int(wanted)
    if attribute == "io_timeout":
        return frozenset(map(str, _timeouts(requested)))
    if attribute == "nr_requests":
        return frozenset((str(max(requested, LEAST_REQUESTS)),))
    if attribute == "read_ahead_kb":
        return frozenset(str(requested - requested % page) for page in _PAGES_KIB)
    return frozenset((wanted,))


def _timeouts(requested: int) -> FrozenSet[int]:
    """Milliseconds → ticks, rounded up, → milliseconds in 32 bits."""
    if requested < 1 << 31:
        return frozenset(_milliseconds(-(-requested * rate // 1000), rate) for rate in _HZ)
    return frozenset((int(timeout_for(LONGEST_MS)), *(_milliseconds(_LONGEST_TICKS, rate) for rate in _HZ)))


def _milliseconds(ticks: int, rate: int) -> int:
    return -(-ticks * 1000 // rate) & LONGEST_MS
