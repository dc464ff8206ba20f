# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instance of a type differs from its sisters: a ranking, and who is the odd one out. Pure. PRIVATE.

The assumption that is tested: each host's figure is drawn from one normal distribution of logarithms, so hosts may
differ, and none is special. Then the distance of a host from the mean of its sisters, in units of their own spread,
has Student's distribution with as many degrees of freedom as there are sisters, less one (the test of Grubbs,
Technometrics 11, 1969, in its other form). Every host of every ranking in a report is tested, so the 5 % are shared
out among all of them (Bonferroni). A host's figure is the median of its runs; repeating a run makes it steadier, and
adds no host to compare with.

Runs that are disturbed are not normal: so most runs of a host must show half of the difference or more, and they must
be of several days.
"""

from __future__ import annotations

import math
from statistics import fmean, median, stdev
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...module_utils._prove.statistics.metrics import SMALLER
from .store import Entry

_HALVINGS = 200  # of an interval of doubles: more change nothing
ALPHA = 0.05  # of all reports whose hosts are equal may name one
FEWEST_HOSTS = 4  # of one type: with three, a host must differ by 40 times the spread
FEWEST_RUNS = 5  # of each host
FEWEST_DAYS = 2
MARGIN = 0.02  # a smaller difference counts as none, as in prove
_MOST_RUNS_SHOW = 0.75  # of the runs, half of the difference
_LEAST_SPREAD = 0.001  # figures that agree to the last digit were rounded
_DAY = 86400  # seconds
_LARGEST_LOGARITHM = 700.0  # beyond it the percentage overflows a float


def tail_probability(distance: float, degrees: int) -> float:
    """The probability that t lies farther from zero than `distance`, on either side.

    By the finite series of Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
    """
    if math.isinf(distance):
        return 0.0
    angle = math.atan(abs(distance) / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for number in range(2 + odd, degrees - 1, 2):
        term *= cosine**2 * (number - 1) / number
        total += term
    within = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(1.0, max(0.0, 1 - within))


def quantile(probability: float, degrees: int) -> float:
    """The distance from zero beyond which t lies with this probability, on both sides together."""
    low, high = 0.0, 1.0
    while tail_probability(high, degrees) > probability:
        high *= 2
    for _halving in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if tail_probability(middle, degrees) > probability else (low, middle)
    return high


class Ranked(NamedTuple):
    """One host."""

    host: str
    value: float  # the median of its runs
    change: Optional[float] = None  # percent against the mean of its sisters; above zero: better
    low: Optional[float] = None
    high: Optional[float] = None
    odd: bool = False
    alone_with: str = ""  # what distinguishes an odd one from all its sisters: "kernel 5.10.1"


class Ranking(NamedTuple):
    """The hosts of one type under one benchmark, the best first."""

    benchmark: str
    options: str
    instance_type: str
    versions: Tuple[str, ...]
    metric: str
    unit: str
    better: str
    runs: int  # of each host
    days: int
    hosts: Tuple[Ranked, ...]
    left_out: Tuple[str, ...]  # hosts with too few runs
    visible: Optional[float] = None  # percent: the smallest difference of one host that would be seen
    obstacle: str = ""  # why nobody is judged


_Runs = Mapping[str, Sequence[Entry]]  # of each host in a ranking, the oldest first


def rankings(runs: Mapping[str, Sequence[Entry]], hosts: Iterable[str]) -> Tuple[Ranking, ...]:
    """The rankings in which one of these hosts is, of everything that was recorded."""
    named = set(hosts)
    groups: Dict[Tuple[str, ...], Dict[str, List[Entry]]] = {}
    for host, entries in runs.items():
        instance = (entries[-1].instance, entries[-1].instance_type)  # that the name means now
        for entry in entries:
            if entry.instance_type and (entry.instance, entry.instance_type) == instance:
                groups.setdefault(_key(entry), {}).setdefault(host, []).append(entry)
    chosen = [members for _key_of_group, members in sorted(groups.items()) if len(members) > 1 and named & set(members)]
    judged = [_enough(members) for members in chosen]
    tests = sum(len(members) for members in judged if len(members) >= FEWEST_HOSTS)
    return tuple(_ranking(members, enough, tests) for members, enough in zip(chosen, judged))


def _key(entry: Entry) -> Tuple[str, ...]:
    metric = entry.metrics[0]
    versions = "\n".join(entry.versions)
    return (entry.benchmark, entry.instance_type, entry.options, versions, metric.name, metric.unit, metric.better)


def _days(entries: Sequence[Entry]) -> int:
    return len({entry.at // _DAY for entry in entries})


def _enough(members: _Runs) -> _Runs:
    return {
        host: entries
        for host, entries in members.items()
        if len(entries) >= FEWEST_RUNS and _days(entries) >= FEWEST_DAYS
    }


def _ranking(members: _Runs, enough: _Runs, tests: int) -> Ranking:
    some = next(iter(members.values()))[-1]
    metric = some.metrics[0]
    judged = len(enough) >= FEWEST_HOSTS
    compared = enough if judged else members
    count = min(map(len, compared.values()))
    latest = {host: entries[-count:] for host, entries in compared.items()}
    ranked = [Ranked(host, median(entry.metrics[0].value for entry in entries)) for host, entries in latest.items()]
    visible, obstacle = None, ""
    if judged:
        ranked, visible = _judged(ranked, latest, tests)
    else:
        needed = f"{FEWEST_HOSTS} hosts of the type, each with {FEWEST_RUNS} runs on at least {FEWEST_DAYS} days"
        obstacle = f"nobody is judged: that takes {needed}; {len(enough)} of {len(members)} have them"
    ranked.sort(key=lambda host: (host.value if metric.better == SMALLER else -host.value, host.host))
    return Ranking(
        benchmark=some.benchmark,
        options=some.options,
        instance_type=some.instance_type,
        versions=some.versions,
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        runs=count,
        days=min(map(_days, latest.values())),
        hosts=tuple(ranked),
        left_out=tuple(sorted(set(members) - set(compared))),
        visible=visible,
        obstacle=obstacle,
    )


def _judged(ranked: Sequence[Ranked], runs: _Runs, tests: int) -> Tuple[List[Ranked], float]:
    # The logarithms, with the sign turned where smaller is better.
    metrics = {host: [entry.metrics[0] for entry in entries] for host, entries in runs.items()}
    gains = {
        host: [(-1 if metric.better == SMALLER else 1) * math.log(metric.value) for metric in of_host]
        for host, of_host in metrics.items()
    }
    centers = {host: median(values) for host, values in gains.items()}
    reach = quantile(ALPHA / tests, len(ranked) - 2) * math.sqrt(1 + 1 / (len(ranked) - 1))
    judgements = []
    for host in ranked:
        sisters = [center for name, center in centers.items() if name != host.host]
        mean, width = fmean(sisters), reach * _spread(sisters)
        distance = centers[host.host] - mean
        odd = abs(distance) > max(width, MARGIN) and _lasts(gains[host.host], mean, distance)
        judgements.append(
            host._replace(
                change=_percent(distance),
                low=_percent(distance - width),
                high=_percent(distance + width),
                odd=odd,
                alone_with=_alone_with(host.host, runs) if odd else "",
            )
        )
    others = [centers[host.host] for host in judgements if not host.odd]
    return judgements, max(_percent(reach * _spread(others)), 100 * MARGIN)


def _spread(values: Sequence[float]) -> float:
    return max(stdev(values) if len(values) > 1 else 0.0, _LEAST_SPREAD)


def _lasts(gains: Sequence[float], mean: float, distance: float) -> bool:
    """Whether most runs show half of the difference, so that it isn't that of single hours."""
    shares = [(gain - mean) / distance >= 0.5 for gain in gains]
    return sum(shares) >= _MOST_RUNS_SHOW * len(shares)


def _alone_with(host: str, runs: _Runs) -> str:
    kernel = runs[host][-1].kernel
    other_kernels = {entries[-1].kernel for name, entries in runs.items() if name != host}
    return f"kernel {kernel}" if kernel and kernel not in other_kernels else ""


def _percent(distance: float) -> float:
    return 100 * math.expm1(min(distance, _LARGEST_LOGARITHM))
