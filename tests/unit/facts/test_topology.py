# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Traps of topology files, and this machine against its own tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import TopologyFacts, observe

from tests.support import hosts
from tests.unit.facts import large

Build = Callable[[Mapping[str, str]], Host]

CPU = "/sys/devices/system/cpu/"
NODE = "/sys/devices/system/node/"


def machine(pairs: Mapping[int, str], package: str, online: Optional[str] = None) -> Dict[str, str]:
    """CPU → its siblings' list, all in one package; without `online` only the directories tell."""
    files = {} if online is None else {CPU + "online": online + "\n"}
    for cpu, siblings in pairs.items():
        files["{}cpu{}/topology/thread_siblings_list".format(CPU, cpu)] = siblings + "\n"
        files["{}cpu{}/topology/core_siblings_list".format(CPU, cpu)] = package + "\n"
    return files


HALF_WAY = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}


def test_siblings_are_what_the_kernel_lists(host_of: Build) -> None:
    facts = observe(host_of(machine(HALF_WAY, "0-3", "0-3")))
    assert facts.cores == ((0, 2), (1, 3))
    assert facts.siblings(3) == (1, 3)
    assert facts.siblings(9) == ()
    assert (facts.threads_per_core_max, facts.threads_per_core_min) == (2, 2)
    assert facts.sockets_count == 1


def test_nul_bytes_after_a_value_are_no_part_of_it(host_of: Build) -> None:
    files = {name: text + "\0\0" for name, text in machine(HALF_WAY, "0-3", "0-3").items()}
    assert observe(host_of(files)).cores == ((0, 2), (1, 3))


def test_without_cpu_online_each_directory_counts_that_is_not_off(host_of: Build) -> None:
    files = machine(HALF_WAY, "0-3")
    files[CPU + "cpu1/online"] = "\n"
    files[CPU + "cpu2/online"] = "1\n"
    files[CPU + "cpu3/online"] = "0\n"
    facts = observe(host_of(files))
    assert (facts.cpus_online, facts.cpus_offline, facts.cpus_possible) == ((0, 1, 2), (3,), None)


def test_one_sibling_offline_mixes_one_and_two_threads(host_of: Build) -> None:
    files = machine({0: "0,2", 1: "1", 2: "0,2"}, "0-2", "0-2")
    files[CPU + "present"] = "0-3\n"
    facts = observe(host_of(files))
    assert facts.cores == ((0, 2), (1,))
    assert (facts.threads_per_core_max, facts.threads_per_core_min) == (2, 1)
    assert facts.cpus_offline == (3,)


def test_a_list_that_names_offline_siblings_counts_only_what_runs(host_of: Build) -> None:
    facts = observe(host_of(machine({0: "0-7", 4: "0-7"}, "0-7", "0,4")))
    assert (facts.cores, facts.sockets) == (((0, 4),), ((0, 4),))


def test_a_cpu_that_no_list_names_has_no_core(host_of: Build) -> None:
    facts = observe(host_of(machine({0: "0", 1: "0"}, "0-1", "0-1")))
    assert (facts.cores, facts.siblings(1)) == (((0,),), ())


def test_without_sibling_files_cores_and_sockets_are_unknown(host_of: Build) -> None:
    files = {CPU + "online": "0-1\n"}
    for cpu in (0, 1):
        files["{}cpu{}/topology/core_id".format(CPU, cpu)] = "0\n"
        files["{}cpu{}/topology/physical_package_id".format(CPU, cpu)] = "0\n"
    facts = observe(host_of(files))
    assert (facts.cpus_online, facts.cores, facts.sockets) == ((0, 1), None, None)
    assert facts.as_dict()["threads_per_core_max"] is None


def test_a_host_without_cpu_directory_is_unknown_not_empty(host_of: Build) -> None:
    facts = observe(host_of({}))
    assert (facts.cpus_online, facts.cpus_offline, facts.cores, facts.memory) == (None, None, None, None)


def test_nodes_keep_their_numbers_and_may_have_no_cpu(host_of: Build) -> None:
    files = machine(HALF_WAY, "0-3", "0-3")
    files[NODE + "node0/cpulist"] = "0-5\n"
    files[NODE + "node0/meminfo"] = "Node 0 MemTotal:       1024 kB\n"
    files[NODE + "node0/distance"] = "10 40\n"
    files[NODE + "node34/cpulist"] = "\n"
    files[NODE + "node34/distance"] = "40 10\n"
    files[NODE + "possible"] = "0-255\n"
    first, second = observe(host_of(files)).nodes
    assert (first.id, first.cpus, first.cpulist, first.memory) == (0, (0, 1, 2, 3), "0-5", 1 << 20)
    assert (second.id, second.cpus, second.cpulist, second.memory) == (34, (), "", None)
    assert (first.distances, second.distances) == ((10, 40), (40, 10))


def test_a_node_that_lists_no_cpus_is_not_called_memory_only(host_of: Build) -> None:
    files = machine(HALF_WAY, "0-3", "0-3")
    files.update({NODE + "node0/cpumap": "f\n", NODE + "node1/cpumap": "0\n", NODE + "node2/cpulist": "\n"})
    files[NODE + "node3/meminfo"] = "Node 3 MemTotal:       1024 kB\n"
    facts = observe(host_of(files))
    assert facts.memory_only_nodes == (1, 2)
    assert [(node["cpus"], node["cpulist"]) for node in facts.as_dict()["nodes"]] == [
        ("0-3", "0-3"),
        ("", ""),
        ("", ""),
        (None, None),
    ]


def test_distances_that_do_not_match_the_nodes_are_unknown(host_of: Build) -> None:
    files = {NODE + "node0/cpulist": "0\n", NODE + "node0/distance": "10 20\n"}
    assert observe(host_of(files)).nodes[0].distances is None


def test_caches_are_shared_as_the_mask_says_where_the_list_is_wrong(host_of: Build) -> None:
    files = machine({0: "0-1", 1: "0-1"}, "0-1", "0-1")
    for cpu in (0, 1):
        index = "{}cpu{}/cache/index2/".format(CPU, cpu)
        files.update({index + "level": "2\n", index + "type": "Unified\n"})
        files[index + "shared_cpu_map"] = "00000000,00000003\n"
        files[index + "shared_cpu_list"] = "{}\n".format(cpu)
    assert observe(host_of(files)).as_dict()["caches"] == {"L2": ["0-1"]}


def test_cache_sizes_of_the_talks_m4_10xlarge(host_of: Build) -> None:
    """L3 30 MB, L2 256 KB, L1 32 and 32 KB, as its picture of hwloc has them."""
    files = machine({0: "0-1", 1: "0-1"}, "0-1", "0-1")
    sizes = [("1", "Data", "32K"), ("1", "Instruction", "32K"), ("2", "Unified", "256K"), ("3", "Unified", "30720K")]
    for index, (level, kind, size) in enumerate([*sizes, ("9", "Unified", "1K"), ("4", "Unified", "64M of it")]):
        folder = "{}cpu0/cache/index{}/".format(CPU, index)
        files.update({folder + "level": level, folder + "type": kind, folder + "size": size + "\n"})
    assert observe(host_of(files)).as_dict()["cache_sizes"] == {
        "L1d": 32 * 1024,
        "L1i": 32 * 1024,
        "L2": 256 * 1024,
        "L3": 30 * 1024 * 1024,
    }


def test_a_cache_whose_map_is_empty_is_shared_by_its_core(host_of: Build) -> None:
    files = machine({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, "0-3", "0-3")
    for cpu in range(4):
        for index, (level, shared) in enumerate([("1", f"0000000{1 << cpu:x}"), ("2", "00000000"), ("3", "00000000")]):
            folder = "{}cpu{}/cache/index{}/".format(CPU, cpu, index)
            files.update({folder + "level": level + "\n", folder + "type": "Unified\n"})
            files.update({folder + "shared_cpu_map": shared + "\n"})
    assert observe(host_of(files)).as_dict()["caches"] == {
        "L1": ["0", "1", "2", "3"],
        "L2": ["0-1", "2-3"],
        "L3": ["0-1", "2-3"],
    }


class CountingHost(Host):
    """Counts what is read."""

    reads = 0

    def _read(self, path: str, limit: int, records: bool) -> Optional[str]:
        self.reads += 1
        return super()._read(path, limit, records)


def test_a_large_host_costs_few_reads_and_a_small_result(host_of: Build) -> None:
    host = host_of(large.host(384))
    counting = CountingHost(host.root)
    facts = observe(counting)
    assert facts.cores is not None
    assert (len(facts.cores), facts.sockets_count) == (192, 2)
    assert {cache.name: len(cache.shared) for cache in facts.caches} == {"L1d": 192, "L1i": 192, "L2": 192, "L3": 2}
    assert counting.reads <= 12 * 384
    assert len(json.dumps(facts.as_dict())) < 64 * 1024


def columns(*arguments: str) -> Dict[str, List[List[int]]]:
    """What lscpu groups together, by column."""
    output = subprocess.run(
        ["lscpu", "-p=CPU,CORE,SOCKET,NODE", *arguments], stdout=subprocess.PIPE, universal_newlines=True, check=True
    )
    rows = [line.split(",") for line in output.stdout.splitlines() if not line.startswith("#")]
    found = {}
    for column, name in enumerate(("cpus", "cores", "sockets", "nodes")):
        groups: Dict[str, List[int]] = {}
        for row in rows:
            if row[column]:
                groups.setdefault(row[column], []).append(int(row[0]))
        found[name] = sorted(sorted(cpus) for cpus in groups.values())
    return found


def as_columns(facts: TopologyFacts) -> Dict[str, List[List[int]]]:
    """Our facts in the same form."""
    return {
        "cpus": [[cpu] for cpu in facts.cpus_online or ()],
        "cores": sorted(map(list, facts.cores or ())),
        "sockets": sorted(map(list, facts.sockets or ())),
        "nodes": sorted(list(node.cpus) for node in facts.nodes if node.cpus),
    }


def add_masks(root: Path) -> None:
    """Beside each list the mask, which lscpu reads; by this test's own arithmetic."""
    for path in root.glob("sys/devices/system/**/*list"):
        bits = 0
        for part in filter(None, path.read_text().strip().split(",")):
            first, _dash, last = part.partition("-")
            bits |= (1 << int(last or first) + 1) - (1 << int(first))
        name = {"shared_cpu_list": "shared_cpu_map", "cpulist": "cpumap"}.get(path.name, path.name[:-5])
        digits = "{:0{}x}".format(bits, -(-bits.bit_length() // 32) * 8)
        words = [digits[start : start + 8] for start in range(0, len(digits), 8)]
        path.with_name(name).write_text(",".join(words) + "\n")


@pytest.mark.parametrize("name", hosts.names())
def test_hosts_written_by_hand_are_as_lscpu_says(name: str, root: Path) -> None:
    hosts.lay_out(root, hosts.files_of(name))
    found = as_columns(observe(Host(str(root))))
    add_masks(root)
    assert found == columns("--sysroot", str(root))


def test_a_large_host_with_offline_cpus_is_as_lscpu_says(host_of: Build) -> None:
    files = large.host(48)
    files.update({CPU + "online": "0-20,24-40,45\n", "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\n"})
    host = host_of(files)
    found = as_columns(observe(host))
    add_masks(Path(host.root))
    output = columns("--sysroot", host.root)
    assert (found["cpus"], found["cores"], found["sockets"]) == (output["cpus"], output["cores"], output["sockets"])


def test_this_machine_has_the_cpus_that_sysconf_counts() -> None:
    assert len(observe(Host()).cpus_online or ()) == os.sysconf("SC_NPROCESSORS_ONLN")


def test_this_machine_is_as_lscpu_says() -> None:
    assert as_columns(observe(Host())) == columns()
