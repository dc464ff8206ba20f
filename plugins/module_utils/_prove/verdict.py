# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came of a run: its verdict, the reasons, and the figures of a report. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove import forecast, rules
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.evidence import NEEDED, most, p_value
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.guards import unwatched
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.history import (
    Attempt,
    History,
    differences,
    history_of,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.interval import estimate, interval
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.metrics import SMALLER, Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.order import TUNED, UNTUNED
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.record import Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.rules import BETTER, CAPPED, SAME, UNCLEAR, WORSE
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.settings import FEWEST_PAIRS, NOT_WORSE

_WORDS = {BETTER: "better", WORSE: "worse", SAME: "the same"}


class Comparison(NamedTuple):
    """One metric, tuned against untuned. Changes are percent of the metric itself: a latency that falls is negative."""

    name: str
    unit: str
    better: str  # larger | smaller
    primary: bool
    change: Optional[float]  # None without pairs
    low: Optional[float]  # the interval; None: nothing is excluded on this side yet
    high: Optional[float]
    evidence: float  # to 1, for an effect on the side that has more; `needed` decides
    needed: float  # 20, for the others times their number
    p: float  # at most: 1 / evidence
    not_worse: bool  # whether more harm than the margin is excluded


class Sham(NamedTuple):
    """Untuned against untuned, of the primary metric. Percent."""

    pairs: int
    change: Optional[float]
    low: Optional[float]  # the range of the differences, as so few have no interval of 95 %
    high: Optional[float]


class Verdict(NamedTuple):
    """What came of a run, as far as its record goes."""

    verdict: str  # one of rules.VERDICTS
    reasons: Tuple[str, ...]  # sentences
    by_primary: bool  # whether the primary metric decided, and nothing else
    over: bool  # whether nothing more is to be measured: next_step says DECIDE
    keep: bool  # whether the tuning stays, by the setting `keep`; else the host is restored
    metrics: Tuple[Comparison, ...]  # the primary first
    pairs: int  # that count
    pairs_at_most: int
    repeated: Mapping[str, int]  # guard -> attempts that it voided, at sham pairs too
    repeated_in: Mapping[str, int]  # state -> attempts that a guard voided in it
    carry_over: Optional[float]  # percent, of the primary: the second measurement of a pair against the first
    noise: Optional[float]  # percent: standard deviation of the pairs' differences
    smallest_visible: Optional[float]  # percent: the effect that all pairs together show in four runs of five
    pairs_needed: Optional[int]  # for the effect that the user would like to see
    seconds_left: Optional[float]  # at most, without repetitions
    sham: Sham
    unwatched: Tuple[str, ...]  # guards that had nothing to watch
    seed: int

    def as_dict(self) -> Dict[str, Any]:
        """The verdict as plain JSON data."""
        content = self._asdict()
        content["metrics"] = [metric._asdict() for metric in self.metrics]
        content["sham"] = self.sham._asdict()
        return {name: list(value) if isinstance(value, tuple) else value for name, value in content.items()}


def verdict(record: Record) -> Verdict:
    """The verdict that follows from the record; of a run that isn't over, what its pairs say so far."""
    history, settings = history_of(record), record.start.settings
    answer, others = _answer(record, history)
    found = differences(history.pairs, history.primary) if _measured(history) else []
    shams = differences(history.shams, history.primary) if _measured(history) else []
    deviation = forecast.noise(found if len(found) >= FEWEST_PAIRS else [*shams, *found])
    seconds = forecast.seconds_of_pair([*history.shams, *history.pairs])
    over = rules.ends(record, history)
    metrics = _comparisons(record, history)
    return Verdict(
        verdict=answer.verdict,
        reasons=(answer.reason, *others),
        by_primary=answer.by_primary,
        over=over,
        keep=over and _keeps(record, history, answer, metrics),
        metrics=metrics,
        pairs=len(found),
        pairs_at_most=settings.pairs,
        repeated=dict(history.guards.most_common()),
        repeated_in=_by_state(history.repeated),
        carry_over=_carry_over(history),
        noise=None if deviation is None else _percent(deviation),
        smallest_visible=(
            None if deviation is None else _percent(forecast.smallest_visible(deviation, settings.pairs))
        ),
        pairs_needed=(
            None if deviation is None else forecast.pairs_needed(deviation, math.log1p(settings.effect / 100))
        ),
        seconds_left=None if seconds is None else 0.0 if over else seconds * (settings.pairs - len(found)),
        sham=_sham(shams),
        unwatched=unwatched(record.measurements),
        seed=settings.seed,
    )


def _measured(history: History) -> bool:
    return history.primary in [metric.name for metric in history.kinds]


def _answer(record: Record, history: History) -> "Tuple[rules.Answer, List[str]]":
    """The verdict with its reason, and what else has to be said."""
    hindered = rules.obstacle(record, history)
    if hindered is not None:
        return hindered, []
    if not _measured(history):
        return rules.Answer(UNCLEAR, "the run ended before anything was measured"), []
    if rules.sham_differs(history):
        return rules.Answer(
            UNCLEAR,
            f"{rules.MOST_SHAMS} of {rules.MOST_SHAMS} sham pairs, in which nothing was changed, differ in one"
            " direction: the way of measuring favors a state; look at what the load leaves behind",
        ), []
    answer = _by_evidence(record, history)
    uncertain = rules.not_cleared(record.start.settings, history) if answer.verdict == BETTER else []
    selected = rules.lopsided([attempt for attempt in history.pairs if attempt.over and not attempt.valid])
    capped = history.guards["allowance"]
    if selected and answer.verdict in (BETTER, WORSE, SAME):
        return rules.Answer(
            CAPPED if capped else UNCLEAR,
            f"guards voided more attempts in the {selected} state than chance explains, so the pairs that are left are"
            f" a selection (they look {_WORDS[answer.verdict]})",
        ), []
    if capped and answer.verdict in (SAME, UNCLEAR) and rules.ends(record, history):
        return rules.Answer(
            CAPPED,
            f"in {capped} attempts the instance's network or disk allowance was exceeded: what the tuning could bring"
            " beyond it can't be seen",
        ), [answer.reason]
    if uncertain:
        return answer, [
            f"that {' and '.join(uncertain)} lost {record.start.settings.margin:g} % or more isn't excluded"
        ]
    return answer, []


def _by_evidence(record: Record, history: History) -> "rules.Answer":
    settings = record.start.settings
    harmed = rules.harmed(history)
    if harmed:
        return rules.Answer(WORSE, f"{' and '.join(harmed)} became worse")
    word = rules.decision(settings, history)
    pairs = len(differences(history.pairs, history.primary))
    if word == UNCLEAR:
        return rules.Answer(UNCLEAR, "the pairs show both a gain and a loss: the effect changed during the run")
    said = {
        SAME: f"{history.primary} changes by less than {settings.margin:g} %, if at all",
        BETTER: f"{history.primary} is better with evidence of more than {NEEDED:.0f}:1",
        WORSE: f"{history.primary} is worse with evidence of more than {NEEDED:.0f}:1",
    }
    suspected = rules.suspected(settings, history) if rules.pairs_done(settings, history) else []
    if word == BETTER and suspected:
        return rules.Answer(
            UNCLEAR,
            f"{said[word]}, but {' and '.join(suspected)} may have lost {settings.margin:g} % or more, which {pairs}"
            " pairs don't decide",
        )
    if word:
        return rules.Answer(word, said[word], by_primary=True)
    if pairs >= settings.pairs:
        reason = f"{pairs} pairs, as many as allowed, don't decide about {history.primary}"
        return rules.Answer(UNCLEAR, reason, undecided=True)
    return rules.Answer(UNCLEAR, f"the run isn't over: {pairs} of at most {settings.pairs} pairs")


def _keeps(record: Record, history: History, answer: "rules.Answer", metrics: Sequence[Comparison]) -> bool:
    """Whether the tuning stays. Under `not_worse` it does without a decision too, if more harm to the primary metric
    than the margin is excluded; a verdict that something else hindered never keeps it, nor does a metric that looks
    harmed."""
    if answer.verdict == BETTER:
        return True
    settings = record.start.settings
    if settings.keep != NOT_WORSE or rules.suspected(settings, history):
        return False
    return answer.verdict == SAME or (answer.undecided and metrics[0].not_worse)


def _comparisons(record: Record, history: History) -> Tuple[Comparison, ...]:
    kinds = sorted(history.kinds, key=lambda metric: metric.name != history.primary)
    return tuple(_comparison(record, history, metric) for metric in kinds)


def _comparison(record: Record, history: History, metric: Metric) -> Comparison:
    primary = metric.name == history.primary
    found = differences(history.pairs, metric.name)
    needed = NEEDED if primary else rules.needed_of_others(history)
    span = interval(found, needed)
    sign = -1 if metric.better == SMALLER else 1
    low, high = (span.low, span.high) if sign > 0 else (-span.high, -span.low)
    # After an effect that changed during the run, the interval of all pairs may exclude their middle.
    middle = max(low, min(high, sign * estimate(found)))
    return Comparison(
        name=metric.name,
        unit=metric.unit,
        better=metric.better,
        primary=primary,
        change=_percent(middle) if found else None,
        low=_percent(low) if math.isfinite(low) else None,
        high=_percent(high) if math.isfinite(high) else None,
        evidence=max(most(found)),
        needed=needed,
        p=p_value(found),
        not_worse=span.low > -rules.margin_of(record.start.settings),
    )


def _sham(found: Sequence[float]) -> Sham:
    if not found:
        return Sham(0, None, None, None)
    return Sham(len(found), _percent(estimate(found)), _percent(min(found)), _percent(max(found)))


def _carry_over(history: History) -> Optional[float]:
    """Half of what the differences are larger when the tuned state is second; None if it always has one position."""
    attempts = [attempt for attempt in history.pairs if attempt.valid]
    second = [attempt.difference(history.primary) for attempt in attempts if attempt.tuned_second]
    first = [attempt.difference(history.primary) for attempt in attempts if not attempt.tuned_second]
    return _percent((estimate(second) - estimate(first)) / 2) if first and second else None


def _by_state(attempts: Sequence[Attempt]) -> Dict[str, int]:
    states = [rules.firing_state(attempt) for attempt in attempts]
    return {state: states.count(state) for state in (UNTUNED, TUNED)}


def _percent(logarithm: float) -> float:
    """A logarithm of a ratio as a change in percent."""
    return 100 * math.expm1(logarithm)
