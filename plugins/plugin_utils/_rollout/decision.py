# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a rollout goes on after a batch, holds, or goes back. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...module_utils._prove.statistics.evidence import NEEDED
from ...module_utils._prove.statistics.interval import percent
from ...module_utils._prove.statistics.metrics import LARGER
from ...module_utils._prove.statistics.rules import UNSAFE, WORSE
from ...module_utils._words import counted
from .effect import NOTHING, Draws, Watch, Won, evidence_of_harm, gains, p_missing

GO_ON, HOLD, BACK = "go_on", "hold", "back"
_FEWEST = 3  # hosts of each side, with fewer of which a batch is judged by guards alone
_MOST_MISSING = 0.2  # of the hosts of either side
_TESTS = 3  # of harm in one metric of one batch: the sequence, and one at each of its two ends
_P_NO_HARM = 1 / NEEDED / 2  # at each of the two ends


class Settings(NamedTuple):
    """What decides, as the record has it."""

    metrics: Tuple[Tuple[str, str, float], ...]  # name, larger | smaller, margin in percent
    judged: int  # batches that are compared with hosts that wait
    looks: int  # of a batch, after which it is decided if it can be
    most_looks: int  # after which it is decided in any case
    seed: int
    unclear: str = HOLD  # what follows where harm is neither shown nor excluded


class Judgment(NamedTuple):
    """What follows from what was seen of a batch so far."""

    decision: str  # empty while the batch is to be watched
    reasons: Tuple[str, ...]

    def as_dict(self) -> Dict[str, Any]:
        """Plain JSON."""
        return {"decision": self.decision, "reasons": list(self.reasons)}


def judge(settings: Settings, watch: Watch, over: bool = False, won: Optional[Dict[str, Won]] = None) -> Judgment:
    """The decision by the metrics, at any look; `over` where none can follow. Guards are judged beside it.

    Whoever asks look by look gives a `won`, in which the evidence of each metric is kept for the next look.
    """
    won = {} if won is None else won
    waiting = len(watch.strata) - watch.tuned
    if not settings.metrics:
        return Judgment(GO_ON, ("no metric was asked for: guards alone",))
    if not waiting:
        return Judgment(GO_ON, ("no host waits any more to compare with: guards alone",))
    needed = NEEDED * len(settings.metrics) * settings.judged * _TESTS
    ends = over or len(watch.after) in (settings.looks, settings.most_looks)
    found = [_of_metric(settings, watch, metric, needed, ends, won) for metric in settings.metrics]
    harmed, open_questions = (tuple(filter(None, words)) for words in zip(*found))
    if harmed:
        return Judgment(BACK, harmed)
    if not ends:
        return Judgment("", ())
    if not open_questions:
        words = "guards alone: too few hosts" if min(watch.tuned, waiting) < _FEWEST else "no metric lost its margin"
        return Judgment(GO_ON, (words,))
    return Judgment(settings.unclear if over or len(watch.after) >= settings.most_looks else "", open_questions)


def _of_metric(
    settings: Settings,
    watch: Watch,
    metric: Tuple[str, str, float],
    needed: float,
    ends: bool,
    won: Dict[str, Won],
) -> Tuple[str, str]:
    """The harm that is shown in one metric, and what is missing to exclude it; either may be empty."""
    name, better, margin = metric
    larger = better == LARGER
    won[name] = evidence_of_harm(watch, name, larger, settings.most_looks, won.get(name, NOTHING))
    if won[name].evidence >= needed:
        evidence = f"{won[name].evidence:.0f}:1" if won[name].evidence < 1e6 else "more than 1000000:1"
        return f"{name} became worse, with evidence of {evidence} ({needed:.0f}:1 is needed)", ""
    if not ends:
        return "", ""
    found, before = gains(watch, name, larger), gains(watch._replace(after=watch.before), name, larger)
    known = [place for place, value in enumerate(before) if value is not None]
    gone = [found[place] is None for place in known]
    is_tuned = [place < watch.tuned for place in known]
    lost = sum(gone[place] for place in range(len(known)) if is_tuned[place])
    words = f"{counted(lost, 'tuned host')} of {sum(is_tuned)} no longer {'has' if lost == 1 else 'have'} {name}"
    needed *= 2 if any(gone) else 1  # whether there are two tests at this end doesn't depend on the draw
    if lost and p_missing(is_tuned, gone) <= 1 / needed:
        return f"{words}, and hardly a host that waits", ""
    draws = Draws(watch, found, settings.seed)
    if draws.p_harm(needed=needed) <= 1 / needed:
        return f"{name} became worse: by the draw alone in less than 1 of {needed:.0f} batches", ""
    waiting = len(watch.strata) - watch.tuned
    if min(watch.tuned, waiting) < _FEWEST:
        return "", ""
    if draws.tuned < watch.tuned * (1 - _MOST_MISSING) or draws.waiting < waiting * (1 - _MOST_MISSING):
        return (
            "",
            f"{name} is known of {draws.tuned} of {watch.tuned} tuned and {draws.waiting} of {waiting} other hosts",
        )
    if draws.count < 1 / _P_NO_HARM:
        return "", f"so few hosts share a stratum that a loss of {margin:g} % in {name} can't be excluded"
    if draws.p_no_harm(-math.log1p(-margin / 100)) > _P_NO_HARM:
        return "", f"a loss of {margin:g} % in {name} isn't excluded"
    return "", ""


def so_far(settings: Settings, watch: Watch) -> Dict[str, float]:
    """The change of each metric in percent, without an interval; nothing of one that can't be compared yet."""
    found = {}
    for name, better, _margin in settings.metrics:
        gain = Draws(watch, gains(watch, name, better == LARGER), settings.seed).estimate()
        found[name] = gain if better == LARGER else -gain
    return {name: percent(change) for name, change in found.items() if math.isfinite(change)}


def figures(settings: Settings, watch: Watch) -> List[Dict[str, Any]]:
    """Of each metric, if it can be compared: name, better, hosts tuned and waiting; change, low and high in percent.

    A change is None where no host is known both before and after, an end where nothing is excluded on this side.
    """
    compares = watch.after and watch.tuned < len(watch.strata)
    return [_figure(settings, watch, *metric[:2]) for metric in settings.metrics if compares]


def _figure(settings: Settings, watch: Watch, name: str, better: str) -> Dict[str, Any]:
    sign = 1 if better == LARGER else -1
    draws = Draws(watch, gains(watch, name, better == LARGER), settings.seed)
    low, high = sorted(sign * end for end in draws.interval(_P_NO_HARM))
    ends = {"change": sign * draws.estimate(), "low": low, "high": high}
    shown = {end: percent(value) if math.isfinite(value) else None for end, value in ends.items()}
    return {"name": name, "better": better, "tuned": draws.tuned, "waiting": draws.waiting, **shown}


def by_proof(proofs: Mapping[str, Mapping[str, Any]]) -> Judgment:
    """The decision on a batch of which a proof has restored a host."""
    against = {host: str(proof["verdict"] or "nothing differs") for host, proof in proofs.items() if not proof["kept"]}
    harmed = any(verdict in (WORSE, UNSAFE) for verdict in against.values())
    return Judgment(BACK if harmed else HOLD, tuple(f"{host}: prove says {why}" for host, why in against.items()))


def judgment_with(judged: Judgment, guards: Mapping[str, Sequence[str]], failed: Mapping[str, str]) -> Judgment:
    """The decision, when hosts failed or guards fired too: then the batch goes back, whatever the metrics say."""
    reasons: List[str] = [f"{host}: {reason}" for host, reason in failed.items()]
    reasons += [f"{host}: {reason}" for host, fired in guards.items() for reason in fired]
    # That the metrics would go on is no reason to go back.
    of_metrics = () if judged.decision == GO_ON else judged.reasons
    return Judgment(BACK, (*reasons, *of_metrics)) if reasons else judged


def outcome_of(decision: str, last: bool) -> Optional[str]:
    """How the rollout ends with this decision; None if it goes on."""
    return {HOLD: "held", BACK: "taken_back"}.get(decision, "done" if last else None)
