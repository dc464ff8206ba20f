# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU credits: mode, balance, hours left at the present rate, the change of the mode, and an alarm. PRIVATE."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._plan import Action, Finding, Plan
from .._planning.knob import Knob
from .accounts import deadline
from .alarms import credit_alarm
from .api import CREDIT_SPECIFICATIONS, Answers, Located, Series, ask
from .credit_rules import RULES, STEP_MINUTES, CreditRules, hours_left
from .instance_facts import InstanceFacts
from .observe import Observation, observe
from .result import Planned, after
from .types.facts import TypeFacts

CONCERN = "cpu_credits"
_MODE = Knob(CONCERN, "specification", "credit_specification", "AWS, 2017")
_BALANCE = Knob(CONCERN, "balance", reference="AWS, 2017")
_LOW_SHARE = 0.2  # an alarm below 20 % of the cap is what an operator of a burstable fleet sets
_METRICS = {
    "CPUCreditBalance": "Average",
    "CPUCreditUsage": "Sum",
    "CPUSurplusCreditBalance": "Average",
    "CPUSurplusCreditsCharged": "Sum",
}
_HOURS = 1


@dataclass(frozen=True)
class CreditFacts:
    """The credits of one instance. None: not asked, or CloudWatch has no value yet."""

    specification: Optional[str] = None  # standard | unlimited
    balance: Optional[float] = None
    used_per_hour: Optional[float] = None
    surplus: Optional[float] = None
    charged: Optional[float] = None  # in the last hour

    def as_dict(self, rules: Optional[CreditRules]) -> Dict[str, Any]:
        """The facts and what follows from the rules, as plain JSON data."""
        plain = {
            **asdict(self),
            "earn_per_hour": rules.earn_per_hour if rules else None,
            "cap": rules.cap if rules else None,
            "hours_left": None,
        }
        if rules and self.balance is not None and self.used_per_hour is not None:
            unlimited = self.specification == "unlimited"
            left = hours_left(rules, unlimited, self.balance, self.surplus or 0.0, self.used_per_hour)
            plain["hours_left"] = None if left is None else round(left, 1)
        return plain


def plan(instance: InstanceFacts, kind: TypeFacts, facts: CreditFacts, wanted: Mapping[str, Any]) -> Plan:
    """Findings about the credits, and the change of the mode if one is wanted."""
    if not kind.burstable:
        status, reason = "not_applicable", f"{instance.instance_type} has no CPU credits"
        if kind.source == "name":
            status, reason = "unknown", f"it is not known whether {instance.instance_type} has CPU credits"
        return _MODE.at(instance.instance_id).says(status, reason)
    actions, findings = _specification(instance, facts, wanted)
    rules = RULES.get(instance.instance_type)
    if rules is None:
        reason = f"the credit rules of {instance.instance_type} are not known to this version"
        findings.append(_BALANCE.at(instance.instance_id).finding("unknown", reason))
    else:
        findings += _balance(instance, rules, facts)
    return Plan(tuple(actions), tuple(findings))


def _specification(
    instance: InstanceFacts, facts: CreditFacts, wanted: Mapping[str, Any]
) -> Tuple[List[Action], List[Finding]]:
    knob, now, then = _MODE.at(instance.instance_id), facts.specification, wanted.get("specification")
    if now is None:
        reason = "the mode is not known: DescribeInstanceCreditSpecifications did not answer for this instance"
        return [], [knob.finding("unknown", reason, None, then)]
    if then is None or then == now:
        meaning = (
            "surplus costs money"
            if now == "unlimited"
            else "without credits the instance is slowed down to its baseline"
        )
        return [], [knob.finding("ok", f"{now}: {meaning}", now, then)]
    refusal = _refusal(instance, then, wanted)
    if refusal:
        return [], [knob.finding("refused", refusal, now, then)]
    if then == "unlimited":
        reason = "the instance is never slowed down; CPU beyond the credits of 24 hours costs money"
    else:
        owed = f"the surplus of {facts.surplus:g} credits is charged at once; " if facts.surplus else ""
        reason = f"no cost beyond the price; {owed}without credits the instance is slowed down to its baseline"
    return [knob.action("user", now, then, reason)], [knob.finding("would_change", reason, now, then)]


def _refusal(instance: InstanceFacts, then: str, wanted: Mapping[str, Any]) -> Optional[str]:
    untouchable = instance.untouchable(wanted)
    if untouchable:
        return untouchable
    if then == "unlimited" and instance.tenancy == "host":
        return "an instance on a Dedicated Host can't be unlimited"
    if not wanted.get("allow_cost"):
        return "the change can cost money: set allow_cost: true"
    return None


def _balance(instance: InstanceFacts, rules: CreditRules, facts: CreditFacts) -> List[Finding]:
    knob = _BALANCE.at(instance.instance_id)
    if facts.balance is None:
        reason = "CloudWatch was not asked, or has no value yet: set metrics: true"
        return [knob.finding("unknown", reason)]
    now = facts.as_dict(rules)
    unlimited, left = facts.specification == "unlimited", now["hours_left"]
    end = "it costs money" if unlimited else f"the instance is slowed down to {rules.baseline_percent:g} % of each vCPU"
    rate = f"; at the present rate {end} in {left:g} h" if left is not None else ""
    low = facts.balance < rules.cap * _LOW_SHARE
    # A new instance has few credits, which is no problem while their number grows.
    status = "advice" if left is not None and (low or left < 24) else "ok"
    findings = [knob.finding(status, f"{facts.balance:g} of {rules.cap:g} credits{rate}", now)]
    if facts.charged:
        reason = (
            f"{facts.charged:g} surplus credits were charged in the last hour: a type without credits may be cheaper"
        )
        findings.append(knob._replace(name="charged").finding("advice", reason, round(facts.charged)))
    elif facts.surplus:
        reason = f"{facts.surplus:g} of {rules.cap:g} surplus credits are used, and more cost money"
        findings.append(knob._replace(name="surplus").finding("advice", reason, round(facts.surplus)))
    return findings


class _Planned(NamedTuple):
    """What is to be done about modes and alarms."""

    both: Planned
    modes: Dict[str, Plan]
    alarms: Dict[str, Plan]
    existing_alarms: Answers  # the alarms that AWS has
    options: Mapping[str, Any]


def forecast(options: Mapping[str, Any]) -> Dict[str, Any]:
    """What the module would do: its result in check mode."""
    return _plan_calls(options).both.unchanged()


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result, with `failed` true when a change did not succeed."""
    planned = _plan_calls(options)
    both, observation = planned.both, planned.both.observation
    if both.idle:
        return both.unchanged()
    modes = _change(observation, planned.modes, planned.options["specification"])
    done = _joined(modes, _set_alarms(observation, planned.alarms, planned.existing_alarms, planned.options))
    failed = [
        instance_id for instance_id, plan in both.plans.items() if len(done[instance_id].actions) < len(plan.actions)
    ]
    return both.result(done, f"{failed[0]}: {observation.failed[failed[0]][-1]}" if failed else "")


def _plan_calls(options: Mapping[str, Any]) -> _Planned:
    credit_alarm.require(options)
    if options["state"] == "restored":
        options = {**options, "specification": None}
    with deadline(options["timeout"]):
        observation = observe(options, with_status=options["specification"] is not None)
        burstable = observation.chosen(lambda _facts, kind: kind.burstable)
        specifications = observation.keep_failures(ask(CREDIT_SPECIFICATIONS, burstable))
        series = {
            instance_id: [Series("AWS/EC2", name, "InstanceId", instance_id, how) for name, how in _METRICS.items()]
            for instance_id in burstable
        }
        metrics = observation.metrics(options, series, _HOURS)
        alarms = _alarms(observation, burstable, options)
    facts = {
        instance_id: _facts(specifications.answer_of(instance_id), metrics.by_id.get(instance_id, ()))
        for instance_id in observation.instances
    }
    modes = observation.each(lambda instance, kind: plan(instance, kind, facts[instance.instance_id], options))

    def alarm_plan(instance: InstanceFacts, _kind: TypeFacts) -> Plan:
        existing, trouble = alarms.answer_of(instance.instance_id), alarms.failed.get(instance.instance_id, "")
        return credit_alarm.plan(instance, RULES.get(instance.instance_type), existing, trouble, options)

    details = {
        instance_id: {"credits": facts[instance_id].as_dict(RULES.get(instance.instance_type))}
        for instance_id, instance in observation.instances.items()
        if instance_id in burstable
    }
    of_alarms = observation.each(alarm_plan)
    both = Planned(CONCERN, observation, _joined(modes, of_alarms), details, options["strict"])
    return _Planned(both, modes, of_alarms, alarms, options)


def _joined(first: Mapping[str, Plan], second: Mapping[str, Plan]) -> Dict[str, Plan]:
    return {
        instance_id: Plan(plan.actions + second[instance_id].actions, plan.findings + second[instance_id].findings)
        for instance_id, plan in first.items()
    }


def _alarms(observation: Observation, burstable: Mapping[str, Located], options: Mapping[str, Any]) -> Answers:
    """The alarms of the instances, if the options are about alarms. One may be left of a type that was burstable."""
    chosen = (
        observation.located
        if options["state"] == "restored"
        else burstable
        if options["alarm_percent"] is not None
        else {}
    )
    names = {instance_id: credit_alarm.name_of(options, instance_id) for instance_id in chosen}
    return observation.keep_failures(credit_alarm.alarms(observation.located, names))


def _change(observation: Observation, plans: Mapping[str, Plan], specification: str) -> Dict[str, Plan]:
    """The plans after the change of the mode."""
    wanted = {instance_id: observation.located[instance_id] for instance_id, plan in plans.items() if plan.actions}
    refused = observation.cloud.set_credit_specifications(wanted, specification)
    # A call that ended in an error may have made the change: its answer can be lost.
    now = ask(CREDIT_SPECIFICATIONS, wanted)
    shown = {instance_id: (now.answer_of(instance_id) or {}).get("CpuCredits") for instance_id in wanted}
    kept = {
        instance_id: f"AWS accepted the change to {specification} but still shows {mode}"
        for instance_id, mode in shown.items()
        if mode != specification
    }
    return _after(observation, plans, kept, refused, now.failed)


def _set_alarms(
    observation: Observation, plans: Mapping[str, Plan], existing: Answers, options: Mapping[str, Any]
) -> Dict[str, Plan]:
    """The plans after alarms were set or deleted."""
    changed = [instance_id for instance_id, plan in plans.items() if plan.actions]
    names = {instance_id: credit_alarm.name_of(options, instance_id) for instance_id in changed}
    requests: Dict[str, Mapping[str, Any]] = {}
    if options["state"] == "restored":
        refused = credit_alarm.delete(observation.located, names)
    else:
        for instance_id in changed:
            instance = observation.instances[instance_id]
            rules = RULES[instance.instance_type]
            requests[instance_id] = credit_alarm.wanted(instance, rules, options, existing.answer_of(instance_id))
        refused = credit_alarm.put(observation.located, requests)
    # The answer of a call that succeeded can be lost, so what AWS shows now decides.
    now = credit_alarm.alarms(observation.located, names)
    kept = {
        instance_id: "AWS accepted the change of the alarm but still shows another"
        for instance_id in changed
        if instance_id in now.failed or not credit_alarm.fits(now.answer_of(instance_id), requests.get(instance_id))
    }
    return _after(observation, plans, kept, refused, now.failed)


def _after(
    observation: Observation, plans: Mapping[str, Plan], kept: Mapping[str, str], *errors: Mapping[str, str]
) -> Dict[str, Plan]:
    """The plans after a change; `kept` says what AWS shows in place of it, unless the error of a call says why."""
    failed = {
        instance_id: next((each[instance_id] for each in errors if instance_id in each), reason)
        for instance_id, reason in kept.items()
    }
    observation.note(failed)
    return after(
        plans, [instance_id for instance_id, plan in plans.items() if plan.actions and instance_id not in failed]
    )


def _facts(specification: Any, series: Sequence[Mapping[str, Any]]) -> CreditFacts:
    values: Dict[str, List[float]] = {metric["name"]: metric["values"] for metric in series if metric["values"]}
    used = values.get("CPUCreditUsage")
    return CreditFacts(
        specification=(specification or {}).get("CpuCredits"),
        balance=values["CPUCreditBalance"][-1] if "CPUCreditBalance" in values else None,
        used_per_hour=round(sum(used) / len(used) * 60 / STEP_MINUTES, 3) if used else None,
        surplus=values["CPUSurplusCreditBalance"][-1] if "CPUSurplusCreditBalance" in values else None,
        charged=round(sum(values["CPUSurplusCreditsCharged"]), 3) if "CPUSurplusCreditsCharged" in values else None,
    )
