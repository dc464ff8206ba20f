# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a benchmark from running on a host is said in one sentence: ports, memory, disks, connections."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import refusals
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.benchmark import Limits
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS, options_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host


def test_a_port_on_which_something_listens_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            NearmetalError, match=rf"^port {port} can't be used \(Address already in use\): set another"
        ):
            refusals.require_port(port)
    refusals.require_port(port)


def test_a_port_on_which_connections_still_end_is_refused_for_a_server_that_can_t_take_it_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            taken = server.accept()[0]
            taken.close()  # the end that closes first waits
            assert client.recv(1) == b""
    refusals.require_port(port)
    with pytest.raises(NearmetalError, match=rf"^port {port} can't be used \(connections of an earlier run still end"):
        refusals.require_port(port, takes_over=False)
    latency = BENCHMARKS["network"].limits(options_of("network", {"latency": True}))
    assert (latency.port, latency.takes_over) == (15201, False), "sockperf would end with words that nobody understands"


@pytest.mark.parametrize(
    ("threads", "words"), [(6, ""), (7, "the benchmark needs 632 MiB of memory; the host has 600 ")]
)
def test_memory_that_the_host_doesn_t_have_is_refused(threads: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       4000000 kB\nMemAvailable:    614400 kB\n")
    limits = BENCHMARKS["memory"].limits(options_of("memory", {"threads": threads, "block_kib": 65536}))
    assert limits.memory_mib > threads * 64
    error = ""
    try:
        refusals.require_memory(Host(str(tmp_path)), limits)
    except NearmetalError as raised:
        error = str(raised)
    assert error.startswith(words)
    assert bool(error) == bool(words)


def test_a_disk_in_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        "24 1 259:1 / / rw - ext4 /dev/root rw\n31 24 0:26 / /nearmetal-absent rw - tmpfs tmpfs rw\n"
    )
    host = Host(str(tmp_path))
    refusals.require_disk(host, "/nearmetal-absent-too", Limits(1, disk_mib=1))
    refusals.require_disk(host, "/nearmetal-absent/data", Limits(1))
    with pytest.raises(NearmetalError, match=r"^/nearmetal-absent/data is in memory \(tmpfs on /nearmetal-absent\): "):
        refusals.require_disk(host, "/nearmetal-absent/data", Limits(1, disk_mib=1))


def test_files_that_would_fill_a_file_system_are_refused(tmp_path: Path) -> None:
    refusals.require_room(str(tmp_path), Limits(1, disk_mib=1))
    with pytest.raises(NearmetalError, match=r"MiB if a tenth stays free; the benchmark writes 999999999 MiB: give"):
        refusals.require_room(str(tmp_path), Limits(1, disk_mib=999999999))


@pytest.mark.parametrize(
    ("files", "ports", "words"),
    [
        (20000, "1024 65535", ""),
        (20000, "² 3", ""),
        (1000, "1024 65535", "the benchmark holds 900 connections; `ulimit -Hn` leaves room for 872: give it fewer"),
        (20000, "32768 33000", "the benchmark holds 900 connections to one port; net.ipv4.ip_local_port_range has "),
    ],
)
def test_connections_that_a_program_can_t_hold_are_refused(
    files: int, ports: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals.resource, "getrlimit", lambda _kind: (files, files))
    (tmp_path / "proc/sys/net/ipv4").mkdir(parents=True)
    (tmp_path / "proc/sys/net/ipv4/ip_local_port_range").write_text(ports.replace(" ", "\t") + "\n")
    error = ""
    try:
        refusals.require_connections(Host(str(tmp_path)), Limits(1, connections=900))
    except NearmetalError as raised:
        error = str(raised)
    assert error.startswith(words)
    assert bool(error) == bool(words)
