# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules by which a run goes on, ends early, or has its answer. Pure. PRIVATE to the collection."""

from __future__ import annotations

import itertools
import math
from statistics import median
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .evidence import NEEDED, peak
from .guards import GUARDS, LIMITS, Firing
from .history import Attempt, History, differences, levels
from .interval import estimate
from .order import TUNED, UNTUNED
from .record import SHAM, Record
from .settings import NOT_WORSE, Settings

BETTER, WORSE, SAME, UNCLEAR = "better", "worse", "same", "unclear"
CAPPED, NOT_QUIET, UNSAFE = "capped", "not_quiet", "unsafe"
VERDICTS = (BETTER, WORSE, SAME, UNCLEAR, CAPPED, NOT_QUIET, UNSAFE)

WINDOW, MOST_WARM_UPS = 3, 5
FEWEST_SHAMS, MOST_SHAMS = 3, 8
# A host isn't quiet when so many attempts don't count, and they are more than a third.
MANY_REPEATED, REPEATED_SHARE = 4, 1 / 3
# A load that fails so often when tuned, and never when untuned, may be broken by the tuning.
MANY_FAILED = 2
# Where each switch starts programs anew, the tuning is kept after so many starts of them at least, as one start in ten
# may be bad: of 35 none is in 2.5 % of runs.
FEWEST_STARTS = 35
# What a switch leaves behind is judged from so many measurements with it, and so many without.
FEWEST_OF_STATE = 2
# Guards that fire in one state more often than chance explains in 1 of 20 runs make its pairs a selection. A load that
# does so is broken.
LOPSIDED = 0.05


class Answer(NamedTuple):
    """A verdict, and why; one sentence."""

    verdict: str  # one of VERDICTS
    reason: str
    by_primary: bool = False  # whether the primary metric decided
    undecided: bool = False  # all pairs were measured, and show neither a change nor the lack of one


def obstacle(record: Record, history: History) -> Optional[Answer]:
    """What ends a run whatever was measured; None while nothing does."""
    unhealthy = _unhealthy(history)
    if unhealthy:
        return Answer(UNSAFE, f"after a switch to {unhealthy[0].state} the host wasn't healthy: {unhealthy[0].detail}")
    ended = _ends_when_tuned(history)
    if ended:
        return Answer(UNSAFE, f"{ended} after a switch to tuned, and after none to untuned")
    failed = _failures(history.warm_ups)
    if failed:
        return Answer(UNCLEAR, f"the load failed before any pair was measured: {failed[0].detail}")
    broken, chance = failures_when_tuned(history)
    if chance < LOPSIDED:
        return Answer(
            UNSAFE,
            f"the load failed in {len(broken)} measurements of the tuned host, and in none of the untuned host:"
            f" {broken[-1]}",
        )
    names = [metric.name for metric in history.kinds]
    if names and history.primary not in names:
        return Answer(UNCLEAR, f"primary is {history.primary}, but the command prints {', '.join(names)}")
    if len(history.warm_ups) >= MOST_WARM_UPS and not has_settled(record.start.settings, history):
        return _unsettled_answer(history)
    repeated, tries = len(history.repeated), len(history.tries)
    if too_many_repeated(repeated, tries):
        guard = history.guards.most_common(1)[0][0]
        reason = f"{repeated} of {tries} pairs had to be repeated, most because of {GUARDS[guard]}"
        states = {firing_state(attempt) for attempt in history.repeated}
        if len(states) == 1 and not any(attempt.phase == SHAM for attempt in history.repeated):
            reason += f", each time in the {states.pop()} state"
        return Answer(CAPPED if guard in LIMITS else NOT_QUIET, reason)
    return None


def too_many_repeated(repeated: int, tries: int) -> bool:
    """Whether so many attempts had to be repeated that the host isn't quiet."""
    return repeated >= MANY_REPEATED and repeated > tries * REPEATED_SHARE


def failures_when_tuned(history: History) -> "Tuple[List[str], float]":
    """Why the load failed when the host was tuned, if it did so twice or more, and never when it was untuned; and how
    probable that is of a load that fails now and then, whatever the state.

    A host without a single concern is neither of the two.
    """
    parts = [attempt for attempts in history.parts.values() for attempt in attempts]
    tries = [*history.tries, *history.soaks]
    if any(firing.state != TUNED for firing in _failures(tries)):
        return [], 1.0
    failed = [firing.detail for firing in _failures([*tries, *parts]) if firing.state == TUNED]
    if len(failed) < MANY_FAILED:
        return [], 1.0
    loads = [measurement for attempt in (*history.warm_ups, *tries) for measurement in attempt.measurements]
    untuned = sum(measurement.host_state != TUNED for measurement in loads)
    loads += [measurement for attempt in parts if attempt.over for measurement in attempt.measurements]
    tuned = sum(measurement.host_state == TUNED for measurement in loads)
    return failed, math.comb(tuned, len(failed)) / math.comb(tuned + untuned, len(failed))


def _failures(attempts: Sequence[Attempt], guard: str = "load") -> List[Firing]:
    return [firing for attempt in attempts for firing in attempt.firings if firing.guard == guard]


def _unhealthy(history: History) -> List[Firing]:
    """The switches after which the host wasn't healthy; the first one ends the run."""
    parts = [attempt for attempts in history.parts.values() for attempt in attempts]
    return _failures([*history.warm_ups, *history.shams, *history.pairs, *history.soaks, *parts], "health")


def _ends_when_tuned(history: History) -> str:
    """Which program that serves the load ended when the host was tuned, and never otherwise; "" unless it did so again,
    or the load failed next."""
    found = [
        (index, firing)
        for index, (_load, firings) in enumerate(history.judged)
        for firing in firings
        if firing.guard == "program"
    ]
    if not found or any(firing.state != TUNED for _index, firing in found):
        return ""
    next_loads = [load.error for index, _firing in found for load, _firings in history.judged[index + 1 : index + 2]]
    return found[-1][1].detail if len(found) >= MANY_FAILED or any(next_loads) else ""


def _unsettled_answer(history: History) -> Answer:
    disturbed = [firing.guard for attempt in history.warm_ups for firing in attempt.firings]
    if disturbed:
        limited = CAPPED if disturbed[0] in LIMITS else NOT_QUIET
        return Answer(limited, f"the warm-up was disturbed by {GUARDS[disturbed[0]]}")
    return Answer(
        NOT_QUIET,
        f"the load doesn't settle: the last {WINDOW} of {MOST_WARM_UPS} warm-up measurements only rose or only fell;"
        " let the load run longer before prove, or measure longer",
    )


def has_settled(settings: Settings, history: History) -> bool:
    """Whether the load has warmed up: its last three measurements neither only rise nor only fall, or hardly.

    Noise goes up and down, whatever its size: five values in a row rise or fall by chance in 1 of 60 runs. A load
    that warms up goes one way. The spread of three values, compared with their own deviation, can't tell a steady
    rise from agreement.
    """
    undisturbed = [attempt.measurements[0] for attempt in history.warm_ups if not attempt.firings]
    values = [
        metric.value for measurement in undisturbed for metric in measurement.metrics if metric.name == history.primary
    ]
    if settings.reboot:
        return bool(values)  # the load works; its warm-up begins again with each boot
    last = values[-WINDOW:]
    if len(last) < WINDOW:
        return False
    steps = [after - before for before, after in zip(last, last[1:])]
    return not _one_sign(steps) or math.log((max(last) + (not min(last))) / (min(last) or 1)) <= margin_of(settings)


def margin_of(settings: Settings) -> float:
    """The margin as a logarithm of a ratio."""
    return math.log1p(settings.margin / 100)


def shams_done(history: History) -> bool:
    """Whether enough sham pairs were measured: three, or up to eight while all of their differences have one sign.

    Three can't exclude anything: a coin gives them one sign in 1 of 4 runs. Eight of one sign come in 1 of 128 runs.
    """
    changes = differences(history.shams, history.primary)
    return len(changes) >= (MOST_SHAMS if _one_sign(changes) else FEWEST_SHAMS)


def sham_differs(history: History) -> bool:
    """Whether untuned differs from untuned: then the way of measuring does, and no verdict can be trusted."""
    changes = differences(history.shams, history.primary)
    return len(changes) >= MOST_SHAMS and _one_sign(changes)


def _one_sign(values: Sequence[float]) -> bool:
    return all(value > 0 for value in values) or all(value < 0 for value in values)


def harmed_metrics(history: History) -> List[str]:
    """The other metrics that are shown to be worse, each at its share of the 5 %."""
    needed = needed_for_secondary(history)
    return [
        name
        for name in secondary_metrics(history)
        if peak(differences(history.pairs, name), 0.0, history.wagers).below >= needed
    ]


def uncleared_metrics(settings: Settings, history: History) -> List[str]:
    """The other metrics that may still have lost their limit, or look as if they had lost the margin: nothing is kept
    while there are any.

    The more metrics there are, the more pairs it takes to show that one is harmed, however large the harm is.
    """
    needed = needed_for_secondary(history)
    uncleared = []
    for name in secondary_metrics(history):
        changes = differences(history.pairs, name)
        excluded = peak(changes, -math.log1p(settings.limit_of(name) / 100), history.wagers).above >= needed
        limit = settings.guard.get(name, settings.margin)
        looks_harmed = bool(changes) and (estimate(changes) <= -math.log1p(limit / 100) if limit else sum(changes) < 0)
        if looks_harmed or not excluded:
            uncleared.append(name)
    return uncleared


def needed_for_secondary(history: History) -> float:
    """The evidence that decides about one of the other metrics."""
    return NEEDED * max(1, len(secondary_metrics(history)))


def secondary_metrics(history: History) -> List[str]:
    """The names of the metrics that only guard against harm."""
    return [metric.name for metric in history.kinds if metric.name != history.primary]


def settled_verdict(settings: Settings, history: History, concern: str = "", needed: float = NEEDED) -> str:
    """What the pairs of a concern, or of the whole tuning (""), show at so much evidence: BETTER, WORSE or SAME;
    UNCLEAR if they contradict each other; "" to go on: also while what switches leave behind outweighs it, or is known
    of too few measurements and more may follow. Of a gain the stays show that."""
    changes = differences(history.attempts(concern), history.primary)
    word = shown_verdict(settings, changes, needed, history.wagers)
    if not word or word == UNCLEAR or settings.reboot or (word == BETTER and settings.soak and not concern):
        return word
    known = switch_effects(history, concern)
    unknown = len(known) < len((UNTUNED, TUNED)) and len(changes) < settings.pairs
    return "" if unknown or unsettled_states(settings, history, concern) else word


def shown_verdict(settings: Settings, changes: Sequence[float], needed: float, wagers: Sequence[float]) -> str:
    """What these differences show at so much evidence, in the same words."""
    margin = margin_of(settings)
    nothing = peak(changes, 0.0, wagers)
    better, worse = nothing.above >= needed, nothing.below >= needed
    if better and worse:
        return UNCLEAR
    if better or worse:
        return BETTER if better else WORSE
    same = peak(changes, -margin, wagers).above >= needed and peak(changes, margin, wagers).below >= needed
    return SAME if same else ""


def unsettled_states(settings: Settings, history: History, concern: str = "") -> Dict[str, float]:
    """State → how much better its measurements right after a switch to it are than its others, in the states in which
    that is more than the margin and than the change itself, with what the switches add to it or without.

    The coin protects from what time does, and from nothing that a switch does: a state that is slow until its first
    load has ended would lose to any other.
    """
    if settings.reboot:
        return {}
    effects = switch_effects(history, concern)
    changes = differences(history.attempts(concern), history.primary)
    change = estimate(changes)
    settled = change - effects.get(TUNED, 0.0) + effects.get(UNTUNED, 0.0)
    bound = max(min(abs(change), abs(settled)), margin_of(settings))
    return {state: effect for state, effect in effects.items() if abs(effect) > bound}


def switch_effects(history: History, concern: str) -> Dict[str, float]:
    """State → ln of how much better it is right after a switch to it; without a state of which too little is known."""
    return {
        state: median(switched) - median(stayed)
        for state, (switched, stayed) in levels(history, concern).items()
        if min(len(switched), len(stayed)) >= FEWEST_OF_STATE
    }


def lopsided_state(attempts: Sequence[Attempt]) -> str:
    """The state in which guards fired more often than chance explains; "" where none is.

    Under chance each firing belongs to either state by our coin, so their number is binomial.
    """
    states = [firing_state(attempt) for attempt in attempts]
    tuned, untuned = states.count(TUNED), states.count(UNTUNED)
    if binomial(min(tuned, untuned), tuned + untuned) >= LOPSIDED:
        return ""
    return TUNED if tuned > untuned else UNTUNED


def firing_state(attempt: Attempt) -> str:
    """The state whose measurement voided the attempt."""
    return attempt.firings[0].state if attempt.firings else ""


def binomial(fewer: int, count: int) -> float:
    """The probability that a fair coin shows its rarer side at most `fewer` times in `count`; two-sided, exact."""
    tail: int = sum(math.comb(count, hits) for hits in range(fewer + 1))
    return min(1.0, tail / 2 ** (count - 1)) if count else 1.0


def may_stay(settings: Settings, history: History, answer: Answer) -> bool:
    """Whether the setting `keep` lets the tuning stay with this answer.

    Under `not_worse` it does without a decision too, if more harm to the primary metric than the margin is excluded; a
    verdict that something else hindered never keeps it, nor does a metric that may be harmed.
    """
    if answer.verdict == BETTER:
        return True
    if settings.keep != NOT_WORSE or uncleared_metrics(settings, history):
        return False
    changes = differences(history.pairs, history.primary)
    not_worse = peak(changes, -margin_of(settings), history.wagers).above >= NEEDED
    return answer.verdict == SAME or (answer.undecided and not_worse)


def pairs_end(record: Record, history: History) -> bool:
    """Whether no more pairs of the whole tuning are to be measured."""
    if obstacle(record, history) is not None or sham_differs(history):
        return True
    settings = record.start.settings
    if pairs_done(settings, history) or harmed_metrics(history):
        return True
    word = settled_verdict(settings, history)
    keeps = word == BETTER or (word == SAME and settings.keep == NOT_WORSE)
    few_starts = record.start.restart and settings.soak and _counted(history) < FEWEST_STARTS
    return bool(word) and not (keeps and (few_starts or uncleared_metrics(settings, history)))


def most_reboots(settings: Settings) -> int:
    """How often the host is rebooted at most, whatever has to be repeated; for the soak, and for the way back."""
    counted = settings.pairs + MOST_SHAMS
    repeated = next(number for number in itertools.count() if too_many_repeated(number, counted + number))
    return 2 * (counted + repeated) + bool(settings.soak) + 1


def pairs_done(settings: Settings, history: History) -> bool:
    """Whether as many pairs were measured as are allowed."""
    return _counted(history) >= settings.pairs


def _counted(history: History) -> int:
    return sum(attempt.valid for attempt in history.pairs)
