# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a load's command printed: its metrics, or what is wrong with them. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Tuple

from ..._error import NearmetalError
from ..._words import shown

LARGER, SMALLER = "larger", "smaller"
NAME = r"[A-Za-z][A-Za-z0-9_.%/-]{0,39}"
NAME_WORDS = "a letter, then at most 39 letters, digits or _ . % / -"
UNIT = r"[A-Za-z0-9µ%/._*-]{1,20}"
SMALLEST, LARGEST = 1e-100, 1e100  # a value: the ratio of any two, and its percent, are numbers of a report
MOST_METRICS = 8  # each one that guards against harm makes it harder to see the harm of another
MOST_BYTES = 64 * 1024
FORM = "`name value [unit] smaller|larger`"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_LONGEST_NUMBER = 40


class Metric(NamedTuple):
    """One figure of one measurement."""

    name: str
    value: float  # 0, or from SMALLEST to LARGEST
    unit: str = ""
    better: str = LARGER  # or SMALLER


def metrics_of(output: bytes) -> Tuple[Metric, ...]:
    """The metrics that a command printed, one a line, in its order. The first one is the primary by default.

    Raises NearmetalError that names the line and what is wrong with it.
    """
    if len(output) > MOST_BYTES:
        raise NearmetalError(f"the command printed more than {MOST_BYTES} bytes, the most that are read")
    metrics: List[Metric] = []
    for number, raw in enumerate(output.split(b"\n"), 1):
        try:
            line = raw.decode("utf-8").strip(" \t\r")
        except UnicodeDecodeError:
            raise NearmetalError(f"line {number} of the command's output isn't UTF-8") from None
        if line:
            metrics.append(_metric(line, number))
            _check_last(metrics, number)
    if not metrics:
        raise NearmetalError(f"the command printed nothing; it must print one metric per line: {FORM}")
    return tuple(metrics)


def other_kinds(first: Tuple[Metric, ...], second: Tuple[Metric, ...]) -> str:
    """How the metrics of the second measurement differ from those of the first, apart from their values; "" if not."""
    before, now = ({metric.name: metric for metric in metrics} for metrics in (first, second))
    differing = [f"without {name}" for name in before if name not in now]
    differing += [f"with {name}" for name in now if name not in before]
    differing += [
        f"{name} is {_kind(metric)}, not {_kind(before[name])}"
        for name, metric in now.items()
        if name in before and _kind(metric) != _kind(before[name])
    ]
    return "; ".join(differing or (["in another order"] if list(before) != list(now) else []))


def _kind(metric: Metric) -> str:
    unit = f"in {metric.unit}" if metric.unit else "without a unit"
    return f"{unit} ({metric.better} is better)"


def _metric(line: str, number: int) -> Metric:
    place = f"line {number} of the command's output"
    if not line.replace("\t", " ").isprintable():
        raise NearmetalError(f"{place} has control characters: {shown(line)}")
    words = line.split()
    if len(words) < 2 or len(words) > 4:
        raise NearmetalError(f"{place} is {shown(line)}, which isn't {FORM}")
    name, text, rest = words[0], words[1], words[2:]
    better = rest.pop() if rest and rest[-1] in (LARGER, SMALLER) else ""
    if len(rest) > 1:
        raise NearmetalError(
            f"{place} must end with {SMALLER} or {LARGER}, after one unit, not with {shown(words[-1])}"
        )
    if not re.fullmatch(NAME, name, re.ASCII):
        raise NearmetalError(f"{place} names its metric {shown(name)}, which must be {NAME_WORDS}")
    if rest and not re.fullmatch(UNIT, rest[0]):
        raise NearmetalError(
            f"{place} has the unit {shown(rest[0])}, which must be at most 20 letters, digits or % / . _ * - µ"
        )
    if not better:
        raise NearmetalError(
            f"{place} has {shown(name)}, but doesn't say which direction is better: end the line with {SMALLER} or"
            f" {LARGER}"
        )
    return Metric(name, _value(text, place), rest[0] if rest else "", better)


def _value(text: str, place: str) -> float:
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise NearmetalError(f"{place} has the value {shown(text)}; it must be a number, like 1234.5")
    value = float(text)
    if not text.lower().partition("e")[0].strip("+-0."):
        return 0.0
    if not SMALLEST <= value <= LARGEST:
        raise NearmetalError(
            f"{place} has the value {shown(text)}; it must be 0, or from {SMALLEST:g} to {LARGEST:g}, because states"
            " are compared by their ratio"
        )
    return value


def _check_last(metrics: List[Metric], number: int) -> None:
    if len(metrics) > MOST_METRICS:
        raise NearmetalError(
            f"line {number} of the command's output is metric {len(metrics)}; at most {MOST_METRICS} are read"
        )
    if metrics[-1].name in [metric.name for metric in metrics[:-1]]:
        raise NearmetalError(f"line {number} of the command's output names {metrics[-1].name} a second time")
