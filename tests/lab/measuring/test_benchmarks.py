# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every ready benchmark on a real kernel, those of a server also with its load from a second host, and no trace of it.

The figures are those of an emulated host: the tests ask whether there are any, and never how high they are. UnixBench
and ebizzy are in no distribution. Their tests are there if NEARMETAL_BENCHMARK_PROGRAMS names a folder with both, built
for Debian 12: UnixBench/ and ebizzy.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lab.host import Host, instance
from tests.support.lab import ansible

PROGRAMS = os.environ.get("NEARMETAL_BENCHMARK_PROGRAMS")
NETWORK = {"server": "10.9.0.1", "client": "10.9.0.2"}
LEFT = "ls -d /var/tmp/nearmetal-benchmark-* 2>/dev/null; ps -u nobody -o args=; true"
INSTALLED = "dpkg-query --show | sha256sum; systemctl list-units --state=active --plain --no-legend | sha256sum"
# The options of a run → the figures that it has.
ALONE: "list[tuple[str, dict[str, Any], list[str]]]" = [
    ("clock", {"seconds": 1}, ["read"]),
    ("disk", {"size_mib": 32}, ["read_rate", "read_p99"]),
    ("disk", {"size_mib": 32, "shape": "mixed_80"}, ["read_rate", "read_p99", "write_rate", "write_p99"]),
    ("disk", {"size_mib": 32, "shape": "random_read", "device": "/dev/vdb"}, ["read_rate", "read_p99"]),
    ("key_value", {"keys": 1000}, ["get", "get_p99", "set", "set_p99"]),
    ("memory", {"block_kib": 8192}, ["read", "write"]),
    ("memory", {"load": "stream", "seconds": 6, "block_kib": 8192}, ["read", "write"]),
    ("memory", {"load": "fresh", "threads": 2}, ["fresh"]),
    ("latency", {}, ["p99", "max"]),
    ("network", {}, ["throughput"]),
    ("network", {"packets": True}, ["packets"]),
    ("web", {"connections": 8}, ["requests", "p99"]),
    ("web", {"connections": 8, "reuseport": False}, ["requests", "p99"]),
    ("cache", {"keys": 1000}, ["requests", "p99"]),
]
BETWEEN: "list[tuple[str, dict[str, Any], list[str]]]" = [
    ("network", {}, ["throughput"]),
    ("network", {"streams": 4}, ["throughput"]),
    ("network", {"reverse": True}, ["throughput"]),
    ("network", {"packets": True}, ["packets"]),
    ("network", {"latency": True, "port": 15202}, ["p50", "p99", "p99.9"]),
    ("key_value", {"keys": 1000}, ["get", "get_p99", "set", "set_p99"]),
    ("web", {"connections": 8}, ["requests", "p99"]),
    ("web", {"connections": 8, "reuseport": False}, ["requests", "p99"]),
    ("cache", {"keys": 1000}, ["requests", "p99"]),
]
BUILT: "list[tuple[str, dict[str, Any], list[str]]]" = [
    ("ebizzy", {"path": "/opt/ebizzy", "allocation": "mmap"}, ["records"]),
    (
        "unixbench",
        {"path": "/opt/UnixBench", "tests": ["syscall", "dhry2reg"], "seconds": 20},
        ["index", "dhrystone", "system_call"],
    ),
]


class Pair(NamedTuple):
    """Two hosts in one network, and the inventory with both."""

    server: Host
    client: Host
    hosts: Path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEARMETAL_LAB_INSTANCES", str(folder / "instances"))
        with instance.running("benchmarks", "server") as server, instance.running("benchmarks", "client") as client:
            connect(server, {"server": True})
            connect(client, {"server": False})
            assert client.run(f'python3 -c "{PROBE}"').strip() == "111", "refused by the other host, which so answers"
            for host in (server, client):
                host.run("systemctl stop nginx redis-server memcached")
            if PROGRAMS:
                packed = subprocess.run(
                    ["tar", "-C", PROGRAMS, "-c", "UnixBench", "ebizzy"], stdout=subprocess.PIPE, check=True
                )
                server.run("tar -C /opt -x && chmod -R a+rX /opt", stdin=packed.stdout)
            yield Pair(server, client, ansible.inventory_of(folder, server, client))


PROBE = f"import socket; print(socket.socket().connect_ex(('{NETWORK['server']}', 9)))"


def connect(host: Host, end: "dict[str, object]") -> None:
    """Plug in a NIC whose other end is the other host's: QEMU carries its frames over a socket beside the folders."""
    address = f"52:54:00:09:00:{NETWORK[host.name].rpartition('.')[2].zfill(2)}"
    with host.monitor() as monitor:
        path = {"type": "unix", "path": "../pair.sock"}
        monitor.execute("netdev_add", type="stream", id="pair", addr=path, **end)
        monitor.execute("device_add", driver="virtio-net-pci", id="pair", netdev="pair", mac=address)
    find = f"ip -o link | sed -n 's/^[0-9]*: \\([^:]*\\):.*{address}.*/\\1/p'"
    assert host.wait(lambda: bool(host.run(find).strip()), 60.0), host.run("ip -o link")
    nic = host.run(find).strip()
    host.run(f"ip address add {NETWORK[host.name]}/24 dev {nic} && ip link set {nic} up")


def play(pair: Pair, folder: Path, playbook: str, **variables: object) -> "subprocess.CompletedProcess[str]":
    done = ansible.run(ansible.playbook(playbook, pair.hosts, variables), folder, ansible.PIPELINED)
    print(done.stdout)
    return done


def figures(folder: Path, host: str) -> "list[str]":
    """The names of the figures of the only run on a host."""
    (line,) = (folder / f"nearmetal-report/benchmark/{host}.jsonl").read_text("utf-8").splitlines()
    metrics = json.loads(line)["metrics"]
    assert all(metric["value"] > 0 for metric in metrics)
    return [metric["name"] for metric in metrics]


def options(given: "dict[str, Any]") -> "dict[str, Any]":
    return {"seconds": 2, **given}


def title(value: object) -> "str | None":
    return ",".join(f"{name}={value[name]}" for name in value) if isinstance(value, dict) else None


@pytest.mark.parametrize(("name", "given", "metrics"), [*ALONE, *(BUILT if PROGRAMS else ())], ids=title)
def test_a_benchmark_on_one_host(
    pair: Pair, tmp_path: Path, name: str, given: "dict[str, Any]", metrics: "list[str]"
) -> None:
    before = pair.server.run(INSTALLED)
    done = play(pair, tmp_path, "benchmark", target="server", benchmark_name=name, benchmark_options=options(given))
    assert done.returncode == 0, done.stdout
    assert figures(tmp_path, "server") == metrics
    assert pair.server.run(LEFT) == ""
    assert pair.server.run(INSTALLED) == before


@pytest.mark.parametrize(("name", "given", "metrics"), BETWEEN, ids=title)
def test_a_benchmark_between_two_hosts(
    pair: Pair, tmp_path: Path, name: str, given: "dict[str, Any]", metrics: "list[str]"
) -> None:
    done = play(
        pair,
        tmp_path,
        "benchmark_between",
        target="server",
        benchmark_client="client",
        benchmark_address=NETWORK["server"],
        benchmark_port=given.get("port", 15201),
        benchmark_name=name,
        benchmark_options=options(given),
    )
    assert done.returncode == 0, done.stdout
    assert f"server from client: {name}: " in done.stdout
    assert figures(tmp_path, "client") == metrics
    for host in (pair.server, pair.client):
        assert host.run(LEFT) == ""


def test_a_server_that_can_t_start_says_why(pair: Pair, tmp_path: Path) -> None:
    done = play(
        pair,
        tmp_path,
        "benchmark_between",
        target="server",
        benchmark_client="client",
        benchmark_address="10.9.0.77",
        benchmark_name="network",
    )
    assert done.returncode == 2
    assert "iperf3 failed with code 1: error - unable to start listener" in " ".join(done.stdout.split())
    assert pair.server.run(LEFT) == ""


def test_a_raw_device_is_written_by_its_id_alone_and_not_if_it_has_a_file_system(pair: Pair, tmp_path: Path) -> None:
    write = {"size_mib": 32, "shape": "random_write", "device": "/dev/vdb"}
    variables = {"target": "server", "benchmark_name": "disk"}
    refused = play(pair, tmp_path, "benchmark", benchmark_options=options(write), **variables)
    assert refused.returncode == 2
    assert "set write_device to its id, serial=vol1" in " ".join(refused.stdout.split())
    allowed = {**write, "write_device": "serial=vol1"}
    done = play(pair, tmp_path, "benchmark", benchmark_options=options(allowed), **variables)
    assert done.returncode == 0, done.stdout
    pair.server.run("mkfs.ext4 -q /dev/vdb")
    refused = play(pair, tmp_path, "benchmark", benchmark_options=options(allowed), **variables)
    assert refused.returncode == 2
    assert "blkid finds ext4" in " ".join(refused.stdout.split())
    pair.server.run("wipefs --all --quiet /dev/vdb")


@pytest.mark.parametrize("killed", ["the controller", "the module", "the load"])
def test_nothing_is_left_of_a_benchmark_that_is_killed(pair: Pair, tmp_path: Path, killed: str) -> None:
    variables = {"target": "server", "benchmark_name": "web", "benchmark_options": {"seconds": 600}}
    loads = "pgrep -x wrk"
    with subprocess.Popen(
        ansible.playbook("benchmark", pair.hosts, variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        start_new_session=True,
        env={**os.environ, **ansible.PIPELINED},
    ) as controller:
        assert pair.server.wait(lambda: pair.server.run(f"{loads} || true") != "", 300.0)
        if killed == "the controller":
            # The worker, and the ssh below it, have sessions of their own.
            for pid in [*descendants(controller.pid), controller.pid]:
                os.kill(pid, signal.SIGKILL)
        elif killed == "the module":
            # The load's parent is its leader, a shell, whose parent is the module.
            pair.server.run(f"kill -KILL $(ps -o ppid= -p $(ps -o ppid= -p $({loads})))")
        else:
            pair.server.run(f"kill -KILL $({loads})")
        controller.communicate()
    assert pair.server.wait(lambda: pair.server.run(LEFT) == "", 120.0, 0.5), pair.server.run(LEFT)


def descendants(pid: int) -> "list[int]":
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text("ascii").split()
    ]
    return [*(below for child in children for below in descendants(child)), *children]
