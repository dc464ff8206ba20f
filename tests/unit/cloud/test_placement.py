# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""placement, on our own fake endpoint: moto has no placement groups."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from tests.support.aws.fake_aws import FakeAws


def placed(aws: FakeAws, number: int, zone: str = "a", group: str = "", kind: str = "c5n.18xlarge", **more: Any) -> str:
    """One more instance in a zone and a group."""
    place = {"AvailabilityZone": f"eu-west-1{zone}", "Tenancy": "default", "GroupName": group}
    return aws.add(number, kind, **{"Placement": place, **more})


def statuses(result: Dict[str, Any], instance_id: str) -> Dict[str, str]:
    """knob → status of an instance's findings."""
    return {finding["knob"]: finding["status"] for finding in result["instances"][instance_id]["findings"]}


@pytest.mark.parametrize(
    ("workload", "strategy", "status"),
    [
        ("hpc", "cluster", "ok"),
        ("hpc", "spread", "advice"),
        ("low_latency", None, "advice"),
        ("web", None, "ok"),
        ("web, hpc", None, "advice"),
        ("web,cache", None, "ok"),
        ("web", "spread", "ok"),
        (None, None, "ok"),
    ],
)
def test_the_workload_decides_about_the_group(
    run: Any, aws: FakeAws, workload: Optional[str], strategy: Optional[str], status: str
) -> None:
    aws.groups = [{"GroupName": "together", "Strategy": strategy}] if strategy else []
    instance = placed(aws, 1, group="together" if strategy else "")
    options = {"workload": workload} if workload else {}
    result = run("placement", instance_ids=[instance], **options)
    assert statuses(result, instance)["group"] == status
    assert result["instances"][instance]["placement"]["strategy"] == strategy


def test_a_type_that_can_not_join_a_cluster_group_is_named(run: Any, aws: FakeAws) -> None:
    instance = placed(aws, 1, kind="t3.large")
    result = run("placement", instance_ids=[instance], workload="hpc")
    assert "which t3.large can't join" in result["findings"][0]["reason"]


def test_zones_are_counted_per_workload_by_tag(run: Any, aws: FakeAws) -> None:
    def tagged(number: int, zone: str, workload: str) -> str:
        return placed(aws, number, zone, Tags=[{"Key": "workload", "Value": workload}])

    spread = [tagged(1, "a", "hpc"), tagged(2, "b", "web,hpc")]
    together = [tagged(3, "a", "web"), tagged(4, "a", "web")]
    fine = [tagged(5, "a", "cache"), tagged(6, "b", "cache")]
    alone = tagged(7, "c", "jvm")
    result = run("placement", filters={})
    assert {statuses(result, instance_id)["zones"] for instance_id in (*spread, *together)} == {"advice"}
    assert {statuses(result, instance_id)["zones"] for instance_id in fine} == {"ok"}
    assert "zones" not in statuses(result, alone)
    by_knob = {finding["knob"]: finding for finding in result["instances"][spread[0]]["findings"]}
    assert by_knob["zones"]["now"] == {"eu-west-1a": 1, "eu-west-1b": 1}


def test_dedicated_tenancy_brings_nothing(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, Placement={"AvailabilityZone": "eu-west-1a", "Tenancy": "dedicated"})
    assert statuses(run("placement", instance_ids=[instance]), instance)["tenancy"] == "advice"


def test_groups_that_can_not_be_looked_at_are_unknown(run: Any, aws: FakeAws) -> None:
    inside, outside = placed(aws, 1, group="together"), placed(aws, 2)
    aws.fault("DescribePlacementGroups", "UnauthorizedOperation")
    result = run("placement", instance_ids=[inside, outside], workload="hpc")
    assert list(result["failed_instances"]) == [inside]
    assert statuses(result, inside)["group"] == "unknown"
    assert statuses(result, outside)["group"] == "advice"


def test_a_thousand_instances_in_three_groups(run: Any, aws: FakeAws) -> None:
    ids = [placed(aws, number, group=f"group{number % 3}") for number in range(1, 1001)]
    aws.groups = [{"GroupName": f"group{number}", "Strategy": "cluster"} for number in range(3)]
    result = run("placement", instance_ids=ids)
    assert {instance_result["placement"]["strategy"] for instance_result in result["instances"].values()} == {"cluster"}
    assert aws.calls == {"DescribeInstances": 5, "DescribeInstanceTypes": 1, "DescribePlacementGroups": 1}
