# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk's figures beside EBS's limits: whose limit its knee is."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._benchmark import ebs_limits


def result(shape: str, held: Optional[Dict[str, Any]] = None, **metrics: float) -> Dict[str, Any]:
    details = {"shape": shape, "disks": ["nvme1n1"], "kinds": ["ebs"], **({"held_back_ms": held} if held else {})}
    return {"details": details, "metrics": [{"name": name, "value": value} for name, value in metrics.items()]}


def held(volume_iops: int = 0, volume_throughput: int = 0, instance_iops: int = 0, instance_throughput: int = 0) -> Any:
    return {
        "volume_iops": volume_iops,
        "volume_throughput": volume_throughput,
        "instance_iops": instance_iops,
        "instance_throughput": instance_throughput,
    }


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            result("random_read", held(volume_iops=40, instance_iops=9000), read_rate=64047.0),
            "your knee is the instance's cap, not the volume's: by EBS's counters its limit of requests held ",
        ),
        (
            result("sequential_read", held(volume_throughput=9000), read_bandwidth=125.0),
            "your knee is the volume's cap, not the instance's: by EBS's counters its limit of throughput held ",
        ),
        (
            result("random_read", held(instance_iops=9), read_rate=100.0),
            "by EBS's counters neither the volume's limits nor the instance's held it back; to EBS, i3.metal does at ",
        ),
        # Without counters, by the review's figures (64 KiB: 1.08 GiB/s) and AWS's limits of the type, 80,000 and 2,375.
        (result("random_read", read_rate=79000.0), "your knee is the instance's cap: it did 99% of its most of requ"),
        (result("sequential_read", read_bandwidth=2260.0), "your knee is the instance's cap: it did 100% of its most "),
        (result("mixed_80", read_rate=64000.0, write_rate=16000.0), "your knee is the instance's cap: it did 100% of "),
        (result("random_read", read_rate=3000.0), "your knee is below what the instance can always do, so it is the "),
    ],
)
def test_whose_cap_the_knee_is(found: Dict[str, Any], words: str) -> None:
    said = ebs_limits.sentence(found, offline_types()["i3.metal"])
    assert said.startswith(words)
    assert said.endswith("to EBS, i3.metal does at most 80,000 requests of 16 KiB and 2,375 MB a second")


def test_a_type_that_bursts_has_two_limits() -> None:
    said = ebs_limits.sentence(
        result("random_read", held(instance_iops=500), read_rate=9e3), offline_types()["m5.2xlarge"]
    )
    assert said.endswith("does at most 18,750 requests of 16 KiB and 594 MB a second, and 12,000 and 288 for long")


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"details": "ebs", "metrics": []},
        {"details": {"kinds": ["ebs"], "shape": "none"}, "metrics": []},
        {"details": {"kinds": ["ebs"], "shape": "random_read"}, "metrics": [None, {"name": [], "value": "x"}]},
        {"details": {"kinds": ["virtio"], "shape": "random_read"}, "metrics": [{"name": "read_rate", "value": 1.0}]},
    ],
)
def test_other_disks_and_other_results_say_nothing(found: Dict[str, Any]) -> None:
    assert ebs_limits.sentence(found, offline_types()["i3.metal"]) == ""


def test_counters_that_no_volume_has_are_not_quoted() -> None:
    said = ebs_limits.sentence(result("random_read", held(instance_iops=10**400), read_rate=1.0), None)
    assert said == "by EBS's counters neither the volume's limits nor the instance's held it back"


@pytest.mark.parametrize("value", [pytest.param(10**400, id="beyond_a_float"), float("inf"), float("nan"), -1e308, 0])
def test_figures_that_no_disk_has_are_left_out(value: float) -> None:
    assert ebs_limits.sentence(result("random_read", read_rate=value), offline_types()["i3.metal"]) == ""
    said = ebs_limits.sentence(result("random_read", read_rate=3000.0, write_rate=value), offline_types()["i3.metal"])
    assert said.startswith("your knee is below what the instance can always do")
