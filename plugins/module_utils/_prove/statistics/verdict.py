# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came of a run: its verdict, the reasons, and the figures of a report. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import forecast, rules, single_concerns
from .decision import answer_of, biased_state, ends, has_primary
from .evidence import NEEDED
from .guards import unwatched_guards
from .history import History, differences, history_of
from .interval import Comparison, comparison_of, estimate, percent
from .keeping import stays
from .keeping.missing import Missing, missing
from .order import TUNED, UNTUNED
from .record import Record
from .settings import FEWEST_PAIRS
from .single_concerns import Part


class Sham(NamedTuple):
    """A state against itself, of the primary metric. Percent."""

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
    differences: Tuple[float, ...]  # of the primary: ln(tuned / untuned) of each pair, with the sign of a gain
    selection: bool  # whether guards voided more of one state's pairs than chance explains
    several: str  # how the evidence of several hosts is put together
    parts: Tuple[Part, ...]  # what each concern does among the others, where that was asked
    missing: Tuple[Missing, ...]  # loads that failed, and those that a guard voided too
    soaked: int  # further loads before the tuning is kept
    stays: int  # pairs of stays among them; the primary of `metrics` is theirs, where there are any
    switched: Optional[Comparison]  # then what the pairs say of it, whose loads came right after a switch

    def as_dict(self) -> Dict[str, Any]:
        """The verdict as plain JSON data."""
        content = self._asdict()
        content["metrics"] = [metric._asdict() for metric in self.metrics]
        content["sham"] = self.sham._asdict()
        content["switched"] = self.switched and self.switched._asdict()
        content["missing"] = [missing._asdict() for missing in self.missing]
        content["parts"] = [{**part._asdict(), "comparison": part.comparison._asdict()} for part in self.parts]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in content.items()}


def verdict(record: Record) -> Verdict:
    """The verdict that follows from the record; of a run that isn't over, what its pairs say so far."""
    history, settings = history_of(record), record.start.settings
    answer, further_reasons = answer_of(record, history)
    pair_differences = differences(history.pairs, history.primary) if has_primary(history) else []
    shams = differences(history.shams, history.primary) if has_primary(history) else []
    deviation = forecast.noise(pair_differences, *([shams] if len(pair_differences) < FEWEST_PAIRS else []))
    seconds = forecast.seconds_of_pair([*history.shams, *history.pairs])
    ended = ends(record, history)
    over = ended and not single_concerns.waiting_concerns(record, history)
    metrics = _comparisons(record, history)
    firing = [rules.firing_state(attempt) for attempt in history.repeated]
    in_stays, switched = stays.differences(settings, history), None
    if in_stays:
        switched, kind = metrics[0], next(kind for kind in history.kinds if kind.name == history.primary)
        weighed = stays.weigh(settings, history)
        metrics = (comparison_of(in_stays, kind, rules.margin_of(settings), NEEDED, True, *weighed), *metrics[1:])
    return Verdict(
        verdict=answer.verdict,
        reasons=(answer.reason, *further_reasons, *single_concerns.why_none(record, history)),
        by_primary=answer.by_primary,
        over=over,
        keep=ended and rules.may_stay(settings, history, answer),
        metrics=metrics,
        pairs=len(pair_differences),
        pairs_at_most=settings.pairs,
        repeated=dict(history.guards.most_common()),
        repeated_in={state: firing.count(state) for state in (UNTUNED, TUNED)},
        carry_over=_carry_over(history),
        noise=None if deviation is None else percent(deviation),
        smallest_visible=(
            None
            if deviation is None
            else percent(forecast.smallest_visible(deviation, settings.pairs, rules.margin_of(settings)))
        ),
        pairs_needed=(
            None if deviation is None else forecast.pairs_needed(deviation, math.log1p(settings.effect / 100))
        ),
        seconds_left=None if seconds is None else seconds * _pairs_left(record, history, ended),
        sham=_sham(shams),
        unwatched=(*unwatched_guards(record.measurements), *(("clock",) if settings.reboot else ())),
        seed=settings.seed,
        differences=tuple(pair_differences),
        selection=bool(biased_state(history)),
        several=settings.several,
        parts=single_concerns.parts_of(record, history),
        missing=missing(settings, history),
        soaked=len(history.soaks),
        stays=len(in_stays),
        switched=switched,
    )


def _pairs_left(record: Record, history: History, ended: bool) -> float:
    """How many pairs of loads may still follow."""
    if ended:
        return single_concerns.pairs_left(record, history)
    if rules.pairs_end(record, history):
        return (record.start.settings.most_in_stays - len(history.soaks)) / 2
    return record.start.settings.pairs - len(differences(history.pairs, history.primary))


def _comparisons(record: Record, history: History) -> Tuple[Comparison, ...]:
    settings = record.start.settings
    comparisons = []
    for metric in sorted(history.kinds, key=lambda metric: metric.name != history.primary):
        primary = metric.name == history.primary
        needed = NEEDED if primary else rules.needed_for_secondary(history)
        margin = math.log1p((settings.margin if primary else settings.limit_of(metric.name)) / 100)
        changes = differences(history.pairs, metric.name)
        added = next((attempt.added.get(metric.name) for attempt in history.pairs), None)
        shown = metric._replace(unit=f"{metric.unit or 'count'} + {added:g}") if added else metric
        comparisons.append(comparison_of(changes, shown, margin, needed, primary, history.wagers))
    return tuple(comparisons)


def _sham(changes: Sequence[float]) -> Sham:
    if not changes:
        return Sham(0, None, None, None)
    return Sham(len(changes), percent(estimate(changes)), percent(min(changes)), percent(max(changes)))


def _carry_over(history: History) -> Optional[float]:
    """Half of what the differences are larger when the tuned state is second; None if it always has one position."""
    attempts = [attempt for attempt in history.pairs if attempt.valid]
    second = [attempt.difference(history.primary) for attempt in attempts if attempt.tuned_second]
    first = [attempt.difference(history.primary) for attempt in attempts if not attempt.tuned_second]
    return percent((estimate(second) - estimate(first)) / 2) if first and second else None
