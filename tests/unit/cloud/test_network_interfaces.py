# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_interfaces: pure plans over types, and one run on our own fake endpoint (moto shows no queue counts)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.instance_facts import InstanceFacts, instance_facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.network_interfaces import plan, queue_counts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES, Finding

from tests.support.aws.fake_aws import FakeAws


def instance(kind: str, interfaces: Optional[List[Dict[str, Any]]] = None, **more: Any) -> InstanceFacts:
    """An instance with attachments as the API shows them."""
    attachments = interfaces if interfaces is not None else [{"DeviceIndex": 0}]
    raw = {
        "InstanceId": "i-1",
        "InstanceType": kind,
        "VirtualizationType": "hvm",
        "EnaSupport": True,
        "NetworkInterfaces": [
            {"NetworkInterfaceId": f"eni-{index}", "Attachment": attachment}
            for index, attachment in enumerate(attachments)
        ],
        **more,
    }
    return instance_facts(raw, "1", "", "r", offline_types()[kind])


def findings(facts: InstanceFacts) -> Dict[str, Finding]:
    """knob → finding."""
    return {finding.knob: finding for finding in plan(facts, offline_types()[facts.instance_type]).findings}


@pytest.mark.parametrize(
    ("facts", "status", "phrase"),
    [
        # 8 queues on 2 CPUs: the driver takes one per CPU.
        (instance("m5.large"), "ok", "2 queues for 2 CPUs"),
        (instance("m5.4xlarge"), "ok", "enough for so few CPUs"),
        (instance("m5.24xlarge"), "advice", "14 more interfaces can be attached, each with 8"),
        (instance("m6i.32xlarge"), "advice", "ask for up to 32 per interface with EnaQueueCount, 120 per card"),
        (
            instance("m6i.32xlarge", [{"DeviceIndex": 0, "EnaQueueCount": 32}]),
            "advice",
            "14 more interfaces can be attached, each with up to 32",
        ),
        (instance("m6i.16xlarge", [{"EnaQueueCount": 16}] * 4), "ok", "64 queues for 64 CPUs"),
        (instance("m5.24xlarge", [{"DeviceIndex": 0}] * 15), "ok", "120 queues for 96 CPUs"),
        (instance("c4.8xlarge", EnaSupport=False, SriovNetSupport="simple"), "advice", "adds 2, up to 16"),
        (instance("c4.8xlarge", EnaSupport=False), "advice", "enhanced networking first"),
        # The API reports 8 queues for c4, which have no meaning without ENA.
        (instance("c4.8xlarge"), "advice", "enhanced networking first"),
        (instance("f1.16xlarge"), "unknown", "not known"),
        (instance("m6i.32xlarge", CpuOptions={"CoreCount": 4, "ThreadsPerCore": 2}), "ok", "8 queues for 8 CPUs"),
    ],
)
def test_queues_against_cpus(facts: InstanceFacts, status: str, phrase: str) -> None:
    found = findings(facts)["queues"]
    assert (found.status, phrase in found.reason) == (status, True), found.reason


def test_a_card_without_an_interface_is_reported_as_unused_bandwidth() -> None:
    single = instance("c6in.32xlarge")
    both = instance("c6in.32xlarge", [{"NetworkCardIndex": 0}, {"NetworkCardIndex": 1}])
    assert findings(single)["cards"].status == "advice"
    assert findings(both)["cards"].status == "ok"
    assert "cards" not in findings(instance("m5.large"))


def test_types_that_forget_idle_flows_quickly_are_named() -> None:
    assert "350 s" in findings(instance("m8i.large"))["idle_timeout"].reason
    assert "idle_timeout" not in findings(instance("m5.large"))


def test_ena_express_is_reported_if_the_type_has_it() -> None:
    assert findings(instance("m5.large"))["ena_express"].status == "not_applicable"
    off = instance("c6in.32xlarge")
    on = instance("c6in.32xlarge", [{"EnaSrdSpecification": {"EnaSrdEnabled": True}}])
    assert (findings(off)["ena_express"].now, findings(on)["ena_express"].now) == (0, 1)


def test_no_type_of_the_table_raises_or_gets_a_count_beyond_its_cpus() -> None:
    for name, kind in offline_types().items():
        for ena in (True, False):
            facts = instance(name, EnaSupport=ena)
            assert all(finding.status in STATUSES for finding in plan(facts, kind).findings)
            for count in queue_counts(facts, kind, kind.vcpus).values():
                assert count is None or 1 <= count <= (kind.vcpus or count), name


def test_the_module(run: Any, aws: FakeAws) -> None:
    ids = [aws.add(number, "m5.24xlarge") for number in range(1, 1001)]
    result = run("network_interfaces", instance_ids=ids)
    assert result["instances"][ids[0]]["interfaces"][0]["interface_id"] == "eni-00000000000000001"
    assert result["msg"] == "network_interfaces: 1000 instances: 1000 advice, 1000 ok, 1000 not applicable"
    assert aws.calls == {"DescribeInstances": 5, "DescribeInstanceTypes": 1}
