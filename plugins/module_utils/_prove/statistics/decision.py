# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a record, with its reason. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from typing import List, Mapping, Sequence, Tuple

from ..._words import counted
from . import rules
from .evidence import NEEDED
from .history import History, capped, differences, levels
from .interval import estimate, percent
from .keeping import average, missing, stays
from .record import Record
from .rules import BETTER, CAPPED, SAME, UNCLEAR, WORSE
from .settings import Settings

_NOT_EXCLUDED = "isn't excluded"
_BEYOND_CHANCE = 3.0  # standard deviations
_WORDS = {BETTER: "better", WORSE: "worse", SAME: "the same"}


def has_primary(history: History) -> bool:
    """Whether the primary metric was measured."""
    return history.primary in [metric.name for metric in history.kinds]


def biased_state(history: History) -> str:
    """The state in which guards voided more pairs than chance explains, which biases the others; "" for none."""
    return rules.lopsided_state([attempt for attempt in history.pairs if attempt.over and not attempt.valid])


def ends(record: Record, history: History) -> bool:
    """Whether nothing more of the whole tuning is to be measured."""
    return rules.pairs_end(record, history) and not soaks(record, history)


def soaks(record: Record, history: History) -> bool:
    """Whether stays follow, because the tuning would be kept, and too little is known of what it does for that."""
    settings = record.start.settings
    if not settings.soak or not rules.pairs_end(record, history):
        return False
    answer = _decide_pairs(record, history)[0]
    if not rules.may_stay(settings, history, answer):
        return False
    further = settings.most_in_stays - len(history.soaks)
    # After a reboot nothing is left of the other state: the pairs themselves are of stays, and tuned loads follow.
    loads = 1 if settings.reboot else 2 * settings.stay(history.pairs[-1].pair)
    if stays.within_pair(record) or further < loads:
        return stays.within_pair(record)
    least = _least(settings, answer)
    if _contradicted(settings, history, least):
        return False
    shown = stays.shown(settings, history, least)
    losses = stays.losses(settings, history) if shown else {}
    if any(losses.values()):
        return False
    if missing.excluded(settings, history):
        return not shown or bool(losses)
    if shown and missing.looks_risen(settings, history):
        return False
    return missing.excluded(settings, history, further if settings.reboot else further // 2)


def _least(settings: Settings, answer: rules.Answer) -> float:
    """What the tuning has to exceed in stays to be kept, a logarithm of a ratio."""
    return 0.0 if answer.verdict == BETTER else -rules.margin_of(settings)


def _contradicted(settings: Settings, history: History, least: float) -> bool:
    """Whether the stays contradict what the pairs claim."""
    return stays.contradict(settings, history, estimate(differences(history.pairs, history.primary)), least)


def answer_of(record: Record, history: History) -> "Tuple[rules.Answer, List[str]]":
    """The verdict with its reason, and further reasons to report."""
    answer, further = _decide_pairs(record, history)
    settings = record.start.settings
    if not settings.soak or not rules.may_stay(settings, history, answer) or not ends(record, history):
        return answer, further
    least = _least(settings, answer)
    contradicted = _contradicted(settings, history, least)
    shown = not contradicted and stays.shown(settings, history, least)
    for name, looks in stays.losses(settings, history).items() if shown else ():
        limit = settings.guard.get(name, settings.limit_of(name))
        words = f"looks {limit:g} % worse" if looks else f"may have lost {limit:g} %"
        return rules.Answer(UNCLEAR, f"{answer.reason}, but {name} {words} in stays"), further
    figure = min(missing.missing(settings, history), key=lambda figure: figure.evidence)
    too_few = f"{_NOT_EXCLUDED}, for which the loads of prove_soak ({settings.soak}) are too few"
    if figure.evidence < NEEDED and not contradicted:
        risen = f"a rise by {figure.rise:.0f} % of the loads {_NOT_EXCLUDED if figure.tuned else too_few}"
        return rules.Answer(UNCLEAR, f"{answer.reason}, but {missing.sentence(figure)}: {risen}"), further
    if not shown:
        pairs = counted(len(stays.differences(settings, history)), "pair")
        reason = f"{answer.reason} right after switches, but not in {pairs} of stays: what a switch leaves behind"
        return rules.Answer(UNCLEAR, f"{reason} {_NOT_EXCLUDED if contradicted else too_few}"), further
    if average.least_gain(history, bool(record.start.restart)) <= least:
        reason = f"{answer.reason} in a typical load, but the mean may have lost: a few loads are much worse"
        return rules.Answer(UNCLEAR, reason), further
    return answer, further


def _decide_pairs(record: Record, history: History) -> "Tuple[rules.Answer, List[str]]":
    """What follows from the pairs and from what went wrong, before the tuning stays."""
    obstacle = rules.obstacle(record, history)
    if obstacle is not None:
        return obstacle, []
    if not has_primary(history):
        return rules.Answer(UNCLEAR, "the run ended before anything was measured"), []
    if rules.sham_differs(history):
        return rules.Answer(
            UNCLEAR,
            f"all {rules.MOST_SHAMS} sham pairs, in which nothing was changed, differ in the same direction: the"
            " measurement itself favors one state; check what the load leaves behind",
        ), []
    answer = _by_evidence(record, history)
    biased = biased_state(history)
    limited = capped(history.repeated)
    if biased and answer.verdict in (BETTER, WORSE, SAME):
        return rules.Answer(
            CAPPED if limited else UNCLEAR,
            f"guards voided more attempts in the {biased} state than chance explains, so the remaining pairs are"
            f" biased (they look {_WORDS[answer.verdict]})",
        ), []
    if limited and answer.verdict in (SAME, UNCLEAR) and rules.pairs_end(record, history):
        reason = f"{limited}: what the tuning would bring without that limit can't be measured"
        return rules.Answer(CAPPED, reason), [answer.reason]
    failed = rules.failures_when_tuned(history)[0]
    if failed and answer.verdict != WORSE:
        return rules.Answer(
            UNCLEAR,
            f"the load failed in {counted(len(failed), 'measurement')} of the tuned host, and in none of the untuned"
            f" host, which may be chance: {failed[-1]}",
        ), [answer.reason]
    return answer, []


def after_switches(effects: Mapping[str, float], names: Mapping[str, str]) -> str:
    """What switches leave behind in each state, where it outweighs what the states differ by."""
    phrases = [
        f"{abs(percent(effect)):.1f} % {'better' if effect > 0 else 'worse'} right after a switch to {names[state]}"
        for state, effect in effects.items()
    ]
    return (
        f"{' and '.join(phrases)} than later in the same state, which outweighs what the states differ by: let the host"
        " settle longer, or let the load run once before it is measured"
    )


def _by_evidence(record: Record, history: History) -> "rules.Answer":
    settings = record.start.settings
    harmed = rules.harmed_metrics(history)
    if harmed:
        return rules.Answer(WORSE, f"{' and '.join(harmed)} became worse")
    word = rules.settled_verdict(settings, history)
    pairs = len(differences(history.pairs, history.primary))
    if word == UNCLEAR:
        return rules.Answer(UNCLEAR, "the pairs show both a gain and a loss: the effect changed during the run")
    reasons = {
        SAME: f"{history.primary} changes by less than {settings.margin:g} %, if at all",
        BETTER: f"{history.primary} is better with evidence of more than {NEEDED:.0f}:1",
        WORSE: f"{history.primary} is worse with evidence of more than {NEEDED:.0f}:1",
    }
    uncleared = rules.uncleared_metrics(settings, history) if rules.pairs_done(settings, history) else []
    if word == BETTER and uncleared:
        losses = [f"{name} may have lost {settings.limit_of(name):g} % or more" for name in uncleared]
        return rules.Answer(UNCLEAR, f"{reasons[word]}, but {' and '.join(losses)}: {pairs} pairs don't exclude that")
    if word:
        return rules.Answer(word, reasons[word], by_primary=True)
    unsettled = rules.unsettled_states(settings, history)
    explanations = _explanations(settings, history, unsettled)
    if pairs >= settings.pairs and explanations:
        effects = after_switches(explanations, {state: state for state in explanations})
        return rules.Answer(UNCLEAR, f"{history.primary} is {effects}")
    if pairs >= settings.pairs:
        reason = f"{pairs} pairs, the most allowed, don't decide whether {history.primary} changed"
        return rules.Answer(UNCLEAR, reason, undecided=not unsettled)
    return rules.Answer(UNCLEAR, f"the run isn't over: {pairs} of at most {settings.pairs} pairs")


def _explanations(settings: Settings, history: History, unsettled: Mapping[str, float]) -> Mapping[str, float]:
    """Of the unsettled states those that explain why there is no verdict.

    All of them if they alone prevent one. Otherwise those that differ by more than chance: the noise of a load that
    varies much makes medians differ too.
    """
    if rules.shown_verdict(settings, differences(history.pairs, history.primary), NEEDED, history.wagers):
        return unsettled
    samples = levels(history, "")
    return {state: effect for state, effect in unsettled.items() if rank_sum_score(*samples[state]) > _BEYOND_CHANCE}


def rank_sum_score(first: Sequence[float], second: Sequence[float]) -> float:
    """Standard deviations between the rank sum of two samples and that of equal ones (Mann and Whitney, 1947)."""
    pairs = len(first) * len(second)
    larger = sum((left > right) + (left == right) / 2 for left in first for right in second)
    return abs(larger - pairs / 2) / math.sqrt(pairs * (len(first) + len(second) + 1) / 12)
