# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topology and platform of machines this project has never seen, against what hwloc and lscpu say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterable, List, Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import platform, topology
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

from tests.unit.recorded import machines

# Field of an answer → the names that its `agreement` knows for it.
AGREEMENT = {
    "cpus_online": "online",
    "cpus_not_online": "online",
    "sockets": "packages",
    "cores_smt_sibling_sets": "cores",
    "numa_nodes": "numa",
    "numa_nodes_raw_cpulist": "numa",
    "memory_only_nodes": "numa",
}
COUNTS = {
    "cpus_online": "online",
    "sockets": "packages",
    "cores": "cores",
    "threads_per_core_max": "cores",
    "threads_per_core_min": "cores",
    "numa_nodes": "numa",
    "numa_nodes_with_cpus": "numa",
}


def ids(text: str) -> Set[int]:
    """A cpu list read by a few lines of this test, not by the parser under test."""
    found: Set[int] = set()
    for part in filter(None, text.split(",")):
        first, _dash, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def partition(lists: Iterable[str]) -> List[List[int]]:
    """Sets of CPUs without an order of their own: tools number sockets and cores differently."""
    return sorted(sorted(ids(text)) for text in lists)


def comparable(field: str, value: Any) -> Any:
    """An answer or a fact in a form that compares."""
    if field in ("sockets", "cores_smt_sibling_sets"):
        return partition(value)
    if field == "caches_sharing":
        return {level: partition(lists) for level, lists in value.items()}
    if field in ("numa_nodes", "numa_nodes_raw_cpulist"):
        return {node: ids(text) for node, text in value.items()}
    if field == "memory_only_nodes":
        return sorted(int(node) for node in value)
    return ids(value)


def observed(root: Path) -> Dict[str, Any]:
    """Our facts under the names of an answer."""
    facts = topology.observe(Host(str(root))).as_dict()
    nodes = facts["nodes"]
    return {
        "cpus_online": facts["cpus_online"],
        "cpus_not_online": facts["cpus_offline"],
        "sockets": facts["sockets"],
        "cores_smt_sibling_sets": facts["cores"],
        "numa_nodes": {str(node["id"]): node["cpus"] for node in nodes},
        "numa_nodes_raw_cpulist": {str(node["id"]): node["cpulist"] for node in nodes},
        "memory_only_nodes": facts["memory_only_nodes"],
        "caches_sharing": facts["caches"],
        "counts": {
            "cpus_online": facts["cpus_online_count"],
            "sockets": facts["sockets_count"],
            "cores": facts["cores_count"],
            "threads_per_core_max": facts["threads_per_core_max"],
            "threads_per_core_min": facts["threads_per_core_min"],
            "numa_nodes": facts["nodes_count"],
            "numa_nodes_with_cpus": sum(bool(node["cpus"]) for node in nodes),
        },
    }


def is_open(expected: Dict[str, Any], name: str) -> bool:
    """Whether the two tools were left contradicting each other about this."""
    return str(expected.get("agreement", {}).get(name)).startswith("contested")


@pytest.mark.parametrize("key", machines.names())
def test_topology(key: str, root: Path) -> None:
    machines.lay_out(key, root, machines.TOPOLOGY)
    expected = machines.answer(key)
    facts = observed(root)
    counts = expected.get("counts")
    if counts is None:
        # A recording with only memory blocks: no fact may be invented.
        assert facts["cpus_online"] is None
        assert facts["sockets"] is None
        assert facts["cores_smt_sibling_sets"] is None
        return
    for name, group in COUNTS.items():
        if counts[name] is not None and not is_open(expected, group):
            assert facts["counts"][name] == counts[name], name
    for field, group in AGREEMENT.items():
        if expected.get(field) is not None and not is_open(expected, group):
            assert comparable(field, facts[field]) == comparable(field, expected[field]), field
    levels = expected.get("caches_sharing") or {}
    settled = {level: lists for level, lists in levels.items() if not is_open(expected, level)}
    compared = {level: lists for level, lists in facts["caches_sharing"].items() if not is_open(expected, level)}
    assert comparable("caches_sharing", compared) == comparable("caches_sharing", settled)


@pytest.mark.parametrize("key", [key for key in machines.names() if key.startswith("sparecores-aws/")])
def test_every_ec2_host_is_known_as_what_it_is(key: str, root: Path) -> None:
    machines.lay_out(key, root, machines.PLATFORM)
    expected = machines.answer(key)
    name = key.split("/")[1]
    facts = platform.observe(Host(str(root)))
    if expected["hypervisor"] == "Xen":
        # Xen reports "HVM domU", never the type, so `burstable` is unknown too.
        assert (facts.host_class, facts.instance_type, facts.burstable) == ("xen_hvm", None, None)
    else:
        assert facts.host_class == ("metal" if ".metal" in name else "nitro")
        assert facts.instance_type == name
        assert facts.burstable is (name.split(".")[0] in ("t2", "t3", "t3a", "t4g"))
        assert facts.instance_id is not None
        assert facts.instance_id.startswith("i-")
    assert facts.architecture == expected["arch"]
    assert facts.kernel == expected["kernel"]
    assert facts.hypervisor_flag is (None if expected["arch"] == "aarch64" else expected["hypervisor"] is not None)


OTHER_CLOUDS = ("sparecores-azure/", "sparecores-gcp/", "sparecores-alicloud/")


@pytest.mark.parametrize("key", [key for key in machines.names() if key.startswith(OTHER_CLOUDS)])
def test_a_host_of_another_cloud_is_not_ec2(key: str, root: Path) -> None:
    machines.lay_out(key, root, machines.PLATFORM)
    facts = platform.observe(Host(str(root)))
    assert (facts.host_class, facts.instance_type, facts.instance_id) == ("not_ec2", None, None)
