# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run can see and how long it takes, and what the host did meanwhile. For people: nothing is decided by it.

Pure. PRIVATE to the collection.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import median, variance
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from .history import Attempt, History
from .interval import interval
from .order import TUNED, UNTUNED
from .record import Measurement
from .rules import MOST_SHAMS, MOST_WARM_UPS
from .settings import FEWEST_PAIRS, Settings

# Pairs that show an effect in four runs of five: so many times the square of noise by effect, and a few more. Found by
# simulation of white noise from 1 to 65 %, with the stays that follow. A test of a fixed number of pairs needs 7.85
# times it: the rest is what it costs to look after each pair, and to stop as soon as the answer is clear.
_PAIRS_PER_SQUARE, _EXTRA_PAIRS = 18.0, 3
_BESIDE = 0.7  # of what noise hides, beside what few pairs don't show without any
_FEW = 50  # pairs; of more, noise alone decides what they show, as the least that is wagered on is 0.1 %
_SHARE_OF_MARGIN = 0.75  # found in the same simulation: half of the margin ends as `same` in half of the runs


def noise(*groups: Sequence[float]) -> Optional[float]:
    """The standard deviation of the differences within each group, a logarithm of a ratio; None of fewer than two.

    What the groups differ by is the effect, not noise.
    """
    several = [group for group in groups if len(group) >= 2]
    freedom = sum(len(group) - 1 for group in several)
    squares = sum((len(group) - 1) * variance(group) for group in several)
    return math.sqrt(squares / freedom) if freedom else None


def smallest_visible(deviation: float, pairs: int, margin: float = 0.0) -> float:
    """The effect, a logarithm of a ratio, that so many pairs show in four runs of five; one that is smaller than most
    of the margin ends as `same` before, however many pairs there are."""
    of_noise = deviation * math.sqrt(_PAIRS_PER_SQUARE / (pairs - _EXTRA_PAIRS))
    least = _visible_without_noise(min(pairs, _FEW)) + _BESIDE * of_noise
    return max(of_noise, least, _SHARE_OF_MARGIN * margin)


@lru_cache(maxsize=None)
def _visible_without_noise(pairs: int) -> float:
    """The effect that so many equal differences just show: on a small one only the largest wagers win, and what they
    win in few pairs isn't enough."""
    return 1.0 - interval([1.0] * pairs).low


def pairs_needed(deviation: float, effect: float) -> int:
    """How many pairs show an effect, a logarithm of a ratio, in four runs of five."""
    pairs = max(FEWEST_PAIRS, math.ceil(_PAIRS_PER_SQUARE * (deviation / effect) ** 2) + _EXTRA_PAIRS)
    while pairs < _FEW and smallest_visible(deviation, pairs) > effect:
        pairs += 1
    return pairs


def measurements_at_most(settings: Settings, concerns: int) -> int:
    """How many measurements a run may take without repetitions; `concerns` are those compared with the rest."""
    return MOST_WARM_UPS + 2 * MOST_SHAMS + 2 * settings.pairs * (1 + concerns) + settings.most_in_stays


def seconds_of_pair(attempts: Sequence[Attempt]) -> Optional[float]:
    """The mean time that a pair took, its repetitions and pauses included in none; None without pairs."""
    spent = [
        sum(measurement.ended - measurement.began for measurement in attempt.measurements)
        for attempt in attempts
        if attempt.valid
    ]
    return sum(spent) / len(spent) if spent else None


def describe_levels(history: History) -> List[Dict[str, Any]]:
    """The level and the spread of each figure, untuned and tuned, over the pairs that count; none without a pair."""
    loads = [load for attempt in history.pairs if attempt.valid for load in attempt.measurements]
    levels: List[Dict[str, Any]] = []
    for kind, state in [(kind, state) for kind in history.kinds for state in (UNTUNED, TUNED)] if loads else ():
        metrics = [metric for load in loads if load.state == state for metric in load.metrics]
        values = [metric.value for metric in metrics if metric.name == kind.name]
        lower, middle, upper = (_share_of(sorted(values), share) for share in (0.25, 0.5, 0.75))
        spread = {"median": middle, "lower": lower, "upper": upper, "least": min(values), "most": max(values)}
        levels.append({"metric": kind.name, "unit": kind.unit, "state": state, "loads": len(values), **spread})
    return levels


class Activity(NamedTuple):
    """What the host did in the loads of one state, in the median; None where it doesn't say."""

    softirq: Optional[float]  # percent of all CPUs' time
    context_switches: Optional[float]  # a second
    interrupts: Mapping[str, float]  # a device's interrupt → how often it came a second


def activities(history: History) -> Dict[str, Activity]:
    """State → what the host did in the pairs that count."""
    measurements = [measurement for attempt in history.pairs if attempt.valid for measurement in attempt.measurements]
    return {
        state: _typical([_activity(measurement) for measurement in measurements if measurement.host_state == state])
        for state in (UNTUNED, TUNED)
    }


def _typical(of_loads: Sequence[Activity]) -> Activity:
    names = sorted({name for activity in of_loads for name in activity.interrupts})
    return Activity(
        _median([activity.softirq for activity in of_loads]),
        _median([activity.context_switches for activity in of_loads]),
        {name: median([activity.interrupts.get(name, 0.0) for activity in of_loads]) for name in names},
    )


def _median(values: Sequence[Optional[float]]) -> Optional[float]:
    known: List[float] = [value for value in values if value is not None]
    return median(known) if known else None


def _activity(measurement: Measurement) -> Activity:
    before, after = measurement.before, measurement.after
    if before is None or after is None or after.host_seconds <= before.host_seconds:
        return Activity(None, None, {})
    seconds = after.host_seconds - before.host_seconds
    softirq = switches = None
    if None not in (before.cpu_softirq, after.cpu_softirq, before.cpu_total, after.cpu_total):
        total = (after.cpu_total or 0.0) - (before.cpu_total or 0.0)
        softirq = 100 * ((after.cpu_softirq or 0.0) - (before.cpu_softirq or 0.0)) / total if total > 0 else None
    if before.context_switches is not None and after.context_switches is not None:
        switches = (after.context_switches - before.context_switches) / seconds
    rates = {name: (count - before.interrupts.get(name, 0)) / seconds for name, count in after.interrupts.items()}
    return Activity(softirq, switches, {name: rate for name, rate in rates.items() if rate > 0})


def _share_of(ordered: Sequence[float], share: float) -> float:
    """The value below which such a share lies, between its neighbors; `statistics.quantiles` came with Python 3.8."""
    place = (len(ordered) - 1) * share
    below = ordered[int(place)]
    return below + (ordered[min(int(place) + 1, len(ordered) - 1)] - below) * (place - int(place))
