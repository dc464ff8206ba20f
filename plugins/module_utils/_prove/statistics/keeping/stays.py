# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tuning does where nothing is switched: pairs of stays, before a tuning is kept.

Pure. PRIVATE to the collection.

A load right after a switch shows what the tuning does, and what the switch and the loads before it leave behind. The
coin protects from what time does, and from nothing of that. So the host stays in each state for several loads, of which
the first `burn_in` don't count; which stay of a pair comes first is the coin. If it is the state in which the host is,
only the loads that count are added. The difference of two stays is that of the means of their last loads: if the tuning
does nothing that lasts, the coin alone decided its sign, as long as nothing is left behind for more than `burn_in`
loads. So the evidence is that of the pairs.
"""

from __future__ import annotations

import math
from typing import Dict, List, Sequence, Tuple

from .. import history as pairs
from .. import rules
from ..evidence import NEEDED, peak
from ..history import History
from ..interval import estimate
from ..order import TUNED, UNTUNED, order
from ..record import PAIR, SOAK, Record, Start
from ..settings import Settings
from . import average

_WAGERS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # on a difference as large as the claimed one


def within_pair(record: Record) -> bool:
    """Whether a pair of stays has begun and isn't over."""
    last, settings = record.measurements[-1] if record.measurements else None, record.start.settings
    if settings.reboot or last is None or last.phase != SOAK:
        return False
    return last.state == _order(record.start, last.pair)[0] or last.attempt < settings.stay(_pairs(record))


def _pairs(record: Record) -> int:
    return next((load.pair for load in reversed(record.measurements) if load.phase == PAIR), 0)


def following(record: Record) -> Tuple[int, int, str]:
    """The pair of stays, the number in its stay and the state of the load that follows the last one."""
    start, last = record.start, record.measurements[-1]
    if start.settings.reboot:
        return 1, last.attempt + 1 if last.phase == SOAK else 1, TUNED
    if last.phase != SOAK:
        return 1, 1, _order(start, 1)[0]
    first, second = _order(start, last.pair)
    if last.attempt < start.settings.stay(_pairs(record)):
        return last.pair, last.attempt + 1, last.state
    if last.state == first:
        return last.pair, 1, second
    state = _order(start, last.pair + 1)[0]
    return last.pair + 1, start.settings.burn_in + 1 if state == last.state else 1, state


def _order(start: Start, pair: int) -> Tuple[str, str]:
    return order(start.settings.seed, start.host, SOAK, pair, 1)


def differences(settings: Settings, history: History, name: str = "") -> List[float]:
    """ln(tuned / untuned) of a metric, or of the primary, in each pair of stays that has loads of both.

    Without what time does between the two, as far as the pairs before tell: the slope from the first to the last. It is
    known before the coin decides, so the evidence holds whatever the slope is.
    """
    stays: Dict[Tuple[int, str], List[Tuple[int, float]]] = {}
    for number, attempt in enumerate(history.soaks):
        if attempt.valid and attempt.attempt > settings.burn_in:
            level = attempt.level(attempt.measurements[0], name or history.primary)
            stays.setdefault((attempt.pair, attempt.measurements[0].state), []).append((number, level))
    last = history.pairs[-1].pair if history.pairs else 0
    going_on = {attempt.pair for attempt in history.soaks[-1:] if attempt.attempt < settings.stay(last)}
    found: List[float] = []
    middles: List[Tuple[float, float]] = []
    for pair in sorted({pair for pair, _state in stays} - going_on):
        if (pair, TUNED) in stays and (pair, UNTUNED) in stays:
            (at, tuned), (untuned_at, untuned) = (_middle(stays[pair, state]) for state in (TUNED, UNTUNED))
            slope = (middles[-1][1] - middles[0][1]) / (middles[-1][0] - middles[0][0]) if middles[1:] else 0.0
            found.append(tuned - untuned - slope * (at - untuned_at))
            middles.append(_middle([(at, tuned), (untuned_at, untuned)]))
    return found


def _middle(points: "Sequence[Tuple[float, float]]") -> Tuple[float, float]:
    return average.mean(place for place, _level in points), average.mean(level for _place, level in points)


def weigh(settings: Settings, history: History) -> Tuple[Tuple[float, ...], float]:
    """What is wagered on a pair of stays, by what the pairs claim, and how far one counts at most: one in which the
    host's level jumped must not outweigh all others."""
    claimed = max(abs(estimate(pairs.differences(history.pairs, history.primary))), math.log1p(settings.margin / 100))
    return tuple(wager / claimed for wager in _WAGERS), claimed


def shown(settings: Settings, history: History, least: float) -> bool:
    """Whether the stays show that the tuning does more than `least`, a logarithm of a ratio."""
    found = differences(settings, history)
    return settings.reboot or peak(found, least, *weigh(settings, history)).above >= NEEDED


def losses(settings: Settings, history: History) -> Dict[str, bool]:
    """The further metrics of which the stays, or the mean of all loads, don't exclude the loss of their limit; and
    whether that looks like what happens: more loads would hardly exclude it."""
    found: Dict[str, bool] = {}
    for name in () if settings.reboot else rules.secondary_metrics(history):
        limit, changes = math.log1p(settings.limit_of(name) / 100), differences(settings, history, name)
        mean, least = average.gain(history, name)
        allowed = limit if settings.guard.get(name, limit) else 0.0  # with a limit of 0 the mean may lose nothing
        evidence = peak(changes, -limit, tuple(wager / limit for wager in _WAGERS), limit).above
        looks = estimate(changes) <= -limit or mean < -allowed
        if looks or least <= -limit or evidence < rules.needed_for_secondary(history):
            found[name] = looks
    return found


def contradict(settings: Settings, history: History, claimed: float, least: float) -> bool:
    """Whether they show that it does less than the middle of that and of what the pairs claim, or look so when they
    show that it does more: then no more follow, as a gain that fades so far may go on to."""
    found, middle = differences(settings, history), (claimed + least) / 2
    evidence = peak(found, middle, *weigh(settings, history)).below
    return evidence >= NEEDED or (bool(found) and estimate(found) < middle and shown(settings, history, least))
