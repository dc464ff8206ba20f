# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the mean of all loads does: what is rare but large moves it, and hardly a typical load.

Pure. PRIVATE to the collection. Unlike the evidence these bounds are exact for many loads alone: they guard a gain that
was shown, and show none.
"""

from __future__ import annotations

import math
from statistics import median, stdev
from typing import Dict, Iterable, List, Tuple

from ..history import History
from ..order import TUNED, UNTUNED

_ERRORS = 2.5  # standard errors below the mean: what is rare is skewed, and is asked for after each pair of stays
_MOST = math.log(3)  # as how many times the typical one a load of a further metric counts at most


def mean(values: Iterable[float]) -> float:
    """As statistics.fmean, which Python 3.7 hasn't got."""
    seen = list(values)
    return math.fsum(seen) / len(seen)


def least_gain(history: History, starts: bool = False) -> float:
    """What the mean of all loads gains at least, as a share of a typical untuned load; and that of all `starts`, where
    each switch is one: of a program that started badly all loads are worse until the next."""
    sign = -1 if history.less_is_better else 1
    by_start: Dict[Tuple[str, int], List[float]] = {}
    for start, untuned, tuned in _from_typical(history, history.primary):
        by_start.setdefault(start, []).append(sign * (math.exp(sign * tuned) - math.exp(sign * untuned)))
    of_loads = _least([change for changes in by_start.values() for change in changes])
    return min(of_loads, _least([mean(changes) for changes in by_start.values()])) if starts else of_loads


def gain(history: History, name: str) -> Tuple[float, float]:
    """What a further metric gains on average, a logarithm of a ratio, and what it gains at least."""
    gains = [
        max(-_MOST, min(_MOST, tuned)) - max(-_MOST, min(_MOST, untuned))
        for _start, untuned, tuned in _from_typical(history, name)
    ]
    return mean(gains), _least(gains)


def _least(gains: List[float]) -> float:
    """What the mean is at least, as if the worst came once more: so few losses as a run sees may be few by chance."""
    seen = [*gains, min(gains)]
    return mean(seen) - _ERRORS * stdev(seen) / math.sqrt(len(seen))


def _from_typical(history: History, name: str) -> "List[Tuple[Tuple[str, int], float, float]]":
    """The start of each place, and how far its untuned and its tuned load are from a typical untuned one."""
    loads: Dict[Tuple[str, int, int, str], float] = {}
    for attempt in (*history.pairs, *history.soaks):
        for load in attempt.measurements if attempt.valid else ():
            # The attempt at a pair that counts has a number of its own; in a stay it is that of the load.
            loads[load.phase, load.pair, load.attempt, load.state] = attempt.level(load, name)
    loads = _without_slope(loads)
    typical = median([value for place, value in loads.items() if place[-1] == UNTUNED])
    return [
        (place[:2], loads[(*place[:-1], UNTUNED)] - typical, value - typical)
        for place, value in loads.items()
        if place[-1] == TUNED and (*place[:-1], UNTUNED) in loads
    ]


def _without_slope(loads: "Dict[Tuple[str, int, int, str], float]") -> "Dict[Tuple[str, int, int, str], float]":
    """The levels without what each load is better or worse than the one before: least squares, within both states."""
    squares = products = 0.0
    for state in (UNTUNED, TUNED):
        points = [(number, value) for number, (place, value) in enumerate(loads.items()) if place[-1] == state]
        middle, level = mean(number for number, _value in points), mean(value for _number, value in points)
        squares += sum((number - middle) ** 2 for number, _value in points)
        products += sum((number - middle) * (value - level) for number, value in points)
    return {place: value - products / squares * number for number, (place, value) in enumerate(loads.items())}
