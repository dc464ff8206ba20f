# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ebs, on our own fake endpoint: moto shows no throughput at creation and no CloudWatch values of its own."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.volume_facts import volume_facts

from tests.support.aws.fake_aws import FakeAws


def attach(aws: FakeAws, instance_id: str, number: int, kind: str = "gp3", size: int = 100, **more: Any) -> str:
    """One more volume of an instance."""
    volume_id = f"vol-{number:017x}"
    attachment = {"InstanceId": instance_id, "Device": f"/dev/sd{chr(96 + number)}"}
    aws.volumes.append({"VolumeId": volume_id, "VolumeType": kind, "Size": size, "Attachments": [attachment], **more})
    return volume_id


def findings(result: Dict[str, Any], instance_id: str) -> Dict[str, Dict[str, Any]]:
    """knob → finding of an instance."""
    return {finding["knob"]: finding for finding in result["instances"][instance_id]["findings"]}


def test_small_volumes_are_the_limit_of_a_large_instance(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "c6in.32xlarge")
    attach(aws, instance, 1, Iops=3000, Throughput=125)
    found = findings(run("ebs", instance_ids=[instance]), instance)
    assert found["iops"]["status"] == "ok"
    assert found["iops"]["now"] == {"volumes": 3000, "baseline": 400000, "maximum": 400000}
    assert found["throughput"]["now"] == {"volumes": 131.1, "baseline": 12500.0, "maximum": 12500.0}
    assert "unused_iops" not in found


def test_the_instance_is_the_limit_and_money_is_unused(run: Any, aws: FakeAws) -> None:
    # StorageReview, 2018: thirty volumes at an instance that does 65,000 (i3.16xlarge).
    instance = aws.add(1, "i3.16xlarge")
    for number in range(1, 5):
        attach(aws, instance, number, "io2", Iops=40000)
    found = findings(run("ebs", instance_ids=[instance]), instance)
    assert found["iops"]["status"] == "advice"
    assert found["iops"]["reason"] == "the instance is the limit: 65,000 IOPS, its volumes could do 160,000"
    assert "StorageReview, 2018" in found["iops"]["gain"]
    assert found["unused_iops"]["now"] == 95000


def test_only_what_costs_extra_is_money_unused(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.large")  # 18,750 IOPS at most, 3,600 for long
    for number in range(1, 9):
        attach(aws, instance, number, "gp3", Iops=3000, Throughput=125)
    found = findings(run("ebs", instance_ids=[instance]), instance)
    assert "the instance is the limit" in found["iops"]["reason"]
    assert "unused_iops" not in found


def test_above_the_baseline_is_for_bursts_only(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.large")
    attach(aws, instance, 1, "gp3", Iops=10000, Throughput=125)
    found = findings(run("ebs", instance_ids=[instance]), instance)
    assert found["iops"]["status"] == "advice"
    assert "3,600 for long and 18,750 in bursts" in found["iops"]["reason"]


@pytest.mark.parametrize(
    ("kind", "on", "status"),
    [
        ("c3.xlarge", False, "advice"),
        ("c3.xlarge", True, "ok"),
        ("m5.large", True, "ok"),
        ("t2.micro", False, "not_applicable"),
    ],
)
def test_ebs_optimised_where_it_is_optional(run: Any, aws: FakeAws, kind: str, on: bool, status: str) -> None:
    instance = aws.add(1, kind, EbsOptimized=on)
    assert findings(run("ebs", instance_ids=[instance]), instance)["ebs_optimized"]["status"] == status


def test_balances_are_asked_only_on_request_and_in_one_call(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.large")
    low, full = attach(aws, instance, 1, "gp2", Iops=300), attach(aws, instance, 2, "st1", 1024)
    attach(aws, instance, 3, "gp3")
    aws.metrics = {
        ("BurstBalance", low): [50, 4, 30],
        ("BurstBalance", full): [100],
        ("EBSIOBalance%", instance): [99, 12],
    }
    result = run("ebs", instance_ids=[instance])
    assert aws.calls["GetMetricData"] == 0
    result = run("ebs", instance_ids=[instance], metrics=True)
    assert aws.calls["GetMetricData"] == 1
    statuses = {
        (finding["where"], finding["status"], finding["now"])
        for finding in result["findings"]
        if finding["knob"] == "burst_balance"
    }
    assert statuses == {(low, "advice", 4), (full, "ok", 100), (instance, "advice", 12)}


def test_the_counters_of_the_host_show_which_limit_held_it_back(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1)
    counters = {"volume_iops_us": 0, "volume_throughput_us": 0, "instance_iops_us": 0, "instance_throughput_us": 0}
    hosts = [
        {
            "instance_id": instance,
            "exceeded": [
                {"device": "nvme0n1", **counters},
                {"device": "nvme1n1", **counters, "instance_iops_us": 2_500_000},
                {"device": "nvme2n1", **counters, "volume_iops_us": 500_000},
            ],
        }
    ]
    result = run("ebs", instance_ids=[instance], hosts=hosts)
    statuses = [
        (finding["status"], finding["reason"]) for finding in result["findings"] if finding["knob"] == "exceeded"
    ]
    assert statuses == [
        ("ok", "nvme0n1: never held back since it was attached"),
        ("advice", "nvme1n1: held back by the instance's limit for 2.5 s since it was attached"),
        ("advice", "nvme2n1: held back by the volume's limit for 0.5 s since it was attached"),
    ]


@pytest.mark.parametrize("counter", ["volume_iops_us", "instance_throughput_us"])
@pytest.mark.parametrize("number", [-1, 1 << 64, 10**400])
def test_a_counter_that_no_host_can_have_is_named_with_its_range(run: Any, counter: str, number: int) -> None:
    counters = {"volume_iops_us": 0, "volume_throughput_us": 0, "instance_iops_us": 0, "instance_throughput_us": 0}
    hosts = [{"instance_id": "i-1", "exceeded": [{"device": "nvme1n1", **counters, counter: number}]}]
    result = run("ebs", instance_ids=["i-1"], hosts=hosts)
    assert result["failed"]
    place = "hosts: i-1: exceeded: nvme1n1"
    assert f"{place}: {counter} must be a whole number from 0 to 18446744073709551615" in result["msg"]


def test_volumes_that_can_not_be_looked_at_are_unknown(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1)
    aws.fault("DescribeVolumes", "UnauthorizedOperation")
    result = run("ebs", instance_ids=[instance])
    assert "docs/iam/" in result["failed_instances"][instance]
    assert "iops" not in findings(result, instance)


def test_a_thousand_instances_with_three_volumes_each(run: Any, aws: FakeAws) -> None:
    ids = [aws.add(number, "m5.large") for number in range(1, 1001)]
    number = 0
    for instance in ids:
        for _index in range(3):
            number += 1
            attachment = {"InstanceId": instance, "Device": "/dev/sda"}
            volume = {"VolumeId": f"vol-{number:017x}", "VolumeType": "gp2", "Size": 100, "Attachments": [attachment]}
            aws.volumes.append(volume)
    result = run("ebs", instance_ids=ids, metrics=True)
    assert all(len(instance_result["volumes"]) == 3 for instance_result in result["instances"].values())
    # 3,000 volumes and 2,000 balances of instances: 5,000 metrics in calls of 500.
    assert aws.calls == {"DescribeInstances": 5, "DescribeInstanceTypes": 1, "DescribeVolumes": 5, "GetMetricData": 10}


# AWS's page "Amazon EBS volume types": type, GiB, IOPS, throughput → IOPS, burst IOPS, MiB/s, burst MiB/s.
VOLUMES = [
    ("gp2", 10, None, None, 100, 3000, 128, 128),
    ("gp2", 200, None, None, 600, 3000, 128, 250),
    ("gp2", 1000, None, None, 3000, 3000, 250, 250),
    ("gp2", 16000, None, None, 16000, 16000, 250, 250),
    ("gp3", 10, None, None, 3000, 3000, 125, 125),
    ("gp3", 10, 80000, 2000, 80000, 80000, 2000, 2000),
    ("io1", 10, 400, None, 400, 400, 100, 100),
    ("io1", 10, 20000, None, 20000, 20000, 500, 500),
    ("io1", 10, 64000, None, 64000, 64000, 1000, 1000),
    ("io2", 10, 256000, None, 256000, 256000, 4000, 4000),
    ("st1", 1024, None, None, 500, 500, 40, 250),
    ("st1", 16384, None, None, 500, 500, 500, 500),
    ("sc1", 2048, None, None, 250, 250, 24, 160),
]


@pytest.mark.parametrize(("kind", "size", "iops", "mib_s", "sustained", "burst", "sustained_mib", "burst_mib"), VOLUMES)
def test_the_limits_of_a_volume(
    kind: str,
    size: int,
    iops: Optional[int],
    mib_s: Optional[int],
    sustained: int,
    burst: int,
    sustained_mib: float,
    burst_mib: float,
) -> None:
    raw = {"VolumeId": "vol-1", "VolumeType": kind, "Size": size, "Iops": iops, "Throughput": mib_s}
    facts = volume_facts(raw, "i-1")
    assert (facts.iops, facts.burst_iops) == (sustained, burst)
    assert facts.mb_s == pytest.approx(sustained_mib * 2**20 / 10**6, abs=0.06)
    assert facts.burst_mb_s == pytest.approx(burst_mib * 2**20 / 10**6, abs=0.06)


CARDS = ("m8ib.96xlarge", {"Iops": 80000, "Throughput": 2000})


def test_volumes_that_one_card_holds_back_belong_on_the_other_too(run: Any, aws: FakeAws) -> None:
    kind, figures = CARDS
    instance = aws.add(1, kind)
    volumes = [attach(aws, instance, number, "gp3", **figures) for number in range(1, 11)]
    found = findings(run("ebs", instance_ids=[instance]), instance)["cards"]
    assert found["status"] == "advice"
    assert list(found["now"]) == ["card 0", "card 1"]
    assert found["now"]["card 1"] == "0%"
    assert sum(volume in found["reason"] for volume in volumes) == 4, "and one more"
    assert "and 1 more, by EbsCardIndex" in found["reason"]
    moved = volumes[:5]
    for volume in aws.volumes:
        if volume["VolumeId"] in moved:
            volume["Attachments"][0]["EbsCardIndex"] = 1
    result = run("ebs", instance_ids=[instance])
    assert findings(result, instance)["cards"]["status"] == "ok"
    assert {volume["volume_id"] for volume in result["instances"][instance]["volumes"] if volume["card"] == 1} == set(
        moved
    )


def test_volumes_that_a_card_has_room_for_and_types_with_one_card_need_no_placing(run: Any, aws: FakeAws) -> None:
    small, other = aws.add(1, CARDS[0]), aws.add(2, "m5.large")
    attach(aws, small, 1, "gp3", **CARDS[1])
    attach(aws, other, 2, "gp3", **CARDS[1])
    result = run("ebs", instance_ids=[small, other])
    assert findings(result, small)["cards"]["status"] == "ok"
    assert "cards" not in findings(result, other)
