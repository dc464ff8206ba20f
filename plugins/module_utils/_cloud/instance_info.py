# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts and scheduled events of an instance. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Mapping

from .._plan import Finding, Plan
from .._planning.knob import Knob
from .accounts import deadline
from .instance_facts import InstanceFacts
from .observe import observe
from .result import contract
from .types.facts import TypeFacts

CONCERN = "instance_info"
_VIRTUALIZATION = Knob(CONCERN, "virtualization", reference="UnixBench on PV and HVM, 2014")
_PV = "UnixBench on PV and HVM, 2014; Aerospike, 2014"
_GAIN = "UnixBench, 2014: index 2.6 × on HVM; Aerospike, 2014: network 3 × with enhanced networking"
_GENERATION = Knob(CONCERN, "generation", reference="AWS, 2017")
_TENANCY = Knob(CONCERN, "tenancy", reference="Aerospike, 2014")
_SCHEDULE = Knob(CONCERN, "schedule", reference="EC2 User Guide, scheduled events")


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    with deadline(options["timeout"]):
        observation = observe(options, with_status=True)
    details = observation.each(lambda facts, kind: {"facts": asdict(facts), "type": kind.as_dict()})
    return contract(CONCERN, observation, observation.each(plan), details)


def plan(instance: InstanceFacts, kind: TypeFacts) -> Plan:
    """Findings about virtualization, generation, tenancy and scheduled events. No actions."""
    findings: List[Finding] = []

    def say(knob: Knob, status: str, reason: str, now: Any, gain: str = "") -> None:
        findings.append(knob.at(instance.instance_id).finding(status, reason, now, gain=gain))

    if instance.host_class == "xen_pv":
        reason = "paravirtual: no enhanced networking, and system calls go through the hypervisor; move to an HVM image"
        say(_VIRTUALIZATION._replace(reference=_PV), "advice", reason, "paravirtual", _GAIN)
    elif instance.virtualization:
        reason = f"{instance.virtualization} on {instance.host_class}"
        say(_VIRTUALIZATION, "ok", reason, instance.virtualization)
    if kind.source == "name":
        say(_GENERATION, "unknown", f"nothing is known about {instance.instance_type}", None)
    elif kind.current_generation is False:
        reason = f"{instance.instance_type} is of a previous generation; move to a current one"
        say(_GENERATION, "advice", reason, "previous")
    else:
        say(_GENERATION, "ok", f"{instance.instance_type} is of a current generation", "current")
    if instance.tenancy and instance.tenancy != "default":
        reason = f"{instance.tenancy} tenancy: no gain over shared tenancy was measured"
        say(_TENANCY, "advice", reason, instance.tenancy)
    if instance.announced_end:
        say(_SCHEDULE, "advice", f"{instance.announced_end}: every change is refused", instance.announced_end)
    return Plan(findings=tuple(findings))
