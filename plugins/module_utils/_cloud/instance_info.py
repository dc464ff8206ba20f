# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts and scheduled events of an instance. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from .._plan import Finding, Plan
from .accounts import deadline
from .instance_facts import InstanceFacts
from .observe import observe
from .result import contract
from .types.facts import TypeFacts

CONCERN = "instance_info"


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    with deadline(options["timeout"]):
        observation = observe(options, with_status=True)
    plans = {
        instance_id: plan(facts, observation.type_of(facts)) for instance_id, facts in observation.instances.items()
    }
    details = {
        instance_id: {"facts": facts.as_dict(), "type": observation.type_of(facts).as_dict()}
        for instance_id, facts in observation.instances.items()
    }
    return contract(CONCERN, observation, plans, details)


def plan(instance: InstanceFacts, kind: TypeFacts) -> Plan:
    """Findings about virtualization, generation, tenancy and scheduled events. No actions."""
    findings: List[Finding] = []

    def say(knob: str, status: str, reason: str, now: Any, reference: str, gain: str = "") -> None:
        findings.append(instance.finding(CONCERN, knob, status, reason, now, reference, gain=gain))

    if instance.host_class == "xen_pv":
        say(
            "virtualization",
            "advice",
            "paravirtual: no enhanced networking, and system calls go through the hypervisor; move to an HVM image",
            "paravirtual",
            "UnixBench on PV and HVM, 2014; Aerospike, 2014",
            "UnixBench, 2014: index 2.6 × on HVM; Aerospike, 2014: network 3 × with enhanced networking",
        )
    elif instance.virtualization:
        say(
            "virtualization",
            "ok",
            f"{instance.virtualization} on {instance.host_class}",
            instance.virtualization,
            "UnixBench on PV and HVM, 2014",
        )
    if kind.source == "name":
        say("generation", "unknown", f"nothing is known about {instance.instance_type}", None, "AWS, 2017")
    elif kind.current_generation is False:
        say(
            "generation",
            "advice",
            f"{instance.instance_type} is of a previous generation; move to a current one",
            "previous",
            "AWS, 2017",
        )
    else:
        say("generation", "ok", f"{instance.instance_type} is of a current generation", "current", "AWS, 2017")
    if instance.tenancy and instance.tenancy != "default":
        say(
            "tenancy",
            "advice",
            f"{instance.tenancy} tenancy: no gain over shared tenancy was measured",
            instance.tenancy,
            "Aerospike, 2014",
        )
    if instance.announced_end:
        say(
            "schedule",
            "advice",
            f"{instance.announced_end}: every change is refused",
            instance.announced_end,
            "EC2 User Guide, scheduled events",
        )
    return Plan(findings=tuple(findings))
