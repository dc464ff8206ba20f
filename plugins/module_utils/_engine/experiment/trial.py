# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which values of a workload a host's drivers accept, before the states of an experiment are fixed. PRIVATE."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply, do_accepted
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.experiment import switching
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.experiment.running import Experiment
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Outcome
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.capabilities import Declining
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding


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
            if isinstance(lever_of(action.what), Declining) and experiment.selects(action.concern, action.knob)
        ]

    def try_out(outcome: Outcome) -> List[Action]:
        return apply(host, switching.journal_of(host), uncertain(outcome), tuple)

    results: List[Outcome] = []
    refused: List[Finding] = []
    for outcome in outcomes:
        accepted = outcome
        if any(action.wanted_by == "workload" for action in uncertain(outcome)):
            accepted, _done = do_accepted(outcome, try_out)
            switching.untune(host, experiment)
            refused += (
                finding._replace(reason=f"{finding.reason}; tune leaves it out")
                for finding in accepted.plan.findings
                if finding not in outcome.plan.findings
            )
        results.append(accepted)
    return results, refused
