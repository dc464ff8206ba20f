# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a plan when a driver refuses a value of it. PRIVATE to the collection."""

from __future__ import annotations

from typing import Callable, List, Sequence, Tuple

from .._error import Declined, NearmetalError
from .._plan import Action, Finding
from .session import Outcome

_OTHERS_HOLD = "the concern's other values are as wanted"


def do_accepted(
    outcome: Outcome, do: Callable[[Outcome], List[Action]], keep_others: bool = False
) -> Tuple[Outcome, List[Action]]:
    """Do an outcome without the workload's values that a driver refuses. Returns it as done, and its changes.

    No driver says beforehand which values it takes. A refused value that only a workload wants is not applicable,
    and the rest of the concern is done. `do` takes everything back before it raises. Raises NearmetalError for a
    refused value that the user wants, and for every other error. With `keep_others` the user's refused value doesn't
    cost the others either: it is the error of the outcome, which is done.
    """
    refusals: List[str] = []
    while True:
        try:
            changes = do(outcome)
        except Declined as refusal:
            outcome, refused = _without_refused(outcome, refusal, keep_others)
            refusals += refused
            continue
        return (outcome._replace(error="; ".join([*refusals, _OTHERS_HOLD])) if refusals else outcome), changes


def still_wanted(outcome: Outcome, actions: Sequence[Action]) -> List[Action]:
    """The actions of a new plan, without those that a driver refused for this outcome."""
    refused = {(finding.knob, finding.where) for finding in outcome.plan.findings if finding.status == "not_applicable"}
    return [action for action in actions if (action.knob, action.where) not in refused]


def _without_refused(outcome: Outcome, refusal: Declined, keep_others: bool) -> Tuple[Outcome, List[str]]:
    """The outcome without the refused values of workloads, or of anybody, and a sentence if the user wants one.

    Raises NearmetalError when none can be left out.
    """
    refused = [action for action in outcome.plan.actions if action.key in refusal.places]
    dropped = [action for action in refused if keep_others or action.wanted_by == "workload"]
    if not dropped:
        raise NearmetalError(_name_knobs(refused, str(refusal))) from None
    of_user = [action for action in dropped if action.wanted_by != "workload"]
    places = {(action.knob, action.where) for action in dropped}
    plan = outcome.plan._replace(
        actions=tuple(action for action in outcome.plan.actions if action not in dropped),
        findings=tuple(
            _not_applicable(finding, refusal)
            if finding.status == "would_change" and (finding.knob, finding.where) in places
            else finding
            for finding in outcome.plan.findings
        ),
    )
    return outcome._replace(plan=plan), [_name_knobs(of_user, refusal.answer)] if of_user else []


def _name_knobs(actions: Sequence[Action], sentence: str) -> str:
    knobs = ", ".join(dict.fromkeys(f"{action.concern}.{action.knob}" for action in actions))
    return f"{knobs}: {sentence}" if knobs else sentence


def _not_applicable(finding: Finding, refusal: Declined) -> Finding:
    return finding._replace(status="not_applicable", reason=refusal.answer, gain="")
