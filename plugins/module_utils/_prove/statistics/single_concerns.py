# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which concern did it: the whole tuning against all of it but one concern, one after the other.

Pure. PRIVATE to the collection. This is asked only when the whole is better. Holm's order (Scandinavian Journal of
Statistics 6, 1979) over evidence that may be looked at after every pair: in at most one of 20 runs any concern is
called better or worse that does nothing, however many there are.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence, Tuple

from . import rules
from .decision import after_switches, answer_of, ends
from .evidence import LAMBDAS, NEEDED, peak
from .guards import GUARDS, LIMITS
from .history import Attempt, History, capped, differences, guards_of
from .interval import Comparison, comparison_of
from .order import TUNED, UNTUNED
from .record import Record
from .rules import BETTER, CAPPED, NOT_QUIET, SAME, UNCLEAR, WORSE
from .settings import Settings

NO_GAIN = "no concern was compared with the others: prove_each does that after better alone"


class Part(NamedTuple):
    """What one concern does among all the others: tuned with it against tuned without it."""

    concern: str
    verdict: str  # better, worse, same, unclear, capped or not_quiet: the load with it
    reason: str  # why there is no answer; empty where there is one
    comparison: Comparison  # of the metric that decides
    pairs: int  # that count
    repeated: int


def concerns_of(record: Record) -> Tuple[str, ...]:
    """The concerns in which the states differ; none where a single one has all of the effect, or nobody asks."""
    tested = _tested_concerns(record)
    return tested if record.start.settings.each and len(tested) > 1 else ()


def _tested_concerns(record: Record) -> Tuple[str, ...]:
    return tuple(dict.fromkeys(name.partition(".")[0] for name in record.start.tested))


def why_none(record: Record, history: History) -> Tuple[str, ...]:
    """Why a run that is over compared no concern although the user asked for each; empty for any other run."""
    if not record.start.settings.each or history.parts or not ends(record, history):
        return ()
    concerns = _tested_concerns(record)
    if len(concerns) == 1:
        return (f"{concerns[0]} is the only concern that was tested, so the whole change is its own",)
    return () if answer_of(record, history)[0].verdict == BETTER else (NO_GAIN,)


def waiting_concerns(record: Record, history: History) -> Tuple[str, ...]:
    """The concerns about which more is to be measured. The whole comes first, and it has to be better."""
    concerns = concerns_of(record)
    if not concerns or not ends(record, history) or answer_of(record, history)[0].verdict != BETTER:
        return ()
    return tuple(
        concern for concern in concerns if not _is_over(record.start.settings, history, concern, len(concerns))
    )


def pairs_left(record: Record, history: History) -> int:
    """How many pairs the concerns that wait may still take."""
    most_pairs = record.start.settings.pairs
    return sum(most_pairs - len(_differences(history, concern)) for concern in waiting_concerns(record, history))


def parts_of(record: Record, history: History) -> Tuple[Part, ...]:
    """What each concern did, as far as it was measured; none before the first of them was."""
    concerns = concerns_of(record) if history.parts else ()
    changes = {concern: _differences(history, concern) for concern in concerns}
    needed = holm(changes, history.wagers)
    return tuple(
        _part(record, history, concern, changes[concern], needed[concern], len(concerns)) for concern in changes
    )


def holm(changes: "Dict[str, List[float]]", wagers: Sequence[float] = LAMBDAS) -> Dict[str, float]:
    """The evidence that each needs: the strongest the most, up to the first that hasn't got it."""
    needed: Dict[str, float] = {}
    step = len(changes)
    found = {concern: max(peak(differences, 0.0, wagers)) for concern, differences in changes.items()}
    for concern in sorted(changes, key=lambda name: -found[name]):
        needed[concern] = NEEDED * step
        step -= found[concern] >= needed[concern]
    return needed


def _part(record: Record, history: History, concern: str, changes: Sequence[float], needed: float, count: int) -> Part:
    settings = record.start.settings
    repeated = [attempt for attempt in history.attempts(concern) if attempt.over and not attempt.valid]
    metric = next(metric for metric in history.kinds if metric.name == history.primary)
    shown_verdict = _shown_verdict(settings, history, concern, needed, count)
    verdict, reason = _answer(concern, shown_verdict, len(changes), repeated)
    if verdict == UNCLEAR and not shown_verdict:
        reason = _unsettled(settings, history, concern) or reason
    needed = NEEDED * count if shown_verdict == SAME else needed
    comparison = comparison_of(changes, metric, rules.margin_of(settings), needed, primary=True, wagers=history.wagers)
    return Part(concern, verdict, reason, comparison, len(changes), len(repeated))


def _answer(concern: str, word: str, pairs: int, repeated: Sequence[Attempt]) -> Tuple[str, str]:
    """The verdict and why there is no answer, after what its pairs show and what had to be repeated."""
    guards, selected = guards_of(repeated), rules.lopsided_state(repeated)
    limited = capped(repeated)
    if rules.too_many_repeated(len(repeated), pairs + len(repeated)):
        guard = guards.most_common(1)[0][0]
        reason = f"more than a third of the pairs had to be repeated, most because of {GUARDS[guard]}"
        return CAPPED if guard in LIMITS else NOT_QUIET, reason
    if selected:
        state = f"without {concern}" if selected == UNTUNED else "with all concerns"
        return CAPPED if limited else UNCLEAR, f"guards voided more pairs {state} than chance explains"
    if limited and word not in (BETTER, WORSE):
        return CAPPED, f"{limited}: what {concern} would bring without that limit can't be measured"
    if not word:
        return UNCLEAR, f"{pairs} pairs don't decide"
    return word, "the pairs show both a gain and a loss" if word == UNCLEAR else ""


def _shown_verdict(settings: Settings, history: History, concern: str, needed: float, count: int) -> str:
    """What its pairs show; that a concern does nothing takes the full evidence of all concerns."""
    word = rules.settled_verdict(settings, history, concern, needed)
    full = NEEDED * count
    return word if word in (BETTER, WORSE, UNCLEAR) else rules.settled_verdict(settings, history, concern, full)


def _unsettled(settings: Settings, history: History, concern: str) -> str:
    """What a switch leaves behind, if it outweighs what the concern does; else empty."""
    states = rules.unsettled_states(settings, history, concern)
    names = {UNTUNED: f"the host without {concern}", TUNED: "the host with all concerns"}
    return f"{history.primary} is {after_switches(states, names)}" if states else ""


def _is_over(settings: Settings, history: History, concern: str, count: int) -> bool:
    changes = _differences(history, concern)
    tries = [attempt for attempt in history.attempts(concern) if attempt.over]
    repeated = len(tries) - len(changes)
    return (
        len(changes) >= settings.pairs
        or rules.too_many_repeated(repeated, len(tries))
        or bool(rules.settled_verdict(settings, history, concern, NEEDED * count))
    )


def _differences(history: History, concern: str) -> List[float]:
    return differences(history.attempts(concern), history.primary)
