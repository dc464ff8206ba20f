# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether loads are missing because of the tuning: those that failed, that a guard voided, or that collapsed.

Pure. PRIVATE to the collection.

A load that is missing is an outcome of its state. Which load of an attempt at a pair comes first is our coin, and the
attempt ends with the first that is missing; so the share of attempts that end in the untuned state, less the share
that end in the tuned state, is untuned's rate of missing loads less tuned's: exactly. To exclude that the tuning adds
`rise` to the rate, a wager of x is held on each attempt: with y = 1 if it ended untuned, -1 if tuned, 0 if neither, the
factor 1 + x (y + rise) has at most the mean 1 under any such rise, whatever the rates are and however they change. So
the product exceeds 20 in at most one run of 20 (Ville, as in evidence.py; for wagers of this kind Waudby-Smith and
Ramdas, Journal of the Royal Statistical Society B 86, 2024). A tuned load of a stay counts as one that the untuned host
would never have lost.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Callable, List, NamedTuple, Sequence, Tuple

from ..evidence import NEEDED
from ..guards import Firing
from ..history import Attempt, History
from ..order import TUNED, UNTUNED
from ..record import PAIR, SOAK

# Of the largest wager that a missing load doesn't make negative, with the weight of each.
_WAGERS = ((1.0, 0.5), (0.75, 0.25), (0.5, 0.25))


class Limit(NamedTuple):
    """A rise of a rate that has to be excluded before a tuning is kept."""

    rise: float
    words: str  # what is missing: "loads fail"
    counts: Callable[[Firing], bool]
    collapses: bool = False  # loads that are far below what is typical are missing too, and nothing else is


LIMITS = (
    Limit(0.08, "fail", lambda firing: firing.guard in ("load", "program")),
    Limit(0.18, "fail or are voided by a guard", lambda _firing: True),
    Limit(0.08, "lose a third or more", lambda _firing: False, collapses=True),
)
_COLLAPSED = math.log(2 / 3)


class Missing(NamedTuple):
    """How many loads of each state were missing, and what speaks against the tuning as the cause."""

    words: str  # what they did: "fail"
    tuned: int
    tuned_loads: int
    untuned: int
    untuned_loads: int
    rise: float  # percent of the loads
    evidence: float  # to 1, against such a rise or a larger one; NEEDED excludes it


def unexcluded(history: History, further: int = 0) -> List[Limit]:
    """The limits by which the tuning may still make loads fail, or be void, more often; even if so many `further`
    tuned loads don't."""
    return [
        limit for limit in LIMITS if highest_evidence(outcomes(history, limit) + [0] * further, limit.rise) < NEEDED
    ]


def outcomes(history: History, limit: Limit) -> List[int]:
    """What came of each attempt at a pair, and of each tuned load without a partner: -1, 0 or 1."""
    if limit.collapses:
        lost = [(attempt, set(states)) for attempt, states in _collapsed(history) if _compares(attempt)]
        return [(UNTUNED in states) - (TUNED in states) for _attempt, states in lost]
    found = []
    for attempt in filter(_compares, (*history.pairs, *history.soaks)):
        states = [firing.state for firing in attempt.firings if limit.counts(firing)]
        # An attempt that something else ended before its second load says nothing.
        if states:
            found.append(-1 if states[0] == TUNED else 1)
        elif attempt.valid:
            found.append(0)
    return found


def _compares(attempt: Attempt) -> bool:
    """Whether it is an attempt at a pair, or a tuned load of a stay."""
    return attempt.phase == PAIR or (attempt.phase == SOAK and attempt.measurements[0].state == TUNED)


def _collapsed(history: History) -> "List[Tuple[Attempt, List[str]]]":
    """The attempts that count, and the states in which their load was a third or more below the typical untuned one,
    and below all untuned ones. What is typical is known from the attempts before."""
    untuned: List[float] = []
    found = []
    for attempt in (*history.shams, *history.pairs, *history.soaks):
        if not attempt.valid:
            continue
        bound = min(median(untuned) + _COLLAPSED, *untuned) if untuned else -math.inf
        levels = [(load.host_state, attempt.level(load, history.primary)) for load in attempt.measurements]
        found.append((attempt, [state for state, value in levels if value < bound]))
        untuned += [value for state, value in levels if state == UNTUNED]
    return found


def highest_evidence(found: Sequence[int], rise: float) -> float:
    """The highest evidence, to 1, against the tuning raising the rate of missing loads by so much or more."""
    most = 1 / (1 - rise)
    wealth = [weight for _share, weight in _WAGERS]
    highest = 1.0
    for outcome in found:
        for index, (share, _weight) in enumerate(_WAGERS):
            wealth[index] *= max(0.0, 1 + share * most * (outcome + rise))
        highest = max(highest, sum(wealth))
    return highest


def missing(history: History) -> "Tuple[Missing, ...]":
    """What is missing for each of the LIMITS; the loads of the sham pairs are among the untuned ones."""
    attempts = (*history.shams, *history.pairs, *history.soaks)
    states = [measurement.host_state for attempt in attempts for measurement in attempt.measurements]
    figures = []
    for limit in LIMITS:
        if limit.collapses:
            lost = [state for _attempt, collapsed in _collapsed(history) for state in collapsed]
        else:
            lost = [firing.state for attempt in attempts for firing in attempt.firings[:1] if limit.counts(firing)]
        evidence = highest_evidence(outcomes(history, limit), limit.rise)
        (tuned, of_tuned), (untuned, of_untuned) = (
            (lost.count(state), states.count(state)) for state in (TUNED, UNTUNED)
        )
        figures.append(Missing(limit.words, tuned, of_tuned, untuned, of_untuned, 100 * limit.rise, evidence))
    return tuple(figures)


def looks_risen(history: History) -> bool:
    """Whether a rise that isn't excluded looks like what happens: more loads would hardly exclude it."""
    figures = [figure for figure in missing(history) if figure.evidence < NEEDED and figure.untuned_loads]
    shares = [(figure.tuned / figure.tuned_loads - figure.untuned / figure.untuned_loads, figure) for figure in figures]
    return any(100 * share >= figure.rise for share, figure in shares)


def sentence(figure: Missing) -> str:
    """How many of the loads are missing in each state."""
    return (
        f"{figure.tuned} of {figure.tuned_loads} loads {figure.words} when tuned,"
        f" {figure.untuned} of {figure.untuned_loads} untuned"
    )
