# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an experiment can't compare: what a driver refuses, or what a load right after a switch may miss. PRIVATE."""

from __future__ import annotations

from typing import AbstractSet, Dict, List, Mapping, Sequence, Tuple

from ..._concerns.registry import CONCERNS
from ..._engine.apply import apply
from ..._engine.declined import do_accepted
from ..._engine.lease.taking_back import journal_of, setting_of
from ..._engine.session import Outcome
from ..._error import NearmetalError
from ..._host.host import WritableHost
from ..._levers.registry import lever_of
from ..._plan import Action, Finding
from ..._planning.knob import RESTART
from ..._words import clipped
from .running import Experiment, untune

PERSIST = "persist"  # the option that says where a value is kept, which has no effect at runtime
LATER = ("would_change", "needs_reboot", "needs_restart")
_LONGEST_LIST = 600  # characters of what tune would refuse, or of what can't be compared
# Levers whose values another program takes back at once, unless a lever that isn't switched prevents it.
_RESTS_ON = {
    "network.affinity": ("irqbalance.in_force", "irqbalance would move the interrupts back: only tune prevents it"),
}


class NothingDiffers(NearmetalError):
    """There is nothing to compare."""


def accepted_outcomes(
    host: WritableHost, experiment: Experiment, outcomes: Sequence[Outcome]
) -> Tuple[List[Outcome], List[Finding]]:
    """The outcomes without the workload's values that a driver refuses, as in `tune`; and the refused ones' findings.

    The values are written once, because no driver says beforehand which it accepts, and the host is untuned again.
    Raises NearmetalError for a value of the user's that a driver refuses, and when the host can't be untuned.
    """

    def uncertain(outcome: Outcome) -> List[Action]:
        return [
            action
            for action in outcome.plan.actions
            if lever_of(action.what).declining and experiment.lease.selects(action.concern, action.knob)
        ]

    def try_out(outcome: Outcome) -> List[Action]:
        return apply(host, journal_of(host), uncertain(outcome), tuple)

    results: List[Outcome] = []
    refused: List[Finding] = []
    for outcome in outcomes:
        accepted = outcome
        if any(action.wanted_by == "workload" for action in uncertain(outcome)):
            accepted, _done = do_accepted(outcome, try_out)
            untune(host, experiment)
            refused += (
                finding._replace(reason=f"{finding.reason}; tune leaves it out")
                for finding in accepted.plan.findings
                if finding not in outcome.plan.findings
            )
        results.append(accepted)
    return results, refused


def resting_places(actions: Sequence[Action]) -> Dict[Tuple[str, str, str], str]:
    """The places whose values would not last in an experiment, with the reason."""
    not_switched = {action.what for action in actions if action.scope == "boot"}
    return {
        setting_of(action): reason
        for action in actions
        for what, reason in (_RESTS_ON.get(action.what, ("", "")),)
        if what in not_switched
    }


def untested_findings(
    experiment: Experiment,
    findings: Sequence[Finding],
    tested: AbstractSet[Tuple[str, str]],
    resting: Mapping[Tuple[str, str, str], str],
) -> List[Finding]:
    """The findings of what `tune` would change and a switch doesn't show, each with the reason for that."""
    about, after = experiment.lease._replace(unfelt=()), RESTART if experiment.restarts else ""
    return [
        finding._replace(reason=unfelt(finding, after) or resting.get(setting_of(finding), finding.reason))
        for finding in findings
        if finding.status in LATER
        and finding.knob != PERSIST
        and about.selects(finding.concern, finding.knob)
        and (finding.concern, finding.knob) not in tested
    ]


def unfelt(finding: Finding, after: str = "") -> str:
    """Why a load right after a switch, or a BOOT or RESTART, may not show this setting; empty if it shows it."""
    return CONCERNS[finding.concern].unfelt(finding.knob, after) if finding.concern in CONCERNS else ""


def require_felt(untested: Sequence[Finding], after: str = "") -> None:
    """Raise NearmetalError if no load would show a setting that a comparison of nothing leaves out."""
    if any(unfelt(finding, after) for finding in untested):
        reasons = {f"{finding.concern}.{finding.knob}": finding.reason for finding in untested}
        listed = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
        raise NearmetalError(
            f"nothing of this tuning can be tested: {clipped(listed, _LONGEST_LIST)}; tune sets it untested"
        )


def no_difference(untested: Sequence[Finding], findings: Sequence[Finding]) -> str:
    """Why there is nothing to compare: what waits for a reboot, and what `tune` would refuse, with its reasons."""
    waiting = (finding for finding in untested if finding.status != "advice")
    knobs = ", ".join(dict.fromkeys(f"{finding.concern}.{finding.knob}" for finding in waiting))
    waits = f" in anything that can be switched without a reboot or a restart ({knobs} can't)" if knobs else ""
    refusals = dict.fromkeys(finding.reason for finding in findings if finding.status == "refused")
    refused = clipped(f"; tune would refuse: {'; '.join(refusals)}", _LONGEST_LIST) if refusals else ""
    return f"untuned and tuned don't differ on this host{waits}: there is nothing to compare{refused}"
