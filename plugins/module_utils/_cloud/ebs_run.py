# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of the module ebs: observe and plan. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.api import Answers, Series
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.ebs import CONCERN, EbsFacts, ExceededFacts, plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.observe import Observation, observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import deadline
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.volume_facts import volume_facts

_HOURS = 1


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    hosts = {each["instance_id"]: each for each in options.get("hosts") or ()}
    with deadline(options["timeout"]):
        seen = observe(options)
        volumes = seen.keep_failures(seen.cloud.volumes(seen.found))
        metrics = Answers()
        if options["metrics"]:
            metrics = seen.keep_failures(seen.cloud.metrics(seen.found, _series(seen, volumes), _HOURS))
    facts = {each: _facts(each, volumes, metrics, hosts.get(each, {})) for each in seen.instances}
    plans = {each: plan(one, seen.type_of(one), facts[each]) for each, one in seen.instances.items()}
    shown = {each: {"volumes": [volume.as_dict() for volume in one.volumes or ()]} for each, one in facts.items()}
    return contract(CONCERN, seen, plans, shown)


def _series(seen: Observation, volumes: Answers) -> Dict[str, List[Series]]:
    wanted: Dict[str, List[Series]] = {}
    for each, instance in seen.instances.items():
        kind = seen.type_of(instance)
        found = [volume_facts(one, each) for one in volumes.by_id.get(each, ())]
        wanted[each] = [
            Series("AWS/EBS", "BurstBalance", "VolumeId", one.volume_id, "Minimum") for one in found if one.bursts
        ]
        if kind.ebs_baseline_iops != kind.ebs_maximum_iops:
            names = ("EBSIOBalance%", "EBSByteBalance%")
            wanted[each] += [Series("AWS/EC2", name, "InstanceId", each, "Minimum") for name in names]
    return wanted


def _facts(instance_id: str, volumes: Answers, metrics: Answers, host: Mapping[str, Any]) -> EbsFacts:
    lowest = {
        (one["name"], one["dimension"]): min(one["values"])
        for one in metrics.by_id.get(instance_id, ())
        if one["values"]
    }
    found = None
    if instance_id not in volumes.failed:
        found = tuple(
            volume_facts(one, instance_id, lowest.get(("BurstBalance", one["VolumeId"])))
            for one in sorted(volumes.by_id.get(instance_id, ()), key=lambda one: str(one["VolumeId"]))
        )
    balances = {name: value for (name, dimension), value in lowest.items() if dimension == instance_id}
    exceeded = tuple(ExceededFacts(**one) for one in host.get("exceeded") or ())
    return EbsFacts(found, balances, exceeded)
