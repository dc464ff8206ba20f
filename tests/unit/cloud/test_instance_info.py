# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""instance_info, on our own fake endpoint."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Dict

import pytest

from tests.support.aws.fake_aws import FakeAws


def statuses(result: Dict[str, Any], instance_id: str) -> Dict[str, str]:
    """knob → status of an instance's findings."""
    return {finding["knob"]: finding["status"] for finding in result["instances"][instance_id]["findings"]}


def test_the_class_comes_from_the_type_not_from_the_hypervisor_of_the_instance(run: Any, aws: FakeAws) -> None:
    kinds = {
        aws.add(1, "m5.large"): "nitro",
        aws.add(2, "c4.large"): "xen_hvm",
        aws.add(3, "i4i.metal"): "metal",
        aws.add(4, "m3.large", VirtualizationType="paravirtual", KernelId="aki-1"): "xen_pv",
        aws.add(5, "x99.large"): "unknown",
    }
    result = run("instance_info", instance_ids=list(kinds))
    assert {instance_id: found["facts"]["host_class"] for instance_id, found in result["instances"].items()} == kinds
    assert all(raw["Hypervisor"] == "xen" for raw in aws.instances.values())


def test_facts_come_as_the_api_gives_them(run: Any, aws: FakeAws) -> None:
    instance = aws.add(
        1,
        "c6in.32xlarge",
        CpuOptions={"CoreCount": 32, "ThreadsPerCore": 1},
        Placement={"AvailabilityZone": "eu-west-1b", "Tenancy": "dedicated", "GroupName": "fast", "PartitionNumber": 2},
        CurrentInstanceBootMode="uefi",
        NetworkPerformanceOptions={"BandwidthWeighting": "vpc-1"},
        Tags=[{"Key": "workload", "Value": "cache"}, {"Key": "aws:autoscaling:groupName", "Value": "web"}],
        NetworkInterfaces=[
            {
                "NetworkInterfaceId": "eni-2",
                "Attachment": {"DeviceIndex": 1, "NetworkCardIndex": 1, "EnaQueueCount": 16},
            },
            {
                "NetworkInterfaceId": "eni-1",
                "InterfaceType": "efa",
                "Association": {"PublicIp": "192.0.2.1", "IpOwnerId": "amazon"},
                "Attachment": {
                    "DeviceIndex": 0,
                    "EnaSrdSpecification": {
                        "EnaSrdEnabled": True,
                        "EnaSrdUdpSpecification": {"EnaSrdUdpEnabled": False},
                    },
                },
            },
        ],
    )
    facts = run("instance_info", instance_ids=[instance])["instances"][instance]["facts"]
    wanted = {
        "account": "111111111111",
        "region": "eu-west-1",
        "availability_zone": "eu-west-1b",
        "cores": 32,
        "threads_per_core": 1,
        "tenancy": "dedicated",
        "placement_group": "fast",
        "partition": 2,
        "boot_mode": "uefi",
        "bandwidth_weighting": "vpc-1",
        "workload": "cache",
        "auto_scaling_group": "web",
        "public_address": True,
        "ena_support": True,
        "sriov_net_support": False,
    }
    assert {key: facts[key] for key in wanted} == wanted
    first, second = facts["interfaces"]
    assert (first["interface_id"], first["kind"], first["queues"], first["srd"]) == ("eni-1", "efa", None, True)
    assert (second["interface_id"], second["card"], second["queues"], second["srd"]) == ("eni-2", 1, 16, False)


def test_paravirtual_and_old_is_advice_with_its_gain(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m3.large", VirtualizationType="paravirtual")
    result = run("instance_info", instance_ids=[instance])
    assert statuses(result, instance) == {"virtualization": "advice", "generation": "advice"}
    assert "Aerospike, 2014" in result["findings"][0]["gain"]
    assert result["msg"] == "instance_info: 1 instance: 2 advice"


def test_future_events_and_spot_notices_are_reported_and_past_ones_are_not(run: Any, aws: FakeAws) -> None:
    soon = datetime(2026, 12, 24, 3, 0, tzinfo=timezone.utc)
    event, past, spot, calm = (aws.add(number) for number in range(1, 5))
    aws.statuses[event] = {"Events": [{"Code": "system-reboot", "Description": "reboot", "NotBefore": soon}]}
    aws.statuses[past] = {"Events": [{"Code": "instance-stop", "Description": "[Completed] stop"}]}
    aws.instances[spot]["InstanceLifecycle"] = "spot"
    aws.spot_requests = [{"InstanceId": spot, "Status": {"Code": "marked-for-termination"}}]
    result = run("instance_info", instance_ids=[event, past, spot, calm])
    reasons = {
        instance_id: [finding["reason"] for finding in found["findings"] if finding["knob"] == "schedule"]
        for instance_id, found in result["instances"].items()
    }
    assert reasons[event] == [
        "scheduled event: system-reboot not before 2026-12-24T03:00:00+00:00: every change is refused"
    ]
    assert reasons[spot] == ["spot notice: marked-for-termination: every change is refused"]
    assert reasons[past] == reasons[calm] == []


def test_events_that_could_not_be_asked_for_leave_the_rest_complete(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1)
    aws.fault("DescribeInstanceStatus", "UnauthorizedOperation")
    result = run("instance_info", instance_ids=[instance])
    assert statuses(result, instance) == {"virtualization": "ok", "generation": "advice", "": "unknown"}
    assert "ec2:DescribeInstanceStatus" in result["instances"][instance]["facts"]["unasked"]


def test_a_thousand_instances_cost_few_calls_although_one_id_is_unknown(run: Any, aws: FakeAws) -> None:
    ids = [aws.add(number, "m5.large" if number % 2 else "c4.large") for number in range(1, 1001)]
    result = run("instance_info", instance_ids=[*ids, "i-0000000000ffffff"])
    assert len(result["instances"]) == 1001
    assert list(result["failed_instances"]) == ["i-0000000000ffffff"]
    assert aws.calls == {"DescribeInstances": 6, "DescribeInstanceStatus": 10, "DescribeInstanceTypes": 1}


def test_filters_choose_and_three_pages_are_three_calls(run: Any, aws: FakeAws) -> None:
    for number in range(1, 1001):
        aws.add(number, Tags=[{"Key": "workload", "Value": "cache"}])
    aws.add(2000)
    aws.page = 400
    result = run("instance_info", filters={"tag:workload": "cache"})
    assert len(result["instances"]) == 1000
    assert aws.calls["DescribeInstances"] == 3


def test_terminated_instances_are_not_chosen_by_filters(run: Any, aws: FakeAws) -> None:
    alive, dead = aws.add(1), aws.add(2, State={"Code": 48, "Name": "terminated"})
    result = run("instance_info", filters={})
    assert alive in result["instances"]
    assert dead not in result["instances"]


def test_accounts_and_regions_in_one_run(run: Any, aws: FakeAws) -> None:
    role = "arn:aws:iam::222222222222:role/audit"
    aws.roles[role] = "222222222222"
    instance = aws.add(1, account="111111111111")
    other_instance = aws.add(2, account="222222222222", region="us-east-1")
    options = {"instance_ids": [other_instance], "regions": ["eu-west-1", "us-east-1"]}
    result = run("instance_info", assume_roles={"production": {"role_arn": role, "external_id": "team"}}, **options)
    facts = result["instances"][other_instance]["facts"]
    assert (facts["account"], facts["account_name"], facts["region"]) == ("222222222222", "production", "us-east-1")
    assert ("AssumeRole", {"RoleArn": role, "RoleSessionName": "nearmetal", "ExternalId": "team"}) in aws.requests
    result = run("instance_info", instance_ids=[instance], assume_roles={"production": role})
    assert "unknown instance" in result["msg"]


def test_one_account_that_refuses_leaves_the_others_complete(run: Any, aws: FakeAws) -> None:
    role = "arn:aws:iam::222222222222:role/audit"
    aws.roles[role] = "222222222222"
    other_instance = aws.add(2, account="222222222222")
    roles = {"staging": "arn:aws:iam::333333333333:role/audit", "production": role}
    result = run("instance_info", instance_ids=[other_instance, "i-00000000000000fff"], assume_roles=roles)
    assert result["instances"][other_instance]["facts"]["account_name"] == "production"
    assert result["errors"] == [
        "assume_roles: staging: AccessDenied: the credentials lack the permission: see the module's policy in docs/iam/"
    ]
    assert "not every call was answered" in result["failed_instances"]["i-00000000000000fff"]


def test_types_come_from_the_api_if_one_of_two_regions_returns_them(run: Any, aws: FakeAws) -> None:
    known, retired = aws.add(1, "r4.large"), aws.add(2, "c9.unheard")
    aws.fault("DescribeInstanceTypes", "UnauthorizedOperation", times=1)
    regions = ["eu-west-1", "us-east-1"]
    assert run("instance_info", instance_ids=[known], regions=regions)["types_from"] == "api"
    aws.calls.clear()
    assert run("instance_info", instance_ids=[known, retired], regions=regions)["types_from"] == "table"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"instance_ids": ["banana"]}, "instance_ids: 'banana' isn't an instance id"),
        ({"instance_ids": ["i-00000000000000001"]}, "unknown instance: not found in eu-west-1"),
        ({}, "one of the following is required: instance_ids, filters"),
        ({"filters": {}, "instance_ids": []}, "mutually exclusive"),
        ({"filters": {}, "assume_roles": {"a": "b"}}, "assume_roles: a: 'b' isn't a role"),
        ({"filters": {}, "profile": "nobody"}, "nobody"),
        ({"filters": {}, "timeout": 0}, "timeout: 0: it must be at least 1 second"),
        ({"filters": {}, "timeout": 10**30}, "it must be at least 1 second, and at most 86400"),
        ({"filters": {}, "timeout": -1}, "timeout: -1: it must be at least 1 second"),
    ],
)
def test_a_wrong_option_is_named(run: Any, aws: FakeAws, options: Dict[str, Any], message: str) -> None:
    result = run("instance_info", **options)
    assert result["failed"]
    assert message in result["msg"]
