# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixed rate of a run's loads: a share of what the untuned host answers before it is late. Pure. PRIVATE."""

from __future__ import annotations

from statistics import median
from typing import Any, Callable, Mapping

from ....module_utils._benchmark.tools import histogram, registry
from ....module_utils._error import NearmetalError
from ....module_utils._prove.statistics.metrics import LARGER, metrics_of
from ....module_utils._words import shown

# The benchmarks that hold a rate, and the figure that decides at one, because the rate itself is then the same.
PRIMARY: Mapping[str, str] = {"key_value": "get_p99", "web": "p99", "cache": "p99"}
STEPS = tuple(range(40, 110, 10))  # percent of the most that is answered
_FIRST = 3  # loads without a rate, by whose median the most is known

Load = Mapping[str, Any]


def require_rated(options: Mapping[str, Any]) -> None:
    """Raise NearmetalError for a load that can't hold a rate."""
    if options["reboot"]:
        raise NearmetalError("prove.at_knee and prove.reboot exclude each other: the knee is that of one boot")
    if options["benchmark"] not in PRIMARY or options["benchmark_options"].get("rate"):
        raise NearmetalError(
            f"prove.at_knee finds the rate of a benchmark that can hold one, {', '.join(PRIMARY)}, and whose options"
            f" have none yet; prove.benchmark is {shown(options['benchmark'])}"
        )


def load_at(percent: int, load: str, clients: int, run: Callable[[str], Load], show: Callable[[str], None]) -> str:
    """The load with a rate of so many percent of the knee; `run` asks the untuned host. Raises NearmetalError.

    The knee is the highest of some rates at which the median of the answers comes within three times the soonest one.
    """
    most = median(_rate(run(load)) for _load in range(_FIRST))
    rates = [most * step / 100 for step in STEPS]
    knee = rates[histogram.last_early([_median_time(run(_offering(load, rate, clients))) for rate in rates])]
    offered = max(clients, round(knee * percent / 100))
    show(
        f"knee of the untuned host: {knee:,.0f} of at most {most:,.0f} requests a second; the loads offer {percent} %"
        f" of it, {offered:,}"
    )
    return _offering(load, offered, clients)


def _offering(load: str, rate: float, clients: int) -> str:
    name, options = registry.named(load)
    return registry.load_of(name, {**options, "rate": max(1, round(rate / clients))}, options["seconds"])


def _rate(load: Load) -> float:
    """Answers a second."""
    if load.get("code") != 0 or load.get("end"):
        raise NearmetalError(f"the knee of the untuned host can't be found: {load.get('message') or 'its load failed'}")
    figures = metrics_of(str(load.get("output")).encode("utf-8", "replace"))
    return sum(figure.value for figure in figures if figure.better == LARGER and figure.unit == "1/s")


def _median_time(load: Load) -> float:
    _rate(load)
    try:
        answers = [entry for bins in dict(load["histograms"]).values() for entry in bins]
        return max(1.0, histogram.percentile(histogram.histogram_of(answers), 50.0))
    except (KeyError, TypeError, ValueError) as error:
        raise NearmetalError(f"the knee of the untuned host can't be found: {error}") from None
