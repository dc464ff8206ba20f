# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""sizing: the filter on all types of the table, the module on our own fake endpoint.

The oracle reads the API's raw answers, as moto ships them, and never the code that is tested.
"""

from __future__ import annotations

import math
import re
from typing import Any, Dict, Optional

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nearmetal.ec2.plugins.filter.sizing import FilterModule
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.aws.fake_aws import FakeAws
from tests.support.aws.fake_interfaces import all_types

SIZING = FilterModule().filters()["sizing"]
RAW = {raw["InstanceType"]: raw for raw in all_types()}
# AWS's page "CPU credits and baseline utilization": credits per hour, of which one keeps a vCPU busy for a minute.
CREDITS = {
    "t2": {"nano": 3, "micro": 6, "small": 12, "medium": 24, "large": 36, "xlarge": 54, "2xlarge": 81.6},
    "t3": {"nano": 6, "micro": 12, "small": 24, "medium": 24, "large": 36, "xlarge": 96, "2xlarge": 192},
}


def advertised(raw: Any) -> float:
    """The Gbit/s that AWS advertises for a type; infinite where it has words only."""
    found = re.search(r"(?:(\d+)x )?([\d.]+) Gigabit", raw["NetworkInfo"]["NetworkPerformance"])
    return float(found[2]) * int(found[1] or 1) if found else math.inf


def limits(name: str) -> Dict[str, Optional[float]]:
    """The sustained limits of a type in the API's answer; None where it has none."""
    raw = RAW[name]
    family, size = name.split(".")
    cpus: Optional[float] = raw["VCpuInfo"]["DefaultVCpus"]
    if family.startswith("t") and family[1].isdigit():
        earned = CREDITS.get({"t3a": "t3", "t4g": "t3"}.get(family, family), {}).get(size)
        cpus = earned / 60 if earned else None
    elif family.endswith("-flex"):
        cpus = None
    ebs = raw["EbsInfo"].get("EbsOptimizedInfo", {})
    cards = sum(card["BaselineBandwidthInGbps"] for card in raw["NetworkInfo"]["NetworkCards"])
    return {
        "vcpus": cpus,
        "memory_gib": raw["MemoryInfo"]["SizeInMiB"] / 1024,
        "network_gbps": min(cards, advertised(raw)),
        "ebs_iops": ebs.get("BaselineIops"),
        "ebs_mb_s": ebs.get("BaselineThroughputInMBps"),
        "instance_store_gb": raw.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        "interfaces": raw["NetworkInfo"]["MaximumNetworkInterfaces"],
    }


LIMITS = {name: limits(name) for name in RAW}
MOST = {"vcpus": 200.0, "memory_gib": 3000.0, "network_gbps": 120.0, "ebs_iops": 200000.0, "ebs_mb_s": 6000.0}
NEEDS = st.fixed_dictionaries({}, optional={name: st.floats(0, most) for name, most in MOST.items()})


def sufficient(need: Dict[str, float], headroom: float = 0) -> "set[str]":
    """The types that the API's figures allow."""
    usable = (100 - headroom) / 100
    return {
        name
        for name, has in LIMITS.items()
        if all(has[what] is not None and amount <= (has[what] or 0) * usable for what, amount in need.items())
    }


@given(NEEDS.filter(bool), st.sampled_from([0, 20, 50]))
def test_exactly_the_types_with_enough_of_everything_would_do(need: Dict[str, float], headroom: float) -> None:
    found = SIZING(need, instance_types=["*.*"], headroom_percent=headroom, most=50)
    known = sufficient(need, headroom)
    retired = found["candidates"] - len(RAW)
    assert len(known) <= found["sufficient"] <= len(known) + retired
    for proposed in found["proposed"]:
        name = proposed["instance_type"]
        assert name in known or name not in RAW, name
        assert all(percent is None or percent <= 100 - headroom + 0.05 for percent in proposed["percent"].values())
    assert len({proposed["instance_type"].split(".")[0] for proposed in found["proposed"]}) == len(found["proposed"])


@given(NEEDS.filter(bool), st.sampled_from(sorted(MOST)), st.floats(1, 4))
def test_more_need_never_makes_a_smaller_type_suffice(need: Dict[str, float], name: str, times: float) -> None:
    more = {**need, name: need.get(name, 1.0) * times}
    few, many = (SIZING(asked, instance_types=["*.*"], most=50) for asked in (more, need))
    assert few["sufficient"] <= many["sufficient"]
    smallest = {each["instance_type"].split(".")[0]: each["instance_type"] for each in many["proposed"]}
    for each in few["proposed"]:
        before = smallest.get(each["instance_type"].split(".")[0])
        if before in RAW and each["instance_type"] in RAW:
            cpus = [RAW[kind]["VCpuInfo"]["DefaultVCpus"] for kind in (before, each["instance_type"])]
            assert cpus[0] <= cpus[1]


@pytest.mark.parametrize("name", sorted(RAW)[::29])
def test_each_type_of_the_table_holds_its_own_limits_and_nothing_above_them(name: str) -> None:
    has = {what: amount for what, amount in LIMITS[name].items() if amount is not None and what != "instance_store_gb"}
    assert SIZING(has, instance_type=name)["today"]["holds"] is True
    for what, amount in has.items():
        found = SIZING({what: amount * 1.01 + 0.01}, instance_type=name)
        assert found["today"]["holds"] is False
        assert found["uses"]["bigger_size"]["used"] is True


@given(
    st.sampled_from(sorted(name for name, has in LIMITS.items() if has["ebs_iops"])),
    st.lists(st.integers(100, 64000), min_size=1, max_size=4),
    st.one_of(st.none(), st.integers(0, 300000)),
)
@example("c5.large", [3000, 3000], 9000)
@example("c5.large", [3000], 9000)
def test_more_iops_are_used_only_below_need_and_instance(name: str, volumes: Any, need: Optional[int]) -> None:
    asked = {} if need is None else {"ebs_iops": need}
    disks = [{"iops": iops, "mb_s": 100} for iops in volumes]
    used = SIZING(asked, instance_type=name, volumes=disks)["uses"]["more_iops"]["used"]
    cap = LIMITS[name]["ebs_iops"] or 0
    # One more volume brings something only if the instance lets more through, and somebody needs it.
    brings = min(sum(volumes) + 1, cap) > min(sum(volumes), cap)
    assert used == (False if not brings else None if need is None else need > sum(volumes))


def test_two_volumes_that_the_instance_cannot_use() -> None:
    disks = [{"iops": 3000, "mb_s": 131}] * 2
    line = SIZING({"ebs_iops": 6000}, instance_type="c5.large", volumes=disks)["uses"]["more_iops"]["line"]
    assert line == (
        "the EBS limit of the instance is the limit: need 6,000 IOPS, volumes 3,000 + 3,000 = 6,000 IOPS, instance "
        "4,000 IOPS: more or faster volumes won't help; c5.xlarge would do"
    )


def test_metal_is_used_only_by_what_no_virtual_size_holds() -> None:
    """i3.metal: the review saw 64,000 IOPS of EBS, which i3.16xlarge has too (StorageReview, 2018)."""
    spared = SIZING({"ebs_iops": 64000, "memory_gib": 400, "vcpus": 30}, instance_type="i3.metal")["uses"]["metal"]
    assert (spared["used"], spared["status"]) == (False, "advice")
    assert "i3.16xlarge has enough" in spared["line"]
    used = SIZING({"vcpus": 70, "memory_gib": 500}, instance_type="i3.metal")["uses"]["metal"]
    assert (used["used"], used["status"]) == (True, "ok")
    assert SIZING({"vcpus": 1}, instance_type="c3.large")["uses"]["metal"]["line"].endswith("has no metal size")
    assert SIZING({"vcpus": 500}, instance_type="c5.large")["uses"]["metal"]["used"] is False


@pytest.mark.parametrize(
    ("name", "need", "used", "words"),
    [
        ("c5.large", {"network_gbps": 1}, False, "its 8 queues serve all 2 vCPUs"),
        ("c5.9xlarge", {"network_gbps": 20}, None, "a second one brings no bandwidth; 8 queues serve 36 vCPUs"),
        ("c3.8xlarge", {"vcpus": 4}, None, "250,000 → 960,000 transactions/s"),
        ("p5.48xlarge", {"network_gbps": 300}, True, "takes an interface on another card"),
        ("p5.48xlarge", {"vcpus": 1}, None, "only a measured need can say"),
        ("c6in.32xlarge", {"network_gbps": 250}, None, "all together: a second one brings no bandwidth"),
        ("i3.metal", {"vcpus": 1}, None, "are not known"),
    ],
)
def test_a_second_interface_brings_bandwidth_only_on_another_card(name: str, need: Any, used: Any, words: str) -> None:
    found = SIZING(need, instance_type=name)["uses"]["second_interface"]
    assert found["used"] is used
    assert words in found["line"]


@pytest.mark.parametrize(
    ("name", "gbps", "status", "words"),
    [
        (
            "c3.8xlarge",
            9,
            "advice",
            "AWS states up to 10 Gbit/s for c3.8xlarge; its class, 10 Gigabit, was measured in 2014",
        ),
        ("c3.8xlarge", 8, "ok", "to hold 8.8 Gbit/s, and 8 are needed"),
        ("c4.large", 1, "advice", "measured in 2014 to hold 0.8 Gbit/s: measure one before you count on the 1 Gbit/s"),
        ("c5.large", 9, "", ""),
    ],
)
def test_a_burst_beyond_what_its_class_was_measured_to_hold_is_no_promise(
    name: str, gbps: float, status: str, words: str
) -> None:
    found = SIZING({"network_gbps": gbps}, instance_type=name)["uses"].get("network_class", {"status": "", "line": ""})
    assert found["status"] == status
    assert words in found["line"]


def test_the_price_of_a_million_transactions_is_that_of_the_source() -> None:
    """Aerospike, 2014: a million transactions per second on one c3.8xlarge for $1.68 an hour."""
    work = {"c3.8xlarge": 1_000_000, "c3.4xlarge": 215_000, "m5.large": 1}
    prices = {"c3.8xlarge": 1.68, "c3.4xlarge": 0.84}
    rows = SIZING({}, work=work, prices=prices, work_wanted=2_500_000, work_unit="transactions")["costs"]
    assert [row["instance_type"] for row in rows] == ["c3.8xlarge", "c3.4xlarge", "m5.large"]
    assert rows[0]["per_million"] == pytest.approx(1.68 / 3600)
    assert (rows[0]["instances"], rows[0]["price_of_all_per_hour"]) == (3, 5.04)
    assert (rows[1]["instances"], rows[1]["price_of_all_per_hour"]) == (12, 10.08)
    assert (rows[2]["per_million"], rows[2]["instances"]) == (None, 2_500_000)
    assert rows[0]["line"].startswith(
        "c3.8xlarge: 1.68 per hour ÷ (1,000,000 transactions/s × 3,600 s) × 1,000,000 = 0.0004667 per million"
    )


def test_fewer_instances_do_the_packets_once_each_takes_more() -> None:
    """Netflix, 2016: 200,000 packets per second became 2 million."""
    before, after = (
        SIZING({}, work={"i2.8xlarge": rate}, work_wanted=10_000_000)["costs"][0]["instances"] for rate in (2e5, 2e6)
    )
    assert (before, after) == (50, 5)


def test_prices_decide_what_is_proposed_first() -> None:
    need = {"vcpus": 14}
    kinds = ["c7i.*", "m7i.*", "r7i.*"]
    prices = {"r7i.4xlarge": 0.5, "c7i.4xlarge": 0.7}
    proposed = SIZING(need, instance_types=kinds, prices=prices)["proposed"]
    assert [each["instance_type"] for each in proposed] == ["r7i.4xlarge", "c7i.4xlarge", "m7i.4xlarge"]


@pytest.mark.parametrize("name", sorted(name for name in RAW if re.match(r"[cmr][5-8][a-z]*\.", name))[::5])
def test_a_dedicated_host_never_holds_more_than_it_has(name: str) -> None:
    found = SIZING({"vcpus": 0}, instance_types=[name])["proposed"]
    host = found[0]["per_host"] if found else None
    metals = [kind for kind in RAW if kind.startswith(f"{name.split('.')[0]}.metal")]
    if not found or not metals:
        assert host is None
        return
    whole = max((RAW[kind] for kind in metals), key=lambda raw: raw["VCpuInfo"]["DefaultVCpus"])
    assert host["host"] == whole["InstanceType"]
    for has in (lambda raw: raw["VCpuInfo"]["DefaultVCpus"], lambda raw: raw["MemoryInfo"]["SizeInMiB"]):
        assert host["most"] * has(RAW[name]) <= has(whole)
    assert f"at most {host['most']} on a Dedicated Host" in host["line"]


def test_types_with_accelerators_are_proposed_only_if_named() -> None:
    found = SIZING({"vcpus": 4, "network_gbps": 90}, most=50)["proposed"]
    assert {re.match("[a-z]+", each["instance_type"])[0] for each in found} <= set("acmrixdhuz") | {"im", "is"}
    assert SIZING({"vcpus": 4}, instance_types=["p5.*"])["sufficient"]


@pytest.mark.parametrize(
    ("need", "options", "sentence"),
    [
        ({"cpu": 4}, {}, "need: 'cpu' is not known: it must be one of vcpus, memory_gib"),
        ({"vcpus": -1}, {}, "need.vcpus: -1 is not allowed: it must be a number of at least zero"),
        ({"vcpus": "many"}, {}, "need.vcpus: 'many' is not allowed"),
        ({"vcpus": True}, {}, "need.vcpus: true is not allowed"),
        ({"vcpus": math.nan}, {}, "need.vcpus: nan is not allowed"),
        ({"vcpus": math.inf}, {}, "need.vcpus: inf is not allowed"),
        ([], {}, r"need: \[\] is not allowed: it must be a mapping"),
        ({}, {}, "nothing to calculate with: give need"),
        ({"vcpus": 1}, {"instance_type": "x9.large"}, "instance_type: 'x9.large' is not in the table of"),
        ({"vcpus": 1}, {"instance_type": ["c5.large"]}, "instance_type: "),
        ({"vcpus": 1}, {"instance_types": ["q7*"]}, r"instance_types: 'q7\*' matches no type"),
        ({"vcpus": 1}, {"instance_types": "c5.large"}, "instance_types: 'c5.large' is not allowed: it must be a list"),
        ({"vcpus": 1}, {"prices": {"large": 1}}, "prices: 'large' isn't an instance type"),
        ({"vcpus": 1}, {"prices": {"c5.large": 0}}, "prices.c5.large: 0 is not allowed: it must be a number above"),
        ({}, {"work": {"c5.large": -3}}, "work.c5.large: -3 is not allowed"),
        ({}, {"work": {"c5.large": 3}, "work_wanted": 0}, "work_wanted: 0 is not allowed"),
        ({"vcpus": 1}, {"headroom_percent": 91}, "headroom_percent: 91 is not allowed: it must be from 0 to 90"),
        ({"vcpus": 1}, {"most": 51}, "most: 51 is not allowed: it must be a whole number from 1 to 50"),
        ({"vcpus": 1}, {"volumes": [{"iops": 1, "mb_s": 1}]}, "volumes: they need instance_type"),
        ({}, {"volumes": [{"iops": 1}], "instance_type": "c5.large"}, r"volumes\[0\]: .* must have iops and mb_s"),
        ({"vcpus": 1}, {"price": {}}, "price is not an option: it must be one of instance_type"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(need: Any, options: Any, sentence: str) -> None:
    with pytest.raises(AnsibleFilterError, match=f"sizing: {sentence}"):
        SIZING(need, **options)


# --- the module ---


def test_without_instances_the_module_asks_nobody_and_says_what_the_filter_says(run: Any, aws: FakeAws) -> None:
    options = {"instance_type": "c5.9xlarge", "volumes": [{"iops": 16000, "mb_s": 1000}]}
    result = run("sizing", need={"vcpus": 14, "ebs_iops": 60000}, **options)
    assert result["sizing"] == SIZING({"vcpus": 14, "ebs_iops": 60000}, **options)
    assert {finding["knob"]: finding["status"] for finding in result["findings"]} == {
        "bigger_size": "advice",
        "metal": "ok",
        "second_interface": "ok",
        "more_iops": "advice",
        "more_throughput": "ok",
    }
    assert not aws.calls
    assert not result["changed"]


def measured(aws: FakeAws, instance: str, **highest: float) -> None:
    """CloudWatch's values of an instance: a low one before and after the highest."""
    aws.metrics.update({(name, instance): [0.0, value, 0.0] for name, value in highest.items()})


def test_the_need_of_each_instance_is_what_cloudwatch_saw(run: Any, aws: FakeAws) -> None:
    large, small = aws.add(1, "m5.4xlarge"), aws.add(2, "m5.4xlarge")
    measured(aws, large, CPUUtilization=95, EBSReadOps=300 * 9000, EBSWriteOps=300 * 4000)
    measured(aws, small, CPUUtilization=10, NetworkIn=1e9, NetworkOut=2e9)
    result = run("sizing", instance_ids=[large, small], metrics=True, headroom_percent=10, need={"memory_gib": 4})
    by_id = {key: found["sizing"] for key, found in result["instances"].items()}
    assert by_id[large]["today"]["percent"] == {"vcpus": 95, "memory_gib": 6.2, "ebs_iops": 69.3}
    assert by_id[small]["today"]["percent"]["vcpus"] == 10
    statuses = {
        key: {finding["knob"]: finding["status"] for finding in found["findings"]}
        for key, found in result["instances"].items()
    }
    assert (statuses[large]["bigger_size"], by_id[large]["uses"]["bigger_size"]["used"]) == ("advice", True)
    assert "m5.large would do" in by_id[small]["uses"]["bigger_size"]["line"]
    assert by_id[large]["arithmetic"][0] == (
        "CloudWatch's highest 5 minutes of 24 h: CPU 95 % × 16 vCPUs = 15.2 vCPUs; "
        "EBS (2,700,000 + 1,200,000) operations ÷ 300 s = 13,000 IOPS at most"
    )
    assert aws.calls["GetMetricData"] == 1
    assert aws.calls["GetProducts"] == 0


def test_a_given_need_wins_over_a_measured_one(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    measured(aws, instance, CPUUtilization=95)
    result = run("sizing", instance_ids=[instance], metrics=True, need={"vcpus": 2})
    assert result["instances"][instance]["sizing"]["today"]["percent"] == {"vcpus": 12.5}


def test_the_volumes_of_an_instance_are_looked_up(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "c5.large")
    aws.volumes = [
        {
            "VolumeId": f"vol-{number:017x}",
            "VolumeType": "gp3",
            "Size": 100,
            "Iops": 3000,
            "Throughput": 125,
            "Attachments": [{"InstanceId": instance, "Device": f"/dev/sd{number}"}],
        }
        for number in (1, 2)
    ]
    line = run("sizing", instance_ids=[instance])["instances"][instance]["sizing"]["uses"]["more_iops"]["line"]
    assert "volumes 3,000 + 3,000 = 6,000 IOPS, instance 4,000 IOPS: more or faster volumes won't help" in line


def test_an_instance_without_figures_says_what_is_missing(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "c5.large")
    (finding,) = run("sizing", instance_ids=[instance])["instances"][instance]["findings"]
    assert (finding["status"], finding["reason"]) == (
        "unknown",
        "nothing to size it by: give need, or set metrics: true",
    )


def test_prices_are_asked_only_on_request_and_given_ones_win(run: Any, aws: FakeAws) -> None:
    aws.prices = {
        ("c5.large", "eu-west-1"): [0.096],
        ("c5.xlarge", "eu-west-1"): [0.192],
        ("m5.large", "eu-west-1"): [0.107, 0.2],
    }
    options = {"need": {"vcpus": 1}, "instance_types": ["c5.*", "m5.*"], "work": {"c5.xlarge": 1000}}
    assert run("sizing", **options)["sizing"]["costs"][0]["per_million"] is None
    found = run("sizing", ask_prices=True, prices={"c5.large": 0.05}, **options)["sizing"]
    prices = {each["instance_type"]: each["price_per_hour"] for each in found["proposed"]}
    # Two prices of one type: which of them holds is not known.
    assert prices == {"c5.large": 0.05, "m5.large": None}
    assert found["costs"][0]["price_per_hour"] == 0.192
    asked = [request for operation, request in aws.requests if operation == "GetProducts"]
    assert len(asked) == 2


def test_prices_are_those_of_each_instances_region(run: Any, aws: FakeAws) -> None:
    here, there = aws.add(1, "c5.large"), aws.add(2, "c5.large", region="us-east-1")
    aws.prices = {("c5.large", "eu-west-1"): [0.096], ("c5.large", "us-east-1"): [0.085]}
    result = run(
        "sizing",
        filters={},
        regions=["eu-west-1", "us-east-1"],
        need={"vcpus": 1},
        instance_types=["c5.large"],
        ask_prices=True,
    )
    prices = {key: found["sizing"]["proposed"][0]["price_per_hour"] for key, found in result["instances"].items()}
    assert prices == {here: 0.096, there: 0.085}


def test_a_refused_price_list_names_the_policy(run: Any, aws: FakeAws) -> None:
    aws.fault("GetProducts", "AccessDeniedException")
    result = run("sizing", need={"vcpus": 1}, ask_prices=True)
    assert result["failed"]
    assert "GetProducts: AccessDeniedException" in result["msg"]
    assert "set prices" in result["msg"]
    instance = aws.add(1, "c5.large")
    found = run("sizing", instance_ids=[instance], need={"vcpus": 1}, ask_prices=True)
    assert "GetProducts" in found["errors"][0]
    assert found["instances"][instance]["sizing"]["today"]["holds"]


@pytest.mark.parametrize("hours", [0, 1513])
def test_hours_that_cloudwatch_does_not_keep_are_refused(run: Any, aws: FakeAws, hours: int) -> None:
    result = run("sizing", filters={}, metrics=True, hours=hours)
    assert f"hours: {hours} is not allowed: it must be from 1 to 1512" in result["msg"]
    assert not aws.calls
