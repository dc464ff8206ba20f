# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of the module cpu_credits: observe, plan, change. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.api import Answers, Series
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.cpu_credits import CONCERN, CreditFacts, plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.credit_rules import RULES, STEP_MINUTES
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.observe import Observation, observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import after, contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import deadline
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Plan

_METRICS = {
    "CPUCreditBalance": "Average",
    "CPUCreditUsage": "Sum",
    "CPUSurplusCreditBalance": "Average",
    "CPUSurplusCreditsCharged": "Sum",
}
_HOURS = 1


def answer(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """The module's result; `failed` is true in it when a change did not succeed."""
    with deadline(options["timeout"]):
        seen = observe(options, with_status=options["specification"] is not None)
        burstable = seen.chosen(lambda _facts, kind: kind.burstable)
        specifications = seen.keep_failures(seen.cloud.credit_specifications(burstable))
        metrics = Answers()
        if options["metrics"]:
            series = {
                each: [Series("AWS/EC2", name, "InstanceId", each, statistic) for name, statistic in _METRICS.items()]
                for each in burstable
            }
            metrics = seen.keep_failures(seen.cloud.metrics(burstable, series, _HOURS))
    facts = {each: _facts(specifications.one(each), metrics.by_id.get(each, ())) for each in seen.instances}
    plans = {each: plan(one, seen.type_of(one), facts[each], options) for each, one in seen.instances.items()}
    shown = {
        each: {"credits": facts[each].as_dict(RULES.get(one.instance_type))}
        for each, one in seen.instances.items()
        if each in burstable
    }
    if options["strict"] and any(each.status == "refused" for one in plans.values() for each in one.findings):
        return contract(CONCERN, seen, after(plans, []), shown, strict=True)
    if check or not any(one.actions for one in plans.values()):
        return contract(CONCERN, seen, plans, shown)
    return _change(seen, plans, shown, options["specification"])


def _change(
    seen: Observation, plans: Mapping[str, Plan], shown: Mapping[str, Mapping[str, Any]], specification: str
) -> Dict[str, Any]:
    wanted = {each: seen.found[each] for each, one in plans.items() if one.actions}
    refused = seen.cloud.set_credit_specifications(wanted, specification)
    # An error does not say that nothing was changed: the answer can be lost on its way.
    now = seen.cloud.credit_specifications(wanted)
    failed: Dict[str, str] = {}
    for each in wanted:
        held = (now.one(each) or {}).get("CpuCredits")
        if held != specification:
            kept = f"AWS took the change to {specification} and still shows {held}"
            failed[each] = refused.get(each) or now.failed.get(each) or kept
    for each, reason in failed.items():
        seen.failed.setdefault(each, []).append(reason)
    result = contract(CONCERN, seen, after(plans, [each for each in wanted if each not in failed]), shown)
    if failed:
        each, reason = next(iter(failed.items()))
        result.update(failed=True, msg=f"{CONCERN}: {each}: {reason}")
    return result


def _facts(specification: Any, series: Sequence[Mapping[str, Any]]) -> CreditFacts:
    values: Dict[str, List[float]] = {each["name"]: each["values"] for each in series if each["values"]}
    used = values.get("CPUCreditUsage")
    return CreditFacts(
        specification=(specification or {}).get("CpuCredits"),
        balance=values["CPUCreditBalance"][-1] if "CPUCreditBalance" in values else None,
        used_per_hour=round(sum(used) / len(used) * 60 / STEP_MINUTES, 3) if used else None,
        surplus=values["CPUSurplusCreditBalance"][-1] if "CPUSurplusCreditBalance" in values else None,
        charged=round(sum(values["CPUSurplusCreditsCharged"]), 3) if "CPUSurplusCreditsCharged" in values else None,
    )
