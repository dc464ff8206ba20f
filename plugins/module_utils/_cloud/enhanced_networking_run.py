# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of the module enhanced_networking: observe, plan, change. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud import left_stopped, stop_mark
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.enhanced_networking import (
    CONCERN,
    claimed_twice,
    drivers,
    plan,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.observe import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import after, contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import deadline
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stop_start import Work, change_stopped
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action

_REQUESTS: Dict[str, Dict[str, Any]] = {
    "ena_support": {"EnaSupport": {"Value": True}},
    "sriov_net_support": {"SriovNetSupport": {"Value": "simple"}},
}
_NAMED = 5


def answer(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """The module's result; `failed` is true in it when a change did not succeed."""
    if options["stop_at_once"] < 1 or options["stop_timeout"] < 1:
        raise NearmetalError("stop_at_once and stop_timeout must be at least 1")
    with deadline(options["timeout"]):
        seen = observe(options, with_status=True)
    hosts = drivers(options["hosts"])
    wanted = {**options, "unconfirmed": {*options["unconfirmed"], *claimed_twice(options["hosts"])}}
    now = {each: there.target.now() for each, there in seen.found.items()}
    meanings = {each: stop_mark.judge(facts.power, now[each]) for each, facts in seen.instances.items()}
    plans = {
        each: plan(facts, seen.type_of(facts), hosts.get(each), wanted, meanings[each])
        for each, facts in seen.instances.items()
    }
    shown = {
        each: {
            "facts": {"ena_support": facts.ena_support, "sriov_net_support": facts.sriov_net_support},
            "host_class": facts.host_class,
        }
        for each, facts in seen.instances.items()
    }
    left = [each for each, meaning in meanings.items() if meaning in left_stopped.LEFT_STATES]
    if options["strict"] and any(each.status == "refused" for one in plans.values() for each in one.findings):
        return {**contract(CONCERN, seen, after(plans, []), shown, strict=True), "left_stopped": left}
    works = {each: _work(one.actions, seen.instances[each].power.tag) for each, one in plans.items() if one.actions}
    if check or not works:
        return {**contract(CONCERN, seen, plans, shown), "left_stopped": left}
    outcome = change_stopped(seen.found, works, options["stop_at_once"], options["stop_timeout"])
    for each, reason in outcome.failed.items():
        seen.failed.setdefault(each, []).append(reason)
    result = contract(CONCERN, seen, after(plans, outcome.done), shown)
    still = [each for each in left if each not in outcome.done or not works[each].start]
    result["left_stopped"] = list(dict.fromkeys([*still, *outcome.left_stopped]))
    if outcome.failed:
        result.update(failed=True, msg=_failure(outcome.failed, result["left_stopped"]))
    return result


def _work(actions: Sequence[Action], tag: Optional[str]) -> Work:
    """What the actions of one instance come to."""
    requests = [_REQUESTS[action.what] for action in actions if action.what in _REQUESTS]
    start = any(action.what == left_stopped.STATE for action in actions)
    needless = any(action.what == left_stopped.START_TAG for action in actions)
    return Work(requests, start, tag if start or needless else None)


def _failure(failed: Mapping[str, str], left: Sequence[str]) -> str:
    each, reason = next(iter(failed.items()))
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    stopped = f"; left stopped: {', '.join(left[:_NAMED])}{more}" if left else ""
    return f"{CONCERN}: {each}: {reason}{stopped}"
