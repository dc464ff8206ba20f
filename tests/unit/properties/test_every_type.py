# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every type of the offline table through every plan of the cloud side. Pure."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud import (
    cpu_credits,
    ebs,
    enhanced_networking,
    instance_info,
    network_interfaces,
    placement,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.instance_facts import instance_facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.volume_facts import volume_facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES, Plan

CLASSES = ("xen_pv", "xen_hvm", "nitro", "metal")


def plans(name: str, virtualization: str) -> Dict[str, Plan]:
    """The plans of every cloud concern for an instance of this type, with every option set."""
    kind = offline_types()[name]
    raw: Dict[str, Any] = {
        "InstanceId": "i-1",
        "InstanceType": name,
        "State": {"Name": "stopped"},
        "VirtualizationType": virtualization,
        "NetworkInterfaces": [{"NetworkInterfaceId": "eni-1", "Attachment": {"DeviceIndex": 0}}],
    }
    facts = instance_facts(raw, "1", "", "r", kind)
    assert facts.host_class in CLASSES
    wanted = {"ena": "enabled", "sriov": "enabled", "specification": "unlimited", "allow_cost": True}
    driver = enhanced_networking.DriverFacts(("vif",), ("ena", "ixgbevf"))
    volume = volume_facts({"VolumeId": "vol-1", "VolumeType": "io2", "Size": 100, "Iops": 100000}, "i-1")
    return {
        "instance_info": instance_info.plan(facts, kind),
        "enhanced_networking": enhanced_networking.plan(facts, kind, driver, wanted),
        "ebs": ebs.plan(facts, kind, ebs.EbsFacts((volume,), {})),
        "cpu_credits": cpu_credits.plan(facts, kind, cpu_credits.CreditFacts("standard", 1, 1, 0, 0), wanted),
        "placement": placement.plan(facts, kind, placement.PlacementFacts("hpc", None, None, {})),
        "network_interfaces": network_interfaces.plan(facts, kind),
    }


@pytest.mark.parametrize("virtualization", ["hvm", "paravirtual"])
def test_no_plan_raises_or_contradicts_itself(virtualization: str) -> None:
    for name, kind in offline_types().items():
        if virtualization not in kind.virtualization_types:
            continue
        for concern, plan in plans(name, virtualization).items():
            where = f"{name} {concern}"
            knobs: List[str] = [finding.knob for finding in plan.findings]
            assert plan.findings, where
            assert len(knobs) == len(set(knobs)), where
            assert {finding.status for finding in plan.findings} <= set(STATUSES), where
            assert {finding.concern for finding in plan.findings} == {concern}, where
            changing = {finding.knob for finding in plan.findings if finding.status == "would_change"}
            assert changing == {action.knob for action in plan.actions}, where
            if virtualization == "paravirtual" and concern == "enhanced_networking":
                assert not plan.actions, where
            if not kind.burstable and concern == "cpu_credits":
                assert not plan.actions, where
