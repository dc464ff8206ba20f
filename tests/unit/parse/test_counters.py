# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of the kernel and the files of time services, with texts as real hosts write them."""

from __future__ import annotations

from typing import Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import (
    counts,
    netstat,
    proc_stat,
    softnet,
    swaps,
    time_sources,
)
from hypothesis import given
from hypothesis import strategies as st

COUNT = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(COUNT, COUNT, COUNT), min_size=1, max_size=9), st.sampled_from([6, 8, 10, 12]))
def test_softnet_is_the_sum_of_all_cpus_whatever_columns_follow(rows: List[Tuple[int, int, int]], more: int) -> None:
    lines = ["".join(f"{number:08x} " for number in (*row, *[7] * more)).rstrip() for row in rows]
    found = softnet.parse("\n".join(lines) + "\n")
    assert found == (sum(row[1] for row in rows), sum(row[2] for row in rows))


def test_softnet_without_a_line_of_its_form_is_none() -> None:
    assert softnet.parse("") is softnet.parse("CPU dropped\n0 0\n") is None


def test_counters_of_protocols_have_their_names_above_them() -> None:
    text = "Tcp: RtoMin MaxConn PassiveOpens\nTcp: 200 -1 7\nUdp: InErrors\nUdp: 3\nTcpExt: A B\nTcpExt: 1\n"
    assert netstat.parse(text) == {"Tcp.RtoMin": 200, "Tcp.MaxConn": -1, "Tcp.PassiveOpens": 7, "Udp.InErrors": 3}


def test_values_of_another_protocol_count_for_none() -> None:
    assert netstat.parse("Tcp: A\nUdp: 1\n") == {}


def test_a_line_of_a_cpu_that_was_cut_off_counts_for_none() -> None:
    text = "cpu0 100 0 100 9000 0 10 1\ncpu1 100 0 100 9000 0 10 10 3 0 0\n"
    assert proc_stat.parse(text) == {1: proc_stat.Times(total=9223, interrupts=20, stolen=3)}


def test_counts_are_lines_of_a_name_and_a_number() -> None:
    assert counts.parse("pswpin 3\nnr_free 18446744073709551615\nNode 0\nbad -1\n") == {
        "pswpin": 3,
        "nr_free": 2**64 - 1,
    }


def test_swap_areas() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/nvme0n1p2                          partition\t4194300\t\t0\t\t-2\n"
        "/srv/some\\040file                       file\t\t4194300\t\t0\t\t-3\n"
    )
    assert swaps.parse(text) == ["nvme0n1p2", ""]
    assert swaps.parse(swaps.render(["nvme0n1p2", ""])) == ["nvme0n1p2", ""]
    assert swaps.parse("") is None


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
    assert swaps.disk_of(device, dict.fromkeys(disks.split(), 0)) == disk


@pytest.mark.parametrize("extra", ["", " 0 0 0 0", " 0 0 0 0 5 6"])
def test_how_long_a_disk_was_in_use(extra: str) -> None:
    """Documentation/admin-guide/iostats.rst: field 10 after the name; Linux 4.18 and 5.5 added more."""
    assert swaps.in_use(f" 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11{extra}\n") == {"nvme0n1": 10}


CHRONY = """\
# server 169.254.169.123
! pool ignored.example.com
Server 169.254.169.123 prefer iburst minpoll 4 maxpoll 4
pool 2.amazon.pool.ntp.org iburst
peer 10.0.0.7
server 0.time.aws.com
server fd00:ec2::123 noselect
refclock PHC /dev/ptp0:extpps poll 2
refclock SHM 0
makestep 1.0 3
key hunter2
"""


def test_the_sources_of_chrony() -> None:
    expected = {"169.254.169.123": 1, "another server": 2, "time.aws.com": 1, "PTP device": 1}
    assert time_sources.chrony(CHRONY) == expected
    assert time_sources.chrony(time_sources.render(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Time]\nNTP=169.254.169.123 ntp.example.com\n", {"169.254.169.123": 1, "another server": 1}),
        ("[Time]\n#NTP=169.254.169.123\n", {}),
        ("FallbackNTP=ntp.ubuntu.com\nNTP=169.254.169.123\n", {"169.254.169.123": 1}),
        ("NTP=ntp.example.com\nNTP=\nNTP=169.254.169.123\n", {"169.254.169.123": 1}),
        ("NTP=time.aws.com.\n", {"time.aws.com": 1}),
    ],
)
def test_the_servers_of_timesyncd(text: str, expected: Dict[str, int]) -> None:
    assert time_sources.timesyncd(text) == expected
    assert time_sources.timesyncd(time_sources.render(expected)) == expected


@pytest.mark.parametrize("line", ["server", "refclock PHC", "refclock PHC /etc/shadow", "server \x1b[31m"])
def test_a_line_without_a_source(line: str) -> None:
    found: Dict[str, int] = time_sources.chrony(line)
    assert found == {}
