# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a workload may do to a limit: widen it, never narrow it. Pure. PRIVATE to the collection.

The operator may have raised a limit for a reason that no workload knows. So a
workload's value of such a knob is a bound; only a value that the user sets is exact.
"""

from __future__ import annotations

from typing import Any, Tuple

from .._number import is_number
from .._plan import PROGRAM, Wanted
from .knob import Knob

LEAST = "least"  # at least this much: of each pair of numbers the larger wins
MOST = "most"  # at most this much: the smaller number wins
WIDEST = "widest"  # a range that is at least as wide: the lower begin and the higher end
EVERY = "every"  # a list: all elements of both

MAX = "max"  # the size of a ring: as large as its driver allows


def widen(knob: Knob, wanted: Wanted, value: str, previous: str, reason: str) -> Tuple[str, str]:
    """The value to set, and the reason: a user's value is exact, a workload's only widens what the untuned host has."""
    if not knob.bound or knob.wanted_by(wanted) != "workload" or wanted.by.get(knob.base) == PROGRAM:
        return value, reason
    goal = bounded(knob.bound, value, previous)
    least, more = ("at most", "less") if knob.bound == MOST else ("at least", "more")
    if goal == value:
        return goal, reason
    if goal == previous:
        return goal, f"the host has {more}; the workload wants {least} {value}: {reason}"
    return goal, f"the host has {previous}, the workload wants {least} {value}; this value satisfies both: {reason}"


def bounded(bound: str, requested: str, previous: str) -> str:
    """The value that satisfies a workload and keeps what the untuned host has; both are numbers separated by spaces.

    The workload's value where the host's isn't a list of as many numbers.
    """
    numbers, present = requested.split(), previous.split()
    if len(numbers) != len(present) or not all(is_number(word) for word in (*numbers, *present)):
        return requested
    choose = {LEAST: (max,) * len(numbers), MOST: (min,) * len(numbers), WIDEST: (min, max)}[bound]
    return " ".join(str(pick(int(a), int(b))) for pick, a, b in zip(choose, numbers, present))


def satisfying(bound: str, first: Any, second: Any) -> Any:
    """The value that satisfies two workloads."""
    if bound == EVERY:
        return sorted({*first, *second})
    if MAX in (first, second):
        return MAX
    text = bounded(bound, str(first), str(second))
    return int(text) if isinstance(first, int) else text
