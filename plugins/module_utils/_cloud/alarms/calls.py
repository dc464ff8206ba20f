# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls about CloudWatch's alarms, in batches, with the failure of each kept to its instances. PRIVATE."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.api import Answers, Located, Raw, pages, parts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import Target

_NAMES = 100  # the most names of DescribeAlarms and of DeleteAlarms


def alarms(found: Mapping[str, Located], names: Mapping[str, str]) -> Answers:
    """The alarm with an instance's name in `names`; no answer where there is none."""
    answers = Answers()
    for target, owners in _by_target(found, names):
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


def put(found: Mapping[str, Located], requests: Mapping[str, Raw]) -> Dict[str, str]:
    """Set the alarm of each instance; the errors by instance. Writes."""
    failed: Dict[str, str] = {}
    for instance_id, request in requests.items():
        failed.update(_write(found[instance_id].target, [instance_id], "put_metric_alarm", request))
    return failed


def delete(found: Mapping[str, Located], names: Mapping[str, str]) -> Dict[str, str]:
    """Delete the alarm of each instance; the errors by instance. Writes."""
    failed: Dict[str, str] = {}
    for target, owners in _by_target(found, names):
        for part in parts(list(owners), _NAMES):
            ids = [owners[name] for name in part]
            failed.update(_write(target, ids, "delete_alarms", {"AlarmNames": part}))
    return failed


def _write(target: Target, ids: List[str], operation: str, request: Mapping[str, Any]) -> Dict[str, str]:
    title = "".join(word.capitalize() for word in operation.split("_"))
    try:
        target.call("cloudwatch", operation, **request)
    except target.boto.errors as error:
        return dict.fromkeys(ids, target.boto.explain(error, f"{target.name}: {title}"))
    return {}


def _by_target(found: Mapping[str, Located], names: Mapping[str, str]) -> List[Tuple[Target, Dict[str, str]]]:
    """Per account and region, the names with their instances."""
    grouped: Dict[str, Tuple[Target, Dict[str, str]]] = {}
    for instance_id, name in names.items():
        target = found[instance_id].target
        grouped.setdefault(target.name, (target, {}))[1][name] = instance_id
    return list(grouped.values())
