# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alarm on an instance's balance of CPU credits: wanted, held, who made it, and the calls about it. PRIVATE."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from ..._error import NearmetalError
from ..._plan import Plan
from ..._planning.knob import Knob
from ..._words import shown
from ..accounts import Target, title
from ..api import Answers, Located, Question, Raw, ask, by_target, parts
from ..credit_rules import STEP_MINUTES, CreditRules
from ..instance_facts import InstanceFacts

_ALARM = Knob("cpu_credits", "alarm", "credit_alarm", "AWS, 2017")
_MARK = "nearmetal.ec2: "  # begins the description of every alarm of nearmetal
_NAME = re.compile(r"[\w .:/()+=@-]{1,200}", re.ASCII)
_TOPIC = re.compile(r"arn:[a-z0-9-]{1,32}:sns:[a-z0-9-]{1,32}:[0-9]{12}:[\w-]{1,256}(\.fifo)?", re.ASCII)
# AWS refreshes the balance every 5 minutes. A stopped instance has none, and then CloudWatch keeps quiet by default.
_FIXED: Dict[str, Any] = {
    "Namespace": "AWS/EC2",
    "MetricName": "CPUCreditBalance",
    "Statistic": "Average",
    "Period": STEP_MINUTES * 60,
    "EvaluationPeriods": 1,
    "ComparisonOperator": "LessThanThreshold",
}
# What nearmetal's requests leave out, as CloudWatch then returns it.
_UNSET: Dict[str, Any] = {
    "OKActions": [],
    "InsufficientDataActions": [],
    "TreatMissingData": "missing",
    "DatapointsToAlarm": None,
    "Unit": None,
}
_NAMES = 100  # the most names of DescribeAlarms and of DeleteAlarms
_ALARMS = Question(
    "describe_alarms",
    "MetricAlarms",
    _NAMES,
    lambda names: {"AlarmNames": names, "MaxRecords": _NAMES},
    lambda alarm: [alarm["AlarmName"]],
    "cloudwatch",
)


def require(options: Mapping[str, Any]) -> None:
    """Raise NearmetalError for an option that no alarm can have."""
    percent = options["alarm_percent"]
    if percent is not None and not 1 <= percent <= 99:
        raise NearmetalError(f"alarm_percent: {percent} is not allowed: it must be from 1 to 99")
    if not _NAME.fullmatch(options["alarm_name"]):
        raise NearmetalError(
            f"alarm_name: {shown(options['alarm_name'])} is not allowed: it must be 1 to 200 letters, digits, spaces "
            "or characters of _.:/()+=@-"
        )
    for topic in options["alarm_topics"]:
        if not _TOPIC.fullmatch(topic):
            raise NearmetalError(
                f"alarm_topics: {shown(topic)} is not allowed: it must be the ARN of an SNS topic, such as "
                "arn:aws:sns:eu-west-1:123456789012:operators"
            )


def name_of(options: Mapping[str, Any], instance_id: str) -> str:
    return f"{options['alarm_name']}-{instance_id}"


def wanted(instance: InstanceFacts, rules: CreditRules, options: Mapping[str, Any], existing: Optional[Raw]) -> Raw:
    """The request that sets the alarm. Actions that an operator switched off stay off."""
    percent = options["alarm_percent"]
    return {
        **_FIXED,
        "AlarmName": name_of(options, instance.instance_id),
        "AlarmDescription": f"{_MARK}CPU credits of {instance.instance_id} are below {percent} % of {rules.cap:g}",
        "ActionsEnabled": (existing or {}).get("ActionsEnabled") is not False,
        "AlarmActions": sorted(set(options["alarm_topics"])),
        "Dimensions": [{"Name": "InstanceId", "Value": instance.instance_id}],
        "Threshold": round(rules.cap * percent / 100, 3),
    }


def fits(existing: Optional[Raw], request: Optional[Raw]) -> bool:
    """Whether an alarm is what a request asks for; without a request there is to be none."""
    if existing is None or request is None:
        return existing is request
    same = all(existing.get(key) == value for key, value in request.items() if key != "AlarmActions")
    return same and sorted(existing.get("AlarmActions", ())) == request["AlarmActions"]


def made_by_nearmetal(alarm: Raw, instance_id: str) -> bool:
    """Whether an alarm is as an earlier run left it, apart from threshold, topics and switched-off actions."""
    return (
        str(alarm.get("AlarmDescription", "")).startswith(_MARK)
        and alarm.get("Dimensions") == [{"Name": "InstanceId", "Value": instance_id}]
        and all(alarm.get(key) == value for key, value in _FIXED.items())
        and all(alarm.get(key, unset) == unset for key, unset in _UNSET.items())
    )


def plan(
    instance: InstanceFacts,
    rules: Optional[CreditRules],
    existing: Optional[Raw],
    trouble: str,
    options: Mapping[str, Any],
) -> Plan:
    """The alarm to set, or with state restored to delete. `lost` says why it is not known which alarm there is."""
    restored = options["state"] == "restored"
    if not restored and (options["alarm_percent"] is None or rules is None):
        return Plan()
    knob, now = _ALARM.at(instance.instance_id), _shown(existing) if existing else None
    if trouble:
        return knob.says("unknown", f"it is not known whether there is an alarm: {trouble}")
    name = name_of(options, instance.instance_id)
    if existing is None and restored:
        return knob.says("ok", f"there is no alarm {name}")
    request = wanted(instance, rules, options, existing) if rules and not restored else None
    if request and existing and fits(existing, request):
        muted = ", and its actions are switched off" if existing.get("ActionsEnabled") is False else ""
        return knob.says("ok", f"the alarm {name} is set{muted}", now)
    if existing and not made_by_nearmetal(existing, instance.instance_id):
        reason = f"the alarm {name} was made or changed by somebody else: choose another alarm_name"
        return knob.says("refused", reason, now)
    refusal = instance.unconfirmed(options)
    if request and not options["allow_cost"]:
        refusal = refusal or "an alarm costs money every month: set allow_cost: true"
    if refusal:
        return knob.says("refused", refusal, now)
    reason = f"the alarm {name} of an earlier run is deleted"
    if request:
        below = f"{request['Threshold']:g} of {rules.cap:g} credits" if rules else ""
        reason = f"the alarm {name} rings below {below}: the instance is slowed down or costs money soon"
    after = _shown(request) if request else None
    action = knob.action("user", now, after, reason)
    return Plan((action,), (knob.finding("would_change", reason, now, after),))


def _shown(alarm: Raw) -> Dict[str, Any]:
    """What an alarm is, in the words of a report."""
    return {
        "name": alarm["AlarmName"],
        "below": alarm.get("Threshold"),
        "topics": ", ".join(sorted(alarm.get("AlarmActions", ()))),
    }


def alarms(located: Mapping[str, Located], names: Mapping[str, str]) -> Answers:
    """The alarm with an instance's name in `names`; no answer where there is none."""
    return ask(_ALARMS, located, names)


def put(located: Mapping[str, Located], requests: Mapping[str, Raw]) -> Dict[str, str]:
    """Set the alarm of each instance; the errors by instance. Writes."""
    failed: Dict[str, str] = {}
    for instance_id, request in requests.items():
        failed.update(_write(located[instance_id].target, [instance_id], "put_metric_alarm", request))
    return failed


def delete(located: Mapping[str, Located], names: Mapping[str, str]) -> Dict[str, str]:
    """Delete the alarm of each instance; the errors by instance. Writes."""
    failed: Dict[str, str] = {}
    for target, ids in by_target(located):
        for part in parts([instance_id for instance_id in ids if instance_id in names], _NAMES):
            request = {"AlarmNames": [names[instance_id] for instance_id in part]}
            failed.update(_write(target, part, "delete_alarms", request))
    return failed


def _write(target: Target, ids: List[str], operation: str, request: Mapping[str, Any]) -> Dict[str, str]:
    try:
        target.call("cloudwatch", operation, **request)
    except target.boto.errors as error:
        return dict.fromkeys(ids, target.boto.explain(error, f"{target.name}: {title(operation)}"))
    return {}
