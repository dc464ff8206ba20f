# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the drivers of a host take of a workload, before the two states of an experiment are fixed. PRIVATE."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply, do_accepted
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.experiment import switching
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.experiment.running import Experiment
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Outcome
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.capabilities import Declining
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding


def taken(
    host: WritableHost, experiment: Experiment, outcomes: Sequence[Outcome]
) -> Tuple[List[Outcome], List[Finding]]:
    """The outcomes without what a driver refuses of a workload, as `tune` leaves it out; and what that is.

    The values are written once, because no driver says it beforehand, and the host is untuned again after it.
    Raises NearmetalError for a value of the user's that a driver refuses, and when the host can't be untuned.
    """

    def asked(outcome: Outcome) -> List[Action]:
        return [
            action
            for action in outcome.plan.actions
            if isinstance(lever_of(action.what), Declining) and experiment.selects(action.concern, action.knob)
        ]

    def tried(outcome: Outcome) -> List[Action]:
        return apply(host, switching.journal_of(host), asked(outcome), tuple)

    found: List[Outcome] = []
    refused: List[Finding] = []
    for outcome in outcomes:
        left = outcome
        if any(action.wanted_by == "workload" for action in asked(outcome)):
            left, _done = do_accepted(outcome, tried)
            switching.untune(host, experiment)
            refused += (
                replace(finding, reason=f"{finding.reason}; tune leaves it out")
                for finding in left.plan.findings
                if finding not in outcome.plan.findings
            )
        found.append(left)
    return found, refused
