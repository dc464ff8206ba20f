# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long answers took, as counts that can be added: of several clients, and never their percentiles. Pure. PRIVATE.

The percentiles of all answers don't follow from those of each client, and least of all from their mean.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Sequence, Tuple

from ..._error import NearmetalError
from ..._prove.statistics.metrics import LARGER, SMALLER, Metric, other_kinds

Histogram = Tuple[Tuple[float, int], ...]  # microseconds, and how many answers took that long, the soonest first
MOST_BINS = 20000
_MANY = 10000  # answers, ten of which are later than p99.9
_SHARE = "%"  # the unit of what several clients don't add up
_LATE = 3  # times the soonest median of several rates: beyond it, answers come late
_TOGETHER = 0.8  # of the longest load that all of them run at the same time


def histogram_of(bins: Any) -> Histogram:
    """The counts of any origin, in their order. Raises ValueError for anything else."""
    counts: Dict[float, int] = {}
    if not isinstance(bins, (list, tuple)) or len(bins) > MOST_BINS:
        raise ValueError("the answers' times aren't a list of counts")
    for entry in bins:
        us, count = tuple(entry) if isinstance(entry, (list, tuple)) and len(entry) == 2 else (True, 0)
        numbers = not isinstance(us, bool) and isinstance(us, (int, float)) and 0 <= us < 1e12
        if not numbers or isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**53:
            raise ValueError("an answer's time isn't a number with its count")
        counts[float(us)] = counts.get(float(us), 0) + count
    return tuple(sorted((us, count) for us, count in counts.items() if count))


def percentile(histogram: Histogram, percent: float) -> float:
    """Microseconds within which so many percent of the answers came."""
    needed, seen = math.ceil(sum(count for _us, count in histogram) * percent / 100), 0
    for us, count in histogram:
        seen += count
        if seen >= needed:
            return us
    return 0.0


def mean(histogram: Histogram) -> float:
    """Microseconds that an answer took on average."""
    return sum(us * count for us, count in histogram) / sum(count for _us, count in histogram)


def times(prefix: str, histogram: Histogram) -> Dict[str, Metric]:
    """The mean, the median and the late answers, in ms; one in a thousand only where enough answers came to tell."""
    late = (("p99.9", 99.9),) if sum(count for _us, count in histogram) >= _MANY else ()
    values = {name: percentile(histogram, percent) for name, percent in (("p50", 50.0), ("p99", 99.0), *late)}
    values["mean"] = mean(histogram)
    return {prefix + name: Metric(prefix + name, us / 1000, "ms", SMALLER) for name, us in values.items()}


def details(histograms: Mapping[str, Histogram], figures: Sequence[Metric]) -> Dict[str, float]:
    """What the histograms say beside these figures, in ms."""
    known = {name: metric for prefix, each in histograms.items() for name, metric in times(prefix, each).items()}
    named = [metric.name for metric in figures]
    return {f"{name}_ms": round(metric.value, 4) for name, metric in known.items() if name not in named}


def last_early(medians: Sequence[float]) -> int:
    """The place of the knee among the medians at rising rates: the last at which half of the answers aren't late.

    By medians, because single late answers, by which a 99th percentile jumps, also come at low rates.
    """
    return max(place for place, median in enumerate(medians) if median <= _LATE * min(medians))


def require_together(clients: Sequence[str], spans: Sequence[Any]) -> None:
    """Raises NearmetalError for loads that didn't run at the same time, whose sum no server ever had to bear."""
    try:
        ends = [(float(began), float(ended)) for began, ended in spans]
    except (TypeError, ValueError):
        raise NearmetalError("when the clients' loads ran isn't known") from None
    longest = max(ended - began for began, ended in ends)
    shared = min(ended for _began, ended in ends) - max(began for began, _ended in ends)
    if not longest >= shared >= _TOGETHER * longest:
        last = clients[max(range(len(ends)), key=lambda number: ends[number])]
        raise NearmetalError(
            f"the loads of {len(clients)} clients ran together for {max(shared, 0.0):.1f} of {longest:.1f} s, so their"
            f" figures can't be added: {last} began last; compare the clients' clocks, or measure longer"
        )


def added(
    clients: Sequence[str], figures: Sequence[Sequence[Metric]], histograms: Sequence[Any], spans: Sequence[Any]
) -> Tuple[Tuple[Metric, ...], Dict[str, Histogram]]:
    """The figures of several clients as those of one load, and its histograms, by how the names of figures begin.

    Rates are added, and what a histogram says is said by all of them together. Of any other figure, such as the
    percentile of a tool without a histogram or a share, the worst client's counts. Raises NearmetalError for figures
    that can't be added, and for loads that didn't run together.
    """
    require_together(clients, spans)
    for client, kinds in zip(clients, figures):
        difference = other_kinds(tuple(figures[0]), tuple(kinds))
        if difference:
            raise NearmetalError(f"{client} has other figures than {clients[0]}: {difference}")
    try:
        by_client = [{name: histogram_of(bins) for name, bins in dict(each or {}).items()} for each in histograms]
    except (ValueError, TypeError) as error:
        raise NearmetalError(f"the clients' figures can't be added: {error}") from None
    merged = {
        str(name): histogram_of([entry for each in by_client for entry in each[name]])
        for name in by_client[0]
        if all(each.get(name) for each in by_client)
    }
    known = {name: metric for prefix, each in merged.items() for name, metric in times(prefix, each).items()}
    total = []
    for metric in figures[0]:
        values = [other.value for each in figures for other in each if other.name == metric.name]
        add = metric.better == LARGER and metric.unit != _SHARE
        worst = min(values) if metric.better == LARGER else max(values)
        total.append(known.get(metric.name, metric._replace(value=sum(values) if add else worst)))
    return tuple(total), merged
