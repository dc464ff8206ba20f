# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pairs of one metric as a picture: where each dot, line and band is. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from typing import List, NamedTuple, Sequence, Tuple

from ....module_utils._prove.statistics.history import Attempt, History
from ....module_utils._prove.statistics.interval import Comparison, Interval, interval, percent
from ....module_utils._prove.statistics.metrics import SMALLER
from ....module_utils._prove.statistics.record import SHAM
from ....module_utils._prove.statistics.settings import Settings
from .. import figures

WIDTH, HEIGHT = 420, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 8, 10, 34
_CHARACTER = 11  # at most so wide is one of a label, on average, in the larger letters of a phone
_STEPS = 24  # pairs at which the band is drawn, as each takes its time
_TICKS = (1, 2, 5)


class Dot(NamedTuple):
    """One pair."""

    x: float
    y: float
    tuned_second: bool
    says: str
    sham: bool = False


class Line(NamedTuple):
    """A level line or a tick of an axis."""

    at: float
    label: str


class Plot(NamedTuple):
    """One metric: a dot for each pair, the interval after each, the margin, and nothing."""

    metric: Comparison
    dots: Tuple[Dot, ...]
    band: str  # points of a polygon; empty while nothing is excluded
    margins: Tuple[float, float]
    zero: float
    left: float  # where the levels begin, right of their labels
    levels: Tuple[Line, ...]
    pairs: Tuple[Line, ...]
    shams_end: float  # where the pairs begin, right of those that compare a state with itself
    says: str  # for whom can't see it


def plot_of(history: History, settings: Settings, metric: Comparison) -> Plot:
    """The picture of one metric, in its own percent: a latency that falls goes down."""
    shams = [attempt for attempt in history.shams if attempt.valid]
    attempts = [attempt for attempt in history.pairs if attempt.valid]
    sign = -1 if metric.better == SMALLER else 1
    gains = [attempt.difference(metric.name) for attempt in attempts]
    gains_in_percent = [percent(sign * gain) for gain in gains]
    of_shams = [percent(sign * attempt.difference(metric.name)) for attempt in shams]
    spans = [(count, interval(gains[:count], metric.needed, history.wagers)) for count in _counts(len(gains))]
    drawn = [(count, _ends(span, sign)) for count, span in spans if math.isfinite(span.low) or math.isfinite(span.high)]
    margin = settings.margin
    lowest = min([*gains_in_percent, *of_shams, -margin * 1.5]) * 1.1
    highest = max([*gains_in_percent, *of_shams, margin * 1.5]) * 1.1
    # The sham pairs are left of the first pair, as 1 - their number to 0.
    numbered = list(zip(range(1 - len(shams), len(gains) + 1), [*shams, *attempts], [*of_shams, *gains_in_percent]))
    levels = [(level, _label(level)) for level in _levels(lowest, highest)]
    left_edge = max(_LEFT, *(_CHARACTER * len(label) + 6 for _level, label in levels))
    across = (WIDTH - left_edge - _RIGHT) / max(1, len(numbered))

    def x(pair: float) -> float:
        return round(left_edge + (pair + len(shams) - 0.5) * across, 1)

    def y(value: float) -> float:
        within = max(lowest, min(highest, value))
        return round(_TOP + (highest - within) / (highest - lowest) * (HEIGHT - _TOP - _BOTTOM), 1)

    upper = [f"{x(count)},{y(ends[1])}" for count, ends in drawn]
    lower = [f"{x(count)},{y(ends[0])}" for count, ends in reversed(drawn)]
    return Plot(
        metric=metric,
        dots=tuple(_dot(attempt, x(pair), y(value), value) for pair, attempt, value in numbered),
        band=" ".join([*upper, *lower]) if len(drawn) > 1 else "",
        margins=(y(-margin), y(margin)),
        zero=y(0.0),
        left=left_edge,
        levels=tuple(Line(y(level), label) for level, label in levels),
        pairs=tuple(Line(x(pair), str(pair)) for pair in marked(len(gains_in_percent))),
        shams_end=x(0.5),
        says=(
            f"{metric.name}, change in percent of each of {len(gains_in_percent)} pairs in their order;"
            f" {sum(value > 0 for value in gains_in_percent)} rose, {sum(value < 0 for value in gains_in_percent)} fell"
            f"; before them {len(shams)} of a state with itself"
        ),
    )


def _dot(attempt: Attempt, x: float, y: float, value: float) -> Dot:
    order = "second" if attempt.tuned_second else "first"
    sham = attempt.phase == SHAM
    name, rest = ("A/A pair", f"{attempt.measurements[0].host_state} twice") if sham else ("pair", f"tuned {order}")
    return Dot(
        x, y, attempt.tuned_second and not sham, f"{name} {attempt.pair}: {figures.percent(value)}, {rest}", sham
    )


def _ends(span: Interval, sign: int) -> Tuple[float, float]:
    low, high = (span.low, span.high) if sign > 0 else (-span.high, -span.low)
    return (percent(low) if low < 5 else math.inf), (percent(high) if high < 5 else math.inf)


def _counts(pairs: int) -> List[int]:
    """At which pairs the band is drawn."""
    step = max(1, math.ceil(pairs / _STEPS))
    return sorted({*range(pairs, 0, -step)})


def marked(pairs: int) -> Sequence[int]:
    """The pairs that the axis names."""
    step = _round((pairs + 1) / 6)
    return range(max(1, int(step)), pairs + 1, max(1, int(step)))


def _levels(lowest: float, highest: float) -> List[float]:
    """Round levels between the two, nothing among them."""
    step = _round((highest - lowest) / 5)
    return [step * number for number in range(math.ceil(lowest / step), math.floor(highest / step) + 1)]


def _label(level: float) -> str:
    return f"{level:+g} %".replace("-", "−") if level else "0 %"


def _round(size: float) -> float:
    """The least of 1, 2, 5, 10, 20 … that is as large, in any decade."""
    decade = float(10 ** math.floor(math.log10(size)))
    return next((tick * decade for tick in _TICKS if tick * decade >= size), 10 * decade)
