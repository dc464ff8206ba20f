# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often prove keeps the tuning in a world, and whether that is too often or too seldom."""

from __future__ import annotations

import math
from collections import Counter
from statistics import median
from typing import Any, Mapping, NamedTuple

from tests.worlds.host import WORLDS
from tests.worlds.product import outcome

WRONG = 0.05  # of runs: kept where that may never be, or not kept where that is always right


class Rate(NamedTuple):
    """What came of many runs in a world."""

    runs: int
    kept: int
    loads: float  # that a run took, in the median
    verdicts: Mapping[str, int]

    @property
    def interval(self) -> "tuple[float, float]":
        """The 95 % interval of the share of runs that kept (Wilson, Journal of the American Statistical Association
        22, 1927)."""
        z, share = 1.959964, self.kept / self.runs
        middle = share + z * z / (2 * self.runs)
        half = z * math.sqrt(share * (1 - share) / self.runs + z * z / (4 * self.runs * self.runs))
        scale = 1 + z * z / self.runs
        return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def rate_of(name: str, runs: int) -> Rate:
    """Run prove so often in the world of this name."""
    found = [outcome(WORLDS[name], seed) for seed in range(runs)]
    verdicts = Counter(run.verdict for run in found)
    return Rate(runs, sum(run.kept for run in found), median(run.loads for run in found), dict(verdicts.most_common()))


def is_broken(world: Mapping[str, Any], rate: Rate) -> bool:
    """Whether the tuning was kept too often or too seldom, beyond chance."""
    low, high = rate.interval
    return (world["keep"] == "never" and low > WRONG) or (world["keep"] == "always" and high < 1 - WRONG)
