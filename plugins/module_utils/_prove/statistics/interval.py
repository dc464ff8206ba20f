# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large an effect is: an estimate, the interval around it, and the figures of a report.

Pure. PRIVATE to the collection.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Callable, NamedTuple, Optional, Sequence

from .evidence import LAMBDAS, NEEDED, peak
from .metrics import SMALLER, Metric

# Beyond every difference by so much, each factor of the evidence is as good as two, or as good as none.
_BEYOND = 40 / min(LAMBDAS)
_HALVINGS = 64


class Interval(NamedTuple):
    """Logarithms of ratios; -inf and inf where too few pairs were measured to exclude anything."""

    low: float
    high: float


def estimate(differences: Sequence[float]) -> float:
    """The median of the means of all pairs of differences, each with itself too; nan without differences.

    Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963). Outliers count, but they can't carry it away.
    """
    if not differences:
        return math.nan
    count = len(differences)
    means = [(differences[i] + differences[j]) / 2 for i in range(count) for j in range(i, count)]
    return median(means)


def interval(
    differences: Sequence[float],
    needed: float = NEEDED,
    wagers: Sequence[float] = LAMBDAS,
    most: float = math.inf,
) -> Interval:
    """All shifts against which the evidence never reached `needed`, at whichever pair that was looked at.

    With NEEDED it holds the truth in 95 % of runs, however they were stopped (Howard et al., Annals of Statistics 49,
    2021). If low is above high, no single effect explains the run: it changed on the way.
    """
    if not differences:
        return Interval(-math.inf, math.inf)
    return bounds(
        differences,
        lambda shift: peak(differences, shift, wagers, most).above >= needed,
        lambda shift: peak(differences, shift, wagers, most).below >= needed,
    )


def bounds(
    differences: Sequence[float], too_low: Callable[[float], bool], too_high: Callable[[float], bool]
) -> Interval:
    """The shifts that neither condition excludes: the first holds up to somewhere, the second from somewhere on."""
    start, end = min(differences) - _BEYOND, max(differences) + _BEYOND
    return Interval(_last_excluded(too_low, start, end), -_last_excluded(lambda shift: too_high(-shift), -end, -start))


def _last_excluded(excluded: Callable[[float], bool], start: float, end: float) -> float:
    """Where a condition that holds from `start` on ceases to hold; -inf if it doesn't even hold there."""
    if not excluded(start):
        return -math.inf
    for _halving in range(_HALVINGS):
        middle = (start + end) / 2
        if excluded(middle):
            start = middle
        else:
            end = middle
    return start


class Comparison(NamedTuple):
    """One metric, tuned against untuned. Changes are percent of the metric itself: a latency that falls is negative."""

    name: str
    unit: str
    better: str  # larger | smaller
    primary: bool
    change: Optional[float]  # None without pairs
    low: Optional[float]  # the interval; None: nothing is excluded on this side yet
    high: Optional[float]
    evidence: float  # to 1, for an effect on the side that has more; `needed` decides
    needed: float  # 20, for the others times their number
    p: float  # at most, if the tuning changes nothing, whenever the run ends: 1 / evidence
    not_worse: bool  # whether more harm than the margin is excluded


def comparison_of(
    differences: Sequence[float],
    metric: Metric,
    margin: float,
    needed: float,
    primary: bool,
    wagers: Sequence[float] = LAMBDAS,
    most: float = math.inf,
) -> Comparison:
    """The differences of a metric as figures of a report; `margin` is a logarithm of a ratio."""
    span = interval(differences, needed, wagers, most)
    sign = -1 if metric.better == SMALLER else 1
    low, high = (span.low, span.high) if sign > 0 else (-span.high, -span.low)
    # After an effect that changed during the run, the interval of all pairs may exclude their middle.
    middle = max(low, min(high, sign * estimate(differences)))
    evidence = max(peak(differences, 0.0, wagers, most))
    return Comparison(
        name=metric.name,
        unit=metric.unit,
        better=metric.better,
        primary=primary,
        change=percent(middle) if differences else None,
        low=percent(low) if math.isfinite(low) else None,
        high=percent(high) if math.isfinite(high) else None,
        evidence=evidence,
        needed=needed,
        p=min(1.0, 1 / evidence),
        not_worse=span.low > -margin,
    )


def percent(logarithm: float) -> float:
    """A logarithm of a ratio as a change in percent."""
    return 100 * math.expm1(logarithm)
