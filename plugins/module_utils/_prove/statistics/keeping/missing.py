# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether loads are missing because of the tuning: those that failed, that a guard voided, or that lost much.

Pure. PRIVATE to the collection.

A load that is missing is an outcome of its state. Which load of an attempt at a pair comes first is our coin, and the
attempt ends with the first that is missing; so the share of attempts that end in the untuned state, less the share
that end in the tuned state, is untuned's rate of missing loads less tuned's: exactly. To exclude that the tuning adds
`rise` to the rate, a wager of x is held on each attempt: with y = 1 if it ended untuned, -1 if tuned, 0 if neither, the
factor 1 + x (y + rise) has at most the mean 1 under any such rise, whatever the rates are and however they change. So
the product exceeds 20 in at most one run of 20 (Ville, as in evidence.py; for wagers of this kind Waudby-Smith and
Ramdas, Journal of the Royal Statistical Society B 86, 2024). A load that lost a part is missing by that part. A tuned
load of a stay is compared with what the untuned loads before it lost on average.

The rise that has to be excluded is the one that would use up what the tuning gains.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Callable, Iterator, List, NamedTuple, Sequence, Tuple

from ..evidence import NEEDED
from ..guards import Firing
from ..history import Attempt, History, differences
from ..interval import estimate
from ..order import TUNED, UNTUNED
from ..record import PAIR, SOAK
from ..settings import NOT_WORSE, Settings
from . import stays

# Of the largest wager that a missing load doesn't make negative, with the weight of each.
_WAGERS = ((1.0, 0.5), (0.75, 0.25), (0.5, 0.25))
_LEAST_RISE, _MOST_RISE = 0.02, 0.08  # of the rise that has to be excluded, whatever the tuning gains
_SURE = 0.8  # of an estimated gain, which may be too high
_OF_TIME = 2  # as many loads one is missing at most that takes longer: three times as long as a typical one
_LOST, _RECENT = math.log(0.85), 20  # how far below so many untuned loads one is that lost much


class Limit(NamedTuple):
    """A rate of which a rise has to be excluded before a tuning is kept."""

    words: str  # what is missing: "loads fail"
    counts: Callable[[Firing], bool]
    rise: float = 0.0  # 0: what the tuning gains
    lost: bool = False  # loads far below what is typical are missing too, by what they lost


LIMITS = (
    Limit("fail", lambda firing: firing.guard in ("load", "program")),
    Limit("fail or are voided by a guard", lambda _firing: True, rise=0.18),
    Limit("fail or lose 15 % or more", lambda firing: firing.guard in ("load", "program"), lost=True),
)


class Missing(NamedTuple):
    """How many loads of each state were missing, and what speaks against the tuning as the cause."""

    words: str  # what they did: "fail"
    tuned: int
    tuned_loads: int
    untuned: int
    untuned_loads: int
    rise: float  # percent of the loads
    evidence: float  # to 1, against such a rise or a larger one; NEEDED excludes it


def excluded(settings: Settings, history: History, further: int = 0) -> bool:
    """Whether a rise is excluded by all LIMITS, or would be if none of so many `further` tuned loads were missing."""
    return all(
        highest_evidence(outcomes(history, limit) + [0.0] * further, _rise(limit, settings, history)) >= NEEDED
        for limit in LIMITS
    )


def _rise(limit: Limit, settings: Settings, history: History) -> float:
    """The rise that has to be excluded: what the tuning gains, or may lose by the setting `keep`."""
    if limit.rise:
        return limit.rise
    found = differences(history.pairs, history.primary), stays.differences(settings, history)
    gain = _SURE * min((estimate(changes) for changes in found if changes), default=0.0)
    allowed = math.log1p(settings.margin / 100) if settings.keep == NOT_WORSE else 0.0
    used_up = math.expm1(gain + allowed) / (_OF_TIME if limit.lost and history.less_is_better else 1)
    return min(_MOST_RISE, max(_LEAST_RISE, used_up))


def outcomes(history: History, limit: Limit) -> List[float]:
    """What came of each attempt at a pair, and of each tuned load of a stay: what is missing untuned less tuned."""
    lost, loads, found = 0.0, 0, []
    for attempt, losses in _losses(history, limit):
        of_tuned, of_untuned = ([loss for state, loss in losses if state == of] for of in (TUNED, UNTUNED))
        # An attempt that something else ended before its second load says nothing.
        if attempt.phase == PAIR and (attempt.valid or any(loss for _state, loss in losses)):
            found.append(sum(of_untuned) - sum(of_tuned))
        elif attempt.phase == SOAK and of_tuned and (attempt.valid or any(of_tuned)):
            found.append(lost / max(1, loads) - of_tuned[0])
        lost, loads = lost + sum(of_untuned), loads + len(of_untuned)
    return found


def _losses(history: History, limit: Limit) -> "Iterator[Tuple[Attempt, List[Tuple[str, float]]]]":
    """Each attempt, with the state of each of its loads and the share of it that is missing.

    A load lost much if it is that much below the typical one of the last untuned, and below all untuned ones.
    """
    attempts = (*history.shams, *history.pairs, *history.soaks)
    untuned = [_untuned_levels(attempt, history.primary) if limit.lost else [] for attempt in attempts]
    lowest = min((level for levels in untuned for level in levels), default=-math.inf)
    recent: List[float] = []
    for attempt, levels in zip(attempts, untuned):
        losses = []
        for load in attempt.measurements:
            loss = 0.0
            if load is attempt.measurements[-1] and any(limit.counts(firing) for firing in attempt.firings):
                loss = 1.0
            elif load.metrics and recent:
                level, typical = attempt.level(load, history.primary), median(recent[-_RECENT:])
                loss = _loss(history, typical - level) if level < min(typical + _LOST, lowest) else 0.0
            losses.append((load.host_state, loss))
        yield attempt, losses
        recent += levels


def _loss(history: History, by: float) -> float:
    """The share that is missing of a load whose logarithm is worse by so much; of time, a share of _OF_TIME loads."""
    return min(1.0, math.expm1(by) / _OF_TIME) if history.less_is_better else -math.expm1(-by)


def _untuned_levels(attempt: Attempt, name: str) -> List[float]:
    loads = attempt.measurements if attempt.valid else ()
    return [attempt.level(load, name) for load in loads if load.host_state == UNTUNED]


def highest_evidence(found: Sequence[float], rise: float) -> float:
    """The highest evidence, to 1, against the tuning raising the rate of missing loads by so much or more."""
    most = 1 / (1 - rise)
    wealth = [weight for _share, weight in _WAGERS]
    highest = 1.0
    for outcome in found:
        for index, (share, _weight) in enumerate(_WAGERS):
            wealth[index] *= max(0.0, 1 + share * most * (outcome + rise))
        highest = max(highest, sum(wealth))
    return highest


def missing(settings: Settings, history: History) -> "Tuple[Missing, ...]":
    """What is missing for each of the LIMITS; the loads of the sham pairs are among the untuned ones."""
    figures = []
    for limit in LIMITS:
        losses = [loss for _attempt, of_attempt in _losses(history, limit) for loss in of_attempt]
        rise = _rise(limit, settings, history)
        (tuned, of_tuned), (untuned, of_untuned) = (
            (sum(loss > 0 for loss in of), len(of))
            for of in ([loss for of_state, loss in losses if of_state == state] for state in (TUNED, UNTUNED))
        )
        evidence = highest_evidence(outcomes(history, limit), rise)
        figures.append(Missing(limit.words, tuned, of_tuned, untuned, of_untuned, 100 * rise, evidence))
    return tuple(figures)


def looks_risen(settings: Settings, history: History) -> bool:
    """Whether a rise that isn't excluded looks like what happens: more loads would hardly exclude it."""
    found = [(outcomes(history, limit), _rise(limit, settings, history)) for limit in LIMITS]
    return any(of and -sum(of) >= rise * len(of) and highest_evidence(of, rise) < NEEDED for of, rise in found)


def sentence(figure: Missing) -> str:
    """How many of the loads are missing in each state."""
    return (
        f"{figure.tuned} of {figure.tuned_loads} loads {figure.words} when tuned,"
        f" {figure.untuned} of {figure.untuned_loads} untuned"
    )
