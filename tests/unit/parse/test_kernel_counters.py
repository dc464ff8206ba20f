# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files with a name and a number in each line."""

from __future__ import annotations

from typing import List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import kernel_counters
from hypothesis import given
from hypothesis import strategies as st


def test_counts_are_lines_of_a_name_and_a_number() -> None:
    assert kernel_counters.parse_counts("pswpin 3\nnr_free 18446744073709551615\nNode 0\nbad -1\n") == {
        "pswpin": 3,
        "nr_free": 2**64 - 1,
    }


def test_meminfo_is_in_bytes_where_the_file_says_kb() -> None:
    text = "MemTotal:       16384 kB\nActive(anon):       8 kB\nHugePages_Total:       3\nbroken\n"
    assert kernel_counters.parse_meminfo(text) == {"MemTotal": 16384 * 1024, "Active(anon)": 8192, "HugePages_Total": 3}


def test_meminfo_of_a_node() -> None:
    assert (
        kernel_counters.parse_meminfo("Node 33 MemTotal:       4 kB\nNode 33 HugePages_Free:      0\n")["MemTotal"]
        == 4096
    )


def test_counters_of_protocols_have_their_names_above_them() -> None:
    text = "Tcp: RtoMin MaxConn PassiveOpens\nTcp: 200 -1 7\nUdp: InErrors\nUdp: 3\nTcpExt: A B\nTcpExt: 1\n"
    assert kernel_counters.parse_netstat(text) == {
        "Tcp.RtoMin": 200,
        "Tcp.MaxConn": -1,
        "Tcp.PassiveOpens": 7,
        "Udp.InErrors": 3,
    }


def test_values_of_another_protocol_count_for_none() -> None:
    assert kernel_counters.parse_netstat("Tcp: A\nUdp: 1\n") == {}


COUNT = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(COUNT, COUNT, COUNT), min_size=1, max_size=9), st.sampled_from([6, 8, 10, 12]))
def test_softnet_is_the_sum_of_all_cpus_whatever_columns_follow(rows: List[Tuple[int, int, int]], more: int) -> None:
    lines = ["".join(f"{number:08x} " for number in (*row, *[7] * more)).rstrip() for row in rows]
    found = kernel_counters.parse_softnet("\n".join(lines) + "\n")
    assert found == (sum(row[1] for row in rows), sum(row[2] for row in rows))


def test_softnet_without_a_line_of_its_form_is_none() -> None:
    assert kernel_counters.parse_softnet("") is kernel_counters.parse_softnet("CPU dropped\n0 0\n") is None


def test_a_line_of_a_cpu_that_was_cut_off_counts_for_none() -> None:
    text = "cpu0 100 0 100 9000 0 10 1\ncpu1 100 0 100 9000 0 10 10 3 0 0\n"
    assert kernel_counters.cpu_times(text) == {1: kernel_counters.Times(total=9223, interrupts=20, stolen=3)}


def test_swap_areas() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/nvme0n1p2                          partition\t4194300\t\t0\t\t-2\n"
        "/srv/some\\040file                       file\t\t4194300\t\t0\t\t-3\n"
    )
    assert kernel_counters.parse_swaps(text) == ["nvme0n1p2", ""]
    assert kernel_counters.parse_swaps(kernel_counters.render_swaps(["nvme0n1p2", ""])) == ["nvme0n1p2", ""]
    assert kernel_counters.parse_swaps("") is None


@pytest.mark.parametrize(
    ("device", "disk"),
    [
        ("nvme1n1p1", "nvme1n1"),
        ("nvme1n10p1", "nvme1n10"),
        ("nvme1n1", "nvme1n1"),
        ("xvda2", "xvda"),
        ("sda15", "sda"),
        ("dm-0", "dm-0"),
    ],
)
def test_the_disk_of_a_partition(device: str, disk: str) -> None:
    disks = "nvme1n1 nvme1n1p1 nvme1n10 nvme1n10p1 xvda xvda2 sda sda15 dm-0"
    assert kernel_counters.disk_of(device, dict.fromkeys(disks.split(), 0)) == disk


@pytest.mark.parametrize("extra", ["", " 0 0 0 0", " 0 0 0 0 5 6"])
def test_how_long_a_disk_was_in_use(extra: str) -> None:
    """Documentation/admin-guide/iostats.rst: field 10 after the name; Linux 4.18 and 5.5 added more."""
    assert kernel_counters.in_use(f" 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11{extra}\n") == {"nvme0n1": 10}
