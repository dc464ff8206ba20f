# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result contract of the cloud modules: for all instances, and per instance. Pure. PRIVATE."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._plan import Action, Finding, Plan
from .._words import counted
from .observe import Observation

# In the one-line message, what an operator should look at comes first.
_ORDER = ("refused", "unknown", "would_change", "changed", "advice", "ok", "not_applicable")


def contract(
    concern: str,
    observation: Observation,
    plans: Mapping[str, Plan],
    details: Mapping[str, Mapping[str, Any]],
) -> Dict[str, Any]:
    """The module's result: `plans`, and `details` of the facts, per instance id."""
    per_instance: Dict[str, Dict[str, Any]] = {}
    for instance_id in [*plans, *(failed_id for failed_id in observation.failed if failed_id not in plans)]:
        plan = plans.get(instance_id, Plan())
        failures = [
            Finding(concern, "", "unknown", reason, where=instance_id)
            for reason in observation.failed.get(instance_id, ())
        ]
        facts = observation.instances.get(instance_id)
        per_instance[instance_id] = {
            "account": facts.account if facts else None,
            "region": facts.region if facts else None,
            "instance_type": facts.instance_type if facts else None,
            **details.get(instance_id, {}),
            "actions": [action.as_dict() for action in plan.actions],
            "findings": [finding.as_dict() for finding in [*plan.findings, *failures]],
        }
    actions = [action for plan in plans.values() for action in plan.actions]
    findings = [finding for instance_result in per_instance.values() for finding in instance_result["findings"]]
    return {
        "changed": bool(actions),
        "msg": _message(concern, len(per_instance), findings, observation.cloud.errors),
        "diff": {"before": _tree(actions, "before"), "after": _tree(actions, "after")},
        "actions": [action.as_dict() for action in actions],
        "findings": findings,
        "reboot_required": False,
        "reboot_reasons": [],
        "instances": per_instance,
        "failed_instances": {instance_id: "; ".join(reasons) for instance_id, reasons in observation.failed.items()},
        "errors": list(observation.cloud.errors),
        "types_from": "table" if observation.type_trouble else "api",
    }


class Planned(NamedTuple):
    """What a module that changes instances observed, and what it is to do."""

    concern: str
    observation: Observation
    plans: Dict[str, Plan]
    details: Mapping[str, Mapping[str, Any]]
    strict: bool

    @property
    def refused(self) -> Optional[Finding]:
        """The refusal for which a strict run does nothing at all."""
        findings = (finding for plan in self.plans.values() for finding in plan.findings)
        return next((finding for finding in findings if self.strict and finding.status == "refused"), None)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do, or it may not be done."""
        return bool(self.refused) or not any(plan.actions for plan in self.plans.values())

    def unchanged(self) -> Dict[str, Any]:
        """The module's result while nothing is done."""
        refused = self.refused
        if refused is None:
            return self.result(self.plans)
        return self.result(after(self.plans, []), f"{refused.where}: {refused.reason}")

    def result(self, plans: Mapping[str, Plan], failure: str = "") -> Dict[str, Any]:
        """The module's result with the plans after a run, and with `failed` true where it has a failure."""
        result = contract(self.concern, self.observation, plans, self.details)
        return {**result, "failed": True, "msg": f"{self.concern}: {failure}"} if failure else result


def after(plans: Mapping[str, Plan], done: Sequence[str]) -> Dict[str, Plan]:
    """The plans after a run that carried out those of the instances in `done`, and no others."""
    return {
        instance_id: Plan(plan.actions, _renamed(plan, "changed"))
        if instance_id in done
        else Plan((), _renamed(plan, "unknown"))
        for instance_id, plan in plans.items()
    }


def _renamed(plan: Plan, status: str) -> Tuple[Finding, ...]:
    return tuple(
        finding._replace(status=status) if finding.status == "would_change" else finding for finding in plan.findings
    )


def _message(concern: str, count: int, findings: List[Dict[str, Any]], errors: Sequence[str]) -> str:
    number = Counter(finding["status"] for finding in findings)
    phrases = [f"{number[status]} {status.replace('_', ' ')}" for status in _ORDER if status in number]
    incomplete = f"; instances may be missing: {errors[0]}" if errors else ""
    return f"{concern}: {counted(count, 'instance')}: {', '.join(phrases) or 'no findings'}{incomplete}"


def _tree(actions: List[Action], side: str) -> Dict[str, Any]:
    tree: Dict[str, Any] = {}
    for action in actions:
        tree.setdefault(action.where, {})[action.what] = getattr(action, side)
    return tree
