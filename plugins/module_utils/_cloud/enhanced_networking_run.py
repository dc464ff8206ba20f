# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of the module enhanced_networking: observe, plan, change. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.enhanced_networking import (
    CONCERN,
    claimed_twice,
    drivers,
    plan,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.observe import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import after, contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import deadline
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stop_start import change_stopped
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action

_REQUESTS: Dict[str, Dict[str, Any]] = {
    "ena_support": {"EnaSupport": {"Value": True}},
    "sriov_net_support": {"SriovNetSupport": {"Value": "simple"}},
}


def answer(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """The module's result; `failed` is true in it when a change did not succeed."""
    if options["stop_at_once"] < 1 or options["stop_timeout"] < 1:
        raise NearmetalError("stop_at_once and stop_timeout must be at least 1")
    with deadline(options["timeout"]):
        seen = observe(options, with_status=True)
    hosts = drivers(options["hosts"])
    wanted = {**options, "unconfirmed": {*options["unconfirmed"], *claimed_twice(options["hosts"])}}
    plans = {each: plan(facts, seen.type_of(facts), hosts.get(each), wanted) for each, facts in seen.instances.items()}
    shown = {
        each: {
            "facts": {"ena_support": facts.ena_support, "sriov_net_support": facts.sriov_net_support},
            "host_class": facts.host_class,
        }
        for each, facts in seen.instances.items()
    }
    requests = {each: _requests(list(one.actions)) for each, one in plans.items() if one.actions}
    if options["strict"] and any(each.status == "refused" for one in plans.values() for each in one.findings):
        return contract(CONCERN, seen, after(plans, []), shown, strict=True)
    if check or not requests:
        return contract(CONCERN, seen, plans, shown)
    outcome = change_stopped(seen.found, requests, options["stop_at_once"], options["stop_timeout"])
    for each, reason in outcome.failed.items():
        seen.failed.setdefault(each, []).append(reason)
    result = contract(CONCERN, seen, after(plans, outcome.done), shown)
    result["left_stopped"] = outcome.left_stopped
    if outcome.failed:
        each, reason = next(iter(outcome.failed.items()))
        stopped = f"; left stopped: {', '.join(outcome.left_stopped)}" if outcome.left_stopped else ""
        result.update(failed=True, msg=f"{CONCERN}: {each}: {reason}{stopped}")
    return result


def _requests(actions: List[Action]) -> List[Dict[str, Any]]:
    return [_REQUESTS[action.what] for action in actions]
