# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a batch did to a metric, compared with the hosts that still wait. Pure. PRIVATE to the collection.

Each host has a difference, ln(after) - ln(before); what hits tuned and waiting hosts alike is in both. Under "no
effect" only the draw decides which differences are those of tuned hosts, whatever the noise is (Fisher, 1935).
"""

from __future__ import annotations

import math
import random
from itertools import combinations, product
from statistics import median
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...module_utils._prove.statistics.evidence import path

Look = Mapping[str, Sequence[Optional[float]]]  # metric → the value of each host; None where there is none

_MOST_EXACT = _MOST_SAMPLED = 2000  # draws that are all enumerated; of more a sample is drawn
_ENOUGH = 25  # draws at least as extreme after which a sample ends: its p is known well enough (Besag, Clifford, 1991)
_OUTLIER = 4 * 1.4826  # median absolute deviations, beyond which a host counts as if it were that far
_FAR, _HALVINGS = 2.0, 14  # an interval is looked for within a factor of 7, and known to 0.02 %
_LEAST_KNOWN = 0.5  # of the looks, with less of which a host's value isn't known


class Watch(NamedTuple):
    """What is known of one batch: its hosts, and after them in the order of the draw those that wait."""

    tuned: int  # the first so many are the batch
    strata: Sequence[int]
    before: Sequence[Look]
    after: Sequence[Look]


def logarithm(looks: Sequence[Look], name: str) -> Callable[[float], float]:
    """What stands for the logarithm of a metric that may be zero: a tenth of what is usual is added to all, then.

    A zero that comes later counts as a tenth of the least. The looks must be chosen before any is judged, and with
    all hosts together, so that neither the draw nor what comes later has a say in it.
    """
    values = [value for look in looks for value in look.get(name, ()) if value is not None]
    more = [value for value in values if value > 0] or [10.0]
    plus, least = median(more) / 10 if 0 in values else 0.0, min(more) / 10
    return lambda value: math.log(value + plus or least)


def means(looks: Sequence[Look], name: str, log: Callable[[float], float], hosts: int) -> List[Optional[float]]:
    """The mean logarithm of each host; None of a host without a value in half of the looks.

    A look in which no host has a value, as while the source of the metrics restarts, doesn't count.
    """
    rows = [row for row in (look.get(name, ()) for look in looks) if any(value is not None for value in row)]
    sums, known = [0.0] * hosts, [0] * hosts
    for row in rows:
        for host, value in enumerate(row):
            if value is not None:
                sums[host] += log(value)
                known[host] += 1
    return [total / n if n and n >= len(rows) * _LEAST_KNOWN else None for total, n in zip(sums, known)]


def gains(watch: Watch, name: str, larger: bool) -> List[Optional[float]]:
    """The gain of each host after all looks: positive where the metric became better; None where it isn't known."""
    log = logarithm([*watch.before, *watch.after[:1]], name)
    before, after = (means(looks, name, log, len(watch.strata)) for looks in (watch.before, watch.after))
    sign = 1 if larger else -1
    # Rounded: what a sum leaves behind its last digit is no noise, beside which all else would be an outlier.
    return [None if a is None or b is None else round(sign * (b - a), 9) for a, b in zip(before, after)]


def pairs(watch: Watch, found: Sequence[Optional[float]]) -> List[float]:
    """Each tuned host against the next host of its stratum that waits: which of the two is tuned is a coin."""
    waiting: Dict[int, List[float]] = {}
    for stratum, gain in zip(watch.strata[watch.tuned :], found[watch.tuned :]):
        if gain is not None:
            waiting.setdefault(stratum, []).append(gain)
    paired = []
    for stratum, gain in zip(watch.strata[: watch.tuned], found[: watch.tuned]):
        if gain is not None and waiting.get(stratum):
            paired.append(gain - waiting[stratum].pop(0))
    return paired


class Won(NamedTuple):
    """What the bets on harm in one metric have won."""

    looks: int  # of the batch, that were bet on
    evidence: float  # to 1


NOTHING = Won(looks=0, evidence=0.0)


def evidence_of_harm(watch: Watch, name: str, larger: bool, most_looks: int, before: Won = NOTHING) -> Won:
    """What speaks for harm, at whichever look this is asked; `before` is what it was at an earlier look.

    The evidence of the pairs at each look is a bet of its own, with an equal part of the money: the sum of what they
    have won only grows, and exceeds a number n in at most one of n batches without effect (Markov), at any look.
    """
    evidence = before.evidence
    for looks in range(before.looks + 1, len(watch.after) + 1):
        steps = path(pairs(watch, gains(watch._replace(after=watch.after[:looks]), name, larger)))
        evidence += 2 * steps[-1].below / most_looks if steps else 0.0
    return Won(len(watch.after), evidence)


class Draws:
    """All draws of the tuned among the hosts whose gain is known, or a sample of them."""

    def __init__(self, watch: Watch, found: Sequence[Optional[float]], seed: int) -> None:
        self._seed = seed
        self._groups: List[Any] = []  # of each stratum that has both: gains of tuned, gains of waiting
        for stratum in sorted(set(watch.strata)):
            known = [(i < watch.tuned, g) for i, g in enumerate(found) if g is not None and watch.strata[i] == stratum]
            tuned, waiting = [g for is_tuned, g in known if is_tuned], [g for is_tuned, g in known if not is_tuned]
            if tuned and waiting:
                self._groups.append((tuned, waiting))
        self.tuned = sum(len(tuned) for tuned, _waiting in self._groups)
        self.waiting = sum(len(waiting) for _tuned, waiting in self._groups)
        self.count = math.prod(math.comb(len(tuned) + len(rest), len(tuned)) for tuned, rest in self._groups)

    def p_harm(self, margin: float = 0.0, needed: float = 0.0) -> float:
        """How likely so low a gain of the tuned is by the draw alone, if the true one is `-margin`.

        A sample of draws can show no p below 1 to its size, so it is larger where 1 to `needed` is asked for.
        """
        groups = [([gain + margin for gain in tuned], rest) for tuned, rest in self._groups]
        return self._p(groups, -1, max(_MOST_SAMPLED, math.ceil(4 * needed)))

    def p_no_harm(self, margin: float) -> float:
        """How likely so high a gain of the tuned is by the draw alone, if the true one is `-margin`."""
        return self._p([([gain + margin for gain in tuned], rest) for tuned, rest in self._groups], 1)

    def estimate(self) -> float:
        """The gain of the tuned: the difference of medians in each stratum, weighed by what it tells."""
        weighed = [
            (len(tuned) * len(rest) / (len(tuned) + len(rest)), median(tuned) - median(rest))
            for tuned, rest in self._groups
        ]
        total = sum(weight for weight, _gain in weighed)
        return sum(weight * gain for weight, gain in weighed) / total if total else math.nan

    def interval(self, likely: float) -> Tuple[float, float]:
        """All gains for which neither test is as unlikely as `likely`; infinite where nothing is excluded."""
        low = _edge(lambda gain: self.p_no_harm(-gain) <= likely)
        return low, -_edge(lambda gain: self.p_harm(gain) <= likely)

    def _p(self, groups: Sequence[Any], sign: int, most: int = _MOST_SAMPLED) -> float:
        if not groups:
            return 1.0
        centered = _centered(groups)
        sizes = [len(tuned) for tuned, _rest in groups]
        found = sign * sum(sum(values[:size]) for values, size in zip(centered, sizes)) - 1e-12
        if self.count <= _MOST_EXACT:
            ways = [[sum(chosen) for chosen in combinations(values, size)] for values, size in zip(centered, sizes)]
            return sum(sign * sum(sums) >= found for sums in product(*ways)) / self.count
        coin, extreme = random.Random(self._seed), 0
        for drawn in range(1, most + 1):
            extreme += sign * sum(_sum_of(coin, values, size) for values, size in zip(centered, sizes)) >= found
            if extreme == _ENOUGH:
                return extreme / drawn
        return (extreme + 1) / (most + 1)


def _centered(groups: Sequence[Any]) -> List[List[float]]:
    """The gains of each stratum around their mean; outliers count, but can't carry it away."""
    around = []
    for tuned, rest in groups:
        middle = median([*tuned, *rest])
        around.append([gain - middle for gain in (*tuned, *rest)])
    limit = _OUTLIER * median([abs(gain) for values in around for gain in values]) or math.inf
    clipped = [[max(-limit, min(limit, gain)) for gain in values] for values in around]
    return [[gain - sum(values) / len(values) for gain in values] for values in clipped]


def _edge(excluded: Callable[[float], bool]) -> float:
    """The largest gain, a logarithm, up to which all are excluded; -inf where none is."""
    low, high = -_FAR, _FAR
    if not excluded(low):
        return -math.inf
    for _halving in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def _sum_of(coin: random.Random, values: List[float], size: int) -> float:
    """The sum of so many of the values, drawn; they stay in the order in which this leaves them."""
    total, count, toss = 0.0, len(values), coin.random
    if size * 2 > count:
        return -_sum_of(coin, values, count - size)  # the sum of all is zero
    for place in range(size):
        other = place + int(toss() * (count - place))
        values[place], values[other] = values[other], values[place]
        total += values[place]
    return total


def p_missing(tuned: Sequence[bool], missing: Sequence[bool]) -> float:
    """How likely so many missing hosts among the tuned are by the draw alone (hypergeometric; Fisher)."""
    hosts, drawn, gone = len(tuned), sum(tuned), sum(missing)
    found = sum(is_tuned and is_gone for is_tuned, is_gone in zip(tuned, missing))
    ways = math.comb(hosts, drawn)
    more = range(found, min(drawn, gone) + 1)
    return sum(math.comb(gone, count) * math.comb(hosts - gone, drawn - count) for count in more) / ways
