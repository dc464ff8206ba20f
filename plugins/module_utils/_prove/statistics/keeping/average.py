# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the mean of all loads gains too: what is rare but large moves it, and hardly a typical load.

Pure. PRIVATE to the collection. Unlike the evidence this bound is exact for many loads alone: it guards a gain that was
shown, and shows none.
"""

from __future__ import annotations

import math
from statistics import mean, median, stdev
from typing import Dict, List, Tuple

from ..history import History
from ..order import TUNED, UNTUNED

_QUANTILE = 1.645  # of the normal distribution: the bound is above the truth in 5 % of runs


def least_gain(history: History) -> float:
    """What the mean gains at least, as a share of a typical untuned load."""
    loads: Dict[Tuple[str, int, int, str], float] = {}
    for attempt in (*history.pairs, *history.soaks):
        for load in attempt.measurements if attempt.valid else ():
            # The attempt at a pair that counts has a number of its own; in a stay it is that of the load.
            loads[load.phase, load.pair, load.attempt, load.state] = attempt.level(load, history.primary)
    typical = median([value for place, value in loads.items() if place[-1] == UNTUNED])
    gains: List[float] = [
        math.exp(value - typical) - math.exp(loads[(*place[:-1], UNTUNED)] - typical)
        for place, value in loads.items()
        if place[-1] == TUNED and (*place[:-1], UNTUNED) in loads
    ]
    return mean(gains) - _QUANTILE * stdev(gains) / math.sqrt(len(gains))
