# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of instance types and the offline table.

The oracle is the dump of DescribeInstanceTypes that moto ships, read without our code.
"""

from __future__ import annotations

import gzip
import json
from importlib import resources
from typing import Any, Dict

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nearmetal.ec2.plugins.filter.parse_instance_type import FilterModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.name import parse_instance_type
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types, pack, unpack
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.platform import is_burstable
from hypothesis import given
from hypothesis import strategies as st


def dump() -> Dict[str, Any]:
    """DescribeInstanceTypes as moto ships it."""
    packed = resources.files("moto").joinpath("ec2", "resources", "instance_types.json.gz").read_bytes()
    types: Dict[str, Any] = json.loads(gzip.decompress(packed))
    return types


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "c7gn.16xlarge",
            {"family": "c7gn", "series": "c", "generation": 7, "attributes": ["g", "n"], "size_factor": 128},
        ),
        ("c7gn.16xlarge", {"architecture": "arm64", "bare_metal": False, "variant": None}),
        ("m8a.metal-24xl", {"family": "m8a", "bare_metal": True, "size_factor": 192, "architecture": "x86_64"}),
        ("u-6tb1.112xlarge", {"series": "u", "generation": 1, "memory_tb": 6, "variant": None, "size_factor": 896}),
        ("u7in-16tb.224xlarge", {"series": "u", "generation": 7, "memory_tb": 16, "attributes": ["i", "n"]}),
        ("mac2-m2pro.metal", {"series": "mac", "generation": 2, "variant": "m2pro", "architecture": "arm64_mac"}),
        ("mac-m4.metal", {"series": "mac", "generation": None, "size_factor": None}),
        ("mac1.metal", {"architecture": "x86_64_mac"}),
        (
            "c7i-flex.large",
            {"family": "c7i-flex", "generation": 7, "attributes": ["i"], "variant": "flex", "size_factor": 4},
        ),
        ("is4gen.medium", {"series": "is", "generation": 4, "attributes": ["g", "e", "n"], "architecture": "arm64"}),
        ("g5.xlarge", {"series": "g", "architecture": "x86_64", "size_factor": 8}),
        ("g5g.xlarge", {"series": "g", "architecture": "arm64"}),
        ("p6e-gb200.36xlarge", {"architecture": "arm64", "variant": "gb200"}),
        ("hpc7a.96xlarge", {"series": "hpc", "generation": 7}),
        ("t2.nano", {"size_factor": 0.25}),
    ],
)
def test_parts_of_a_name(name: str, wanted: Dict[str, Any]) -> None:
    found = parse_instance_type(name).as_dict()
    assert {key: found[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    "junk",
    [
        "",
        "c5",
        "c5.",
        ".large",
        "c5.huge",
        "c5.0xlarge",
        "C5.large",
        "c5.large\n",
        " c5.large",
        "c5.large.x",
        "c\u0665.large",
    ],
)
def test_a_malformed_name_is_refused_in_one_sentence(junk: Any) -> None:
    with pytest.raises(NearmetalError, match=r"c7gn\.16xlarge"):
        parse_instance_type(junk)


@pytest.mark.parametrize("junk", [None, 5, ["c5.large"], {}])
def test_a_value_that_is_no_text_is_refused_too(junk: Any) -> None:
    with pytest.raises(NearmetalError, match=r"c7gn\.16xlarge"):
        parse_instance_type(junk)


@given(st.from_regex(r"[a-z0-9-]{1,9}\.[a-z0-9-]{1,9}", fullmatch=True) | st.text(max_size=80))
def test_a_name_is_taken_apart_or_refused(text: str) -> None:
    try:
        parts = parse_instance_type(text)
    except NearmetalError:
        return
    assert text == f"{parts.family}.{parts.size}"
    assert parts.family.startswith(parts.series)


def test_every_type_has_a_name_that_agrees_with_the_api() -> None:
    types = dump()
    assert len(types) > 1200
    for name, answer in types.items():
        parts = parse_instance_type(name)
        assert parts.bare_metal == answer["BareMetal"], name
        assert parts.architecture in answer["ProcessorInfo"]["SupportedArchitectures"], name
        assert f"{parts.family}.{parts.size}" == name
        arm = answer["ProcessorInfo"]["Manufacturer"] == "AWS"
        assert (parts.architecture == "arm64") == arm, name


def test_the_table_says_of_every_type_what_the_api_said() -> None:
    table, types = offline_types(), dump()
    assert types.keys() <= table.keys()
    for name, answer in types.items():
        facts = table[name]
        limits = answer["EbsInfo"].get("EbsOptimizedInfo", {})
        assert facts.hypervisor == answer.get("Hypervisor"), name
        assert facts.vcpus == answer["VCpuInfo"]["DefaultVCpus"], name
        assert facts.memory_mib == answer["MemoryInfo"]["SizeInMiB"], name
        assert facts.ebs_maximum_iops == limits.get("MaximumIops"), name
        assert facts.ebs_baseline_mb_s == limits.get("BaselineThroughputInMBps"), name
        assert facts.ena == answer["NetworkInfo"]["EnaSupport"], name
        queues = [card["DefaultEnaQueueCountPerInterface"] for card in answer["NetworkInfo"]["NetworkCards"]]
        assert [card.default_queues for card in facts.cards] == queues, name
        assert set(facts.placement_strategies) == set(answer["PlacementGroupInfo"]["SupportedStrategies"]), name


def test_every_type_has_a_host_class_that_follows_from_its_hypervisor() -> None:
    counted: Dict[str, int] = {}
    for facts in offline_types().values():
        counted[facts.host_class] = counted.get(facts.host_class, 0) + 1
        if facts.host_class == "metal":
            assert facts.hypervisor is None, facts.instance_type
    types = dump().values()
    # Retired: i3.metal, and five that are Xen.
    assert counted["metal"] == sum(kind["BareMetal"] for kind in types) + 1
    assert counted["nitro"] == sum(kind.get("Hypervisor") == "nitro" for kind in types) + 7
    assert counted["xen_hvm"] == sum(kind.get("Hypervisor") == "xen" for kind in types) + 12


def test_packing_loses_nothing_and_stays_small() -> None:
    rows = [facts for facts in offline_types().values() if facts.source == "table"]
    packed = pack(rows)
    assert unpack(packed) == {facts.instance_type: facts for facts in rows}
    assert len(packed) < 100_000


# MB/s and IOPS at 16 KiB, as AWS's talk of 2017 shows them.
S0_40 = {
    "c4.8xlarge": (500, 32000),
    "d2.8xlarge": (500, 32000),
    "f1.16xlarge": (1750, 75000),
    "g3.16xlarge": (1750, 80000),
    "i3.16xlarge": (1750, 65000),
    "m4.10xlarge": (500, 32000),
    "m4.16xlarge": (1250, 65000),
    "p2.16xlarge": (1250, 65000),
    "p3.16xlarge": (1750, 80000),
    "r4.16xlarge": (1750, 75000),
    "x1.32xlarge": (1750, 80000),
    "x1e.32xlarge": (1750, 80000),
}


@pytest.mark.parametrize(("name", "limits"), S0_40.items())
def test_the_limits_of_the_talk_still_hold(name: str, limits: Any) -> None:
    facts = offline_types()[name]
    assert (facts.ebs_maximum_mb_s, facts.ebs_maximum_iops) == limits
    assert facts.host_class == "xen_hvm"


def test_every_type_that_the_sources_name_is_known() -> None:
    named = (
        "c3.large c3.xlarge c3.2xlarge c3.4xlarge c3.8xlarge c4.8xlarge d2.8xlarge f1.16xlarge g3.16xlarge hs1.8xlarge"
    )
    named += " i2.8xlarge i3.8xlarge i3.16xlarge i3.metal m1.small m4.10xlarge m4.16xlarge p2.16xlarge p3.16xlarge"
    named += " r3.8xlarge r4.8xlarge r4.16xlarge t1.micro t2.nano t2.2xlarge x1.16xlarge x1.32xlarge x1e.32xlarge"
    # Withdrawn since, so that the API no longer lists them; hosts of them still run.
    named += " dl1.24xlarge f1.2xlarge f1.4xlarge g3.4xlarge g3.8xlarge g4ad.2xlarge g4ad.8xlarge p2.xlarge p2.8xlarge"
    named += " p3.2xlarge u-9tb1.112xlarge u-12tb1.112xlarge u-18tb1.112xlarge u-24tb1.112xlarge"
    assert set(named.split()) <= offline_types().keys()


@pytest.mark.parametrize(
    ("name", "sriov"),
    [("c3.8xlarge", True), ("m4.10xlarge", True), ("m4.16xlarge", False), ("m5.large", False), ("i2.xlarge", True)],
)
def test_sriov_is_for_the_families_of_ixgbevf(name: str, sriov: bool) -> None:
    assert offline_types()[name].sriov is sriov


def test_the_filter() -> None:
    parse = FilterModule().filters()["parse_instance_type"]
    assert parse("r8gd.metal-48xl")["size_factor"] == 384
    classes = {name: parse(name)["host_class"] for name in ("m5.large", "c4.large", "i4i.metal", "z99.large")}
    assert classes == {"m5.large": "nitro", "c4.large": "xen_hvm", "i4i.metal": "metal", "z99.large": None}
    with pytest.raises(AnsibleFilterError, match="parse_instance_type: 'banana' isn't an instance type"):
        parse("banana")


def test_the_module_needs_no_network(run: Any) -> None:
    result = run("instance_type_info", instance_types=["i3.metal", "f1.16xlarge", "x99z.large"])
    assert result["msg"] == "instance_type_info: 2 of 3 types known"
    assert result["instance_types"]["i3.metal"]["host_class"] == "metal"
    assert result["instance_types"]["f1.16xlarge"]["reference"] == "AWS, 2017"
    assert result["instance_types"]["x99z.large"]["name"]["generation"] == 99
    assert [(finding["where"], finding["status"]) for finding in result["findings"]] == [("x99z.large", "unknown")]


def test_the_module_names_an_unknown_type(run: Any) -> None:
    result = run("instance_type_info", instance_types=["i3.metal", "large"])
    assert result["failed"]
    assert "'large' isn't an instance type" in result["msg"]


def test_all_types_at_once(run: Any) -> None:
    result = run("instance_type_info")
    assert len(result["instance_types"]) == len(offline_types())
    assert not result["changed"]


def test_a_host_knows_by_its_name_alone_whether_a_type_is_burstable() -> None:
    oracle = {name for name, answer in dump().items() if answer["BurstablePerformanceSupported"]}
    named = {name for name in offline_types() if is_burstable(name)}
    assert named == oracle
