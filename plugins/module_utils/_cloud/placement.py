# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Placement: groups, zones and tenancy against what the workload needs. PRIVATE to the collection."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional

from .._plan import Finding, Plan
from .._planning.knob import Knob
from .accounts import deadline
from .api import PLACEMENT_GROUPS, ask
from .instance_facts import InstanceFacts
from .observe import observe
from .result import contract
from .types.facts import TypeFacts

CONCERN = "placement"
# Workloads whose hosts talk to each other all the time; the names are those of the collection's workloads.
CLOSE_TOGETHER = ("hpc", "low_latency")
_GROUP = Knob(CONCERN, "group", reference="AWS, 2017; Aerospike, 2014; Netflix, 2016")
_ONE_ZONE = Knob(CONCERN, "zones", reference="EC2 API, CreatePlacementGroup")
_SEVERAL_ZONES = Knob(CONCERN, "zones", reference="our choice, unmeasured")
_TENANCY = Knob(CONCERN, "tenancy", reference="Aerospike, 2014")
_GAIN = "stable low latency (AWS, 2017); 10 Gbit/s instead of 5 for a single flow (AWS's network bandwidth page)"


@dataclass(frozen=True)
class PlacementFacts:
    """An instance's placement group, and the zones of its workload."""

    workload: Optional[str]
    group: Optional[str]
    strategy: Optional[str]  # cluster | partition | spread; None: in no group, or it could not be looked at
    zones: Mapping[str, int]  # zone → how many of the workload's instances


def plan(instance: InstanceFacts, kind: TypeFacts, facts: PlacementFacts) -> Plan:
    """Findings only: a move between groups needs a stop and often another launch."""
    findings = [_group(instance, kind, facts)]
    zones = _zones(instance, facts)
    if zones:
        findings.append(zones)
    status, reason = "ok", "shared tenancy"
    if instance.tenancy and instance.tenancy != "default":
        status, reason = "advice", f"{instance.tenancy} tenancy: no gain over shared tenancy was measured"
    findings.append(_TENANCY.at(instance.instance_id).finding(status, reason, instance.tenancy))
    return Plan(findings=tuple(findings))


def zones_of(instances: Mapping[str, InstanceFacts], workload: Optional[str]) -> Dict[str, Dict[str, int]]:
    """Per workload, how many of its instances are in each zone."""
    counted: Dict[str, "Counter[str]"] = {}
    for instance in instances.values():
        name = _deciding(workload or instance.workload)
        if name and instance.availability_zone:
            counted.setdefault(name, Counter())[instance.availability_zone] += 1
    return {name: dict(sorted(zones.items())) for name, zones in counted.items()}


def _deciding(workload: Optional[str]) -> Optional[str]:
    """The first of the workloads whose hosts belong together, else all names."""
    names = [name.strip() for name in (workload or "").split(",")]
    return next((name for name in names if name in CLOSE_TOGETHER), ", ".join(names) or None)


def _group(instance: InstanceFacts, kind: TypeFacts, facts: PlacementFacts) -> Finding:
    knob = _GROUP.at(instance.instance_id)
    if facts.group and not facts.strategy:
        reason = f"the strategy of placement group {facts.group} could not be read"
        return knob.finding("unknown", reason, facts.group)
    where = f"in placement group {facts.group} ({facts.strategy})" if facts.group else "in no placement group"
    now = facts.strategy
    if facts.workload not in CLOSE_TOGETHER or facts.strategy == "cluster":
        return knob.finding("ok", where, now)
    if kind.placement_strategies and "cluster" not in kind.placement_strategies:
        reason = (
            f"{where}; {facts.workload} wants a cluster group, which {kind.instance_type} can't join: take another type"
        )
    else:
        reason = f"{where}; {facts.workload} wants a cluster group: move the instance there while it is stopped"
    return knob.finding("advice", reason, now, gain=_GAIN)


def _zones(instance: InstanceFacts, facts: PlacementFacts) -> Optional[Finding]:
    count = sum(facts.zones.values())
    if count < 2:
        return None
    now: Dict[str, int] = dict(facts.zones)
    close = facts.workload in CLOSE_TOGETHER
    reason, harm = f"all {count} instances of {facts.workload} are in one zone", " and would fail together"
    if len(facts.zones) > 1:
        reason = f"{facts.workload} is spread over {len(facts.zones)} zones"
        harm = ": each hop between them costs latency and money"
    harmful = close == (len(facts.zones) > 1)
    knob = (_ONE_ZONE if close else _SEVERAL_ZONES).at(instance.instance_id)
    return knob.finding("advice" if harmful else "ok", f"{reason}{harm}" if harmful else reason, now)


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    with deadline(options["timeout"]):
        observation = observe(options)
        names = {name: facts.placement_group for name, facts in observation.instances.items() if facts.placement_group}
        groups = observation.keep_failures(ask(PLACEMENT_GROUPS, observation.located, names))
    zones = zones_of(observation.instances, options["workload"])
    facts = {}
    for instance_id, instance in observation.instances.items():
        workload = _deciding(options["workload"] or instance.workload)
        strategy = (groups.answer_of(instance_id) or {}).get("Strategy")
        facts[instance_id] = PlacementFacts(workload, instance.placement_group, strategy, zones.get(workload or "", {}))
    plans = observation.each(lambda instance, kind: plan(instance, kind, facts[instance.instance_id]))

    def details(instance: InstanceFacts, kind: TypeFacts) -> Dict[str, Any]:
        placement = {
            "group": instance.placement_group,
            "strategy": facts[instance.instance_id].strategy,
            "zone": instance.availability_zone,
            "tenancy": instance.tenancy,
            "workload": options["workload"] or instance.workload,
            "possible_strategies": list(kind.placement_strategies),
        }
        return {"placement": placement}

    return contract(CONCERN, observation, plans, observation.each(details))
