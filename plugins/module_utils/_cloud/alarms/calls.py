# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls about CloudWatch's alarms, in batches, with the failure of each kept to its instances. PRIVATE."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ..accounts import Target, title
from ..api import Answers, Located, Raw, by_target, pages, parts

_NAMES = 100  # the most names of DescribeAlarms and of DeleteAlarms


def alarms(located: Mapping[str, Located], names: Mapping[str, str]) -> Answers:
    """The alarm with an instance's name in `names`; no answer where there is none."""
    answers = Answers()
    for target, ids in by_target(located):
        owners = {names[instance_id]: instance_id for instance_id in ids if instance_id in names}
        for part in parts(list(owners), _NAMES):
            items, error = pages(
                target, "cloudwatch", "describe_alarms", "MetricAlarms", {"AlarmNames": part, "MaxRecords": _NAMES}
            )
            for alarm in items:
                if alarm["AlarmName"] in owners:
                    answers.by_id[owners[alarm["AlarmName"]]] = [alarm]
            if error:
                lost = [owners[name] for name in part if owners[name] not in answers.by_id]
                answers.failed.update(dict.fromkeys(lost, error[1]))
    return answers


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
