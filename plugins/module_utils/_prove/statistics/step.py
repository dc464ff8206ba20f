# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be done next in a run. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ..._error import NearmetalError
from . import rules, single_concerns
from .decision import soaks
from .history import Attempt, history_of
from .keeping import stays
from .order import TUNED, UNTUNED, order
from .record import EACH, FORMAT_3, PAIR, SHAM, SOAK, WARM_UP, Record

MEASURE, DECIDE = "measure", "decide"


class Step(NamedTuple):
    """One step, as data: run the load in a state, or decide.

    phase, pair, attempt and state belong into the Measurement as they are. `switch_to` is the state in which the
    host must be: the same under both labels of a sham pair, tuned in each third, by the same code as a real switch.
    """

    action: str  # MEASURE | DECIDE
    phase: str = ""
    pair: int = 0
    attempt: int = 0
    state: str = ""
    switch_to: str = ""
    concern: str = ""  # in EACH: untuned is tuned but for this concern
    stays: bool = False  # the host is in that state already, and isn't switched


def next_step(record: Record) -> Step:
    """What follows from the record alone: the same after a crash as without it."""
    if stays.within_pair(record) and not record.measurements[-1].error:
        return _in_stay(record)
    history = history_of(record)
    if rules.pairs_end(record, history):
        if soaks(record, history):
            return _in_stay(record)
        waiting = single_concerns.waiting_concerns(record, history)
        return _in_pair(record, EACH, history.attempts(waiting[0]), waiting[0]) if waiting else Step(DECIDE)
    if not rules.has_settled(record.start.settings, history):
        return Step(MEASURE, WARM_UP, len(history.warm_ups) + 1, 1, UNTUNED, UNTUNED)
    if not rules.shams_done(history):
        return _in_pair(record, SHAM, history.shams)
    return _in_pair(record, PAIR, history.pairs)


def _in_stay(record: Record) -> Step:
    """The next load of the stays. A state that goes on is not switched."""
    last = record.measurements[-1]
    pair, load, state = stays.following(record)
    return Step(MEASURE, SOAK, pair, load, state, state, stays=last.phase == SOAK and last.state == state)


def _in_pair(record: Record, phase: str, attempts: Sequence[Attempt], concern: str = "") -> Step:
    pair, attempt, position = 1, 1, 0
    if attempts:
        last = attempts[-1]
        if not last.over:
            pair, attempt, position = last.pair, last.attempt, 1
        elif last.valid:
            pair = last.pair + 1
        else:
            pair, attempt = last.pair, last.attempt + 1
    coin = f"{phase} {concern}" if concern else phase
    state = order(record.start.settings.seed, record.start.host, coin, pair, attempt)[position]
    of_sham = TUNED if pair % 3 == 0 and record.start.format > FORMAT_3 else UNTUNED
    return Step(MEASURE, phase, pair, attempt, state, of_sham if phase == SHAM else state, concern)


def check(record: Record) -> None:
    """Raises NearmetalError when a measurement isn't the one that the seed and the lines before it ask for."""
    for index, measurement in enumerate(record.measurements):
        before = record._replace(measurements=record.measurements[:index], end=None)
        step = next_step(before)
        if measurement[:4] == (WARM_UP, index + 1, 1, UNTUNED) and index < rules.MOST_WARM_UPS:
            continue  # earlier versions took equal values for a rise, and warmed up longer
        if (*measurement[:4], measurement.concern, measurement.host_state) != (
            *step[1:5],
            step.concern,
            step.switch_to,
        ):
            raise NearmetalError(f"line {index + 2} of the record doesn't follow from the seed and the lines before it")
