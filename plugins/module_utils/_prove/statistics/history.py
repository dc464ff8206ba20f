# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record as attempts at pairs, and which of them count. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from collections import Counter
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..._words import counted
from .evidence import COARSE, LAMBDAS
from .guards import GENERATOR_SHARE, LIMITS, SATURATED_SHARE, Firing, Reference, firings_of
from .metrics import SMALLER, Metric
from .order import TUNED, UNTUNED
from .record import EACH, FORMAT_3, PAIR, SHAM, SOAK, WARM_UP, Measurement, Record


class Attempt(NamedTuple):
    """One try at a pair. It ends with its second measurement, or with the first guard that fires."""

    phase: str
    pair: int
    attempt: int
    measurements: Tuple[Measurement, ...]
    firings: Tuple[Firing, ...]
    concern: str = ""  # in EACH the concern that the untuned state is without
    added: Mapping[str, float] = {}  # to each metric that is 0 somewhere in the run

    @property
    def valid(self) -> bool:
        """Whether both states were measured and no guard fired."""
        return len(self.measurements) == self._loads and not self.firings

    @property
    def over(self) -> bool:
        """Whether nothing more is measured in it."""
        return len(self.measurements) == self._loads or bool(self.firings)

    @property
    def _loads(self) -> int:
        return 1 if self.phase == SOAK else 2

    def difference(self, name: str) -> float:
        """ln(tuned / untuned) of a metric, with the sign turned where smaller is better."""
        levels = {measurement.state: self.level(measurement, name) for measurement in self.measurements}
        return levels["tuned"] - levels["untuned"]

    def level(self, measurement: Measurement, name: str) -> float:
        """ln of a metric, with what is added to one that is 0 somewhere; the sign is turned where smaller is better."""
        metric = next(metric for metric in measurement.metrics if metric.name == name)
        logarithm = math.log(metric.value + self.added.get(name, 0.0))
        return -logarithm if metric.better == SMALLER else logarithm

    @property
    def tuned_second(self) -> bool:
        """Whether the coin put the tuned state second."""
        return self.measurements[-1].state == TUNED


Judged = Tuple[Tuple[Measurement, Tuple[Firing, ...]], ...]  # each measurement with what voided it


class History(NamedTuple):
    """What a record says, in attempts."""

    warm_ups: Tuple[Attempt, ...]  # of one measurement each
    shams: Tuple[Attempt, ...]
    pairs: Tuple[Attempt, ...]
    kinds: Tuple[Metric, ...]  # the metrics of the first measurement that didn't fail
    primary: str  # the metric that decides; empty as long as nothing was measured
    parts: Mapping[str, Tuple[Attempt, ...]] = {}  # concern → the pairs with it and without it
    wagers: Tuple[float, ...] = LAMBDAS  # by which the differences are judged
    soaks: Tuple[Attempt, ...] = ()  # the loads before the tuning is kept, of one measurement each
    judged: Judged = ()

    @property
    def less_is_better(self) -> bool:
        """Whether the primary metric is one of which less is better, such as a time."""
        return any(kind.name == self.primary and kind.better == SMALLER for kind in self.kinds)

    @property
    def tries(self) -> Tuple[Attempt, ...]:
        """The attempts at sham pairs and pairs of the whole tuning that are over."""
        return tuple(attempt for attempt in (*self.shams, *self.pairs) if attempt.over)

    @property
    def repeated(self) -> Tuple[Attempt, ...]:
        """The attempts that don't count."""
        return tuple(attempt for attempt in self.tries if not attempt.valid)

    @property
    def guards(self) -> "Counter[str]":
        """How many attempts each guard voided."""
        return guards_of(self.repeated)

    def attempts(self, concern: str) -> "Tuple[Attempt, ...]":
        """The attempts at the pairs of a concern; "" is the whole tuning."""
        return self.parts.get(concern, ()) if concern else self.pairs


Levels = Mapping[str, Tuple[List[float], List[float]]]


def levels(history: History, concern: str) -> Levels:
    """State → the logarithms of the primary metric right after a switch to it, and of the others in that state.

    Of a concern only those of its own pairs: what a switch of all settings leaves behind may be something else.
    """
    levels_of: Levels = {UNTUNED: ([], []), TUNED: ([], [])}
    last = "" if concern else UNTUNED
    for attempt in (*(() if concern else history.shams), *history.attempts(concern)):
        for measurement in attempt.measurements:
            if attempt.valid and last:
                stayed = measurement.host_state == last
                levels_of[measurement.host_state][stayed].append(attempt.level(measurement, history.primary))
            last = measurement.host_state
    return levels_of


def history_of(record: Record) -> History:
    """The attempts of a record, with the guards that fired in them."""
    attempts_of: Dict[str, List[Attempt]] = {WARM_UP: [], SHAM: [], PAIR: [], SOAK: []}
    parts: Dict[str, List[Attempt]] = {}
    judged, reference = _judge(record)
    added = _added(record)
    for measurement, firings in judged:
        part = measurement.phase == EACH
        attempts = parts.setdefault(measurement.concern, []) if part else attempts_of[measurement.phase]
        _put(attempts, measurement, firings, added)
    kinds = reference.kinds
    primary = record.start.settings.primary or (kinds[0].name if kinds else "")
    return History(
        warm_ups=tuple(attempts_of[WARM_UP]),
        shams=tuple(attempts_of[SHAM]),
        pairs=tuple(attempts_of[PAIR]),
        kinds=kinds,
        primary=primary,
        parts={concern: tuple(attempts) for concern, attempts in parts.items()},
        wagers=LAMBDAS if record.start.format > FORMAT_3 else COARSE,
        soaks=tuple(attempts_of[SOAK]),
        judged=judged,
    )


# The record that was judged last, with what came of it: a run asks after each load, and its earlier ones stay the same.
_last: "List[Tuple[Record, Judged, Reference]]" = []


def _judge(record: Record) -> "Tuple[Judged, Reference]":
    """Each measurement with what voided it, and what the next one will be compared with."""
    judged: Judged = ()
    reference = Reference(
        clients=tuple(record.start.load_on.split(", ")),
        generator_share=SATURATED_SHARE if record.start.format > FORMAT_3 else GENERATOR_SHARE,
    )
    for known, of_known, after in _last:
        if (known.start, known.measurements) == (record.start, record.measurements[: len(of_known)]):
            judged, reference = of_known, after
    new = []
    for measurement in record.measurements[len(judged) :]:
        firings = firings_of(measurement, reference, record.start.settings)
        new.append((measurement, firings))
        reference = reference.with_measurement(measurement, firings)
    judged = (*judged, *new)
    _last[:] = [(record, judged, reference)]
    return judged, reference


def _added(record: Record) -> Mapping[str, float]:
    """What is added to each metric that is 0 somewhere: one, or its smallest other value, if that is smaller."""
    values: Dict[str, List[float]] = {}
    for load in record.measurements:
        for metric in load.metrics:
            values.setdefault(metric.name, []).append(metric.value)
    return {name: min([1.0, *filter(None, of)]) for name, of in values.items() if not all(of)}


def _put(
    attempts: List[Attempt], measurement: Measurement, firings: Tuple[Firing, ...], added: Mapping[str, float]
) -> None:
    key = (measurement.phase, measurement.pair, measurement.attempt)
    if attempts and attempts[-1][:3] == key:
        last = attempts[-1]
        attempts[-1] = last._replace(measurements=(*last.measurements, measurement), firings=(*last.firings, *firings))
    else:
        attempts.append(Attempt(*key, (measurement,), firings, measurement.concern, added))


def guards_of(attempts: Sequence[Attempt]) -> "Counter[str]":
    """How many of the attempts each guard voided."""
    return Counter(guard for attempt in attempts for guard in {firing.guard for firing in attempt.firings})


def capped(attempts: Sequence[Attempt]) -> str:
    """What limit voided how many of the attempts, in words; empty if none did."""
    found = [{LIMITS[firing.guard] for firing in attempt.firings if firing.guard in LIMITS} for attempt in attempts]
    words = " or ".join(sorted(set().union(*found)))
    return f"in {counted(sum(map(bool, found)), 'attempt')} {words}" if words else ""


def differences(attempts: Sequence[Attempt], name: str) -> List[float]:
    """The differences of a metric in the pairs that count, in their order."""
    return [attempt.difference(name) for attempt in attempts if attempt.valid]
