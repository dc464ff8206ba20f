# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server and its load: on CPUs of their own where they share a host, and until the client has gone on two hosts."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import connections, machine
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host.processes import Session
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.benchmark import Machine, Run
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS, options_of

SERVER = {"part": "server", "address": "10.0.0.12", "seconds": 20}
CLIENT = {"part": "client", "server": "10.0.0.12"}
PAIRS = ("key_value", "web", "cache")


def run(name: str, given: Dict[str, Any], cpus: Machine) -> Run:
    benchmark = BENCHMARKS[name]
    assert benchmark.fit is not None
    return benchmark.run(benchmark.fit(options_of(name, given), cpus), "/folder")


@pytest.mark.parametrize(
    ("cores", "server", "client"),
    [
        (((0,),), (), ()),
        (((0, 1),), (0,), (1,)),
        (((0,), (1,)), (0,), (1,)),
        (((0, 4), (1, 5), (2, 6), (3, 7)), (0, 1, 4, 5), (2, 3, 6, 7)),
        (((0,), (1,), (2,)), (0,), (1, 2)),
    ],
)
def test_server_and_load_have_half_of_the_cores_each(
    cores: Tuple[Tuple[int, ...], ...], server: Tuple[int, ...], client: Tuple[int, ...]
) -> None:
    assert machine.halves(cores) == (server, client)


def test_a_program_runs_on_the_cpus_that_it_is_given(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    reads = ["python3", "-c", "import os; print(os.sched_getaffinity(0))"]
    with Session(str(tmp_path), 256) as started:
        until = time.monotonic() + 60
        assert started.complete(reads, until, lambda: True, False, cpus=(cpu,)) == f"{{{cpu}}}\n"
        assert started.complete(reads, until, lambda: True, False) == f"{os.sched_getaffinity(0)}\n"


@pytest.mark.parametrize("name", PAIRS)
def test_each_host_of_two_starts_its_part_alone(name: str) -> None:
    server, client = run(name, SERVER, Machine(8, 0, 4, 4)), run(name, CLIENT, Machine(8, 0, 4, 4))
    assert [command.argv for command in server.commands if command.argv[0] == "connections"] == [
        ("connections", str(BENCHMARKS[name].options["port"]["default"]), "120", "120")
    ]
    assert "10.0.0.12" in str((server.servers, server.files))
    assert "127.0.0.1" not in str((server, client))
    assert client.servers == ()
    assert "10.0.0.12" in str(client.commands)
    assert BENCHMARKS[name].limits(options_of(name, CLIENT)).port == 0, "what listens there on the client is no matter"


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("key_value", {}, ["io-threads 3", '"processes": 5']),
        ("key_value", SERVER, ["io-threads 8"]),
        ("key_value", CLIENT, ['"processes": 8']),
        ("web", {}, ["worker_processes 3;", "'-t', '5'"]),
        ("web", SERVER, ["worker_processes 8;"]),
        ("cache", {}, ["'-t', '3'", '"processes": 5']),
        ("cache", {"threads": 1, "client_threads": 2}, ["'-t', '1'", '"processes": 2']),
    ],
)
def test_a_program_has_as_many_threads_as_cpus(name: str, given: Dict[str, Any], words: List[str]) -> None:
    started = str(run(name, given, Machine(8, 0, 3, 5)))
    assert [word for word in words if word not in started] == []


def test_a_store_takes_the_connections_of_all_clients_and_of_who_fills_it() -> None:
    configuration = run("key_value", {"clients": 200, "client_hosts": 2, **SERVER}, Machine(8, 0, 4, 4)).files[
        "redis.conf"
    ]
    assert "maxclients 560" in configuration.splitlines()


def serve(capsys: pytest.CaptureFixture[str], port: int, wait: float, longest: float) -> int:
    connections.main(port, wait, longest)
    return int(json.loads(capsys.readouterr().out)["connections"])


def test_a_server_alone_ends_when_its_client_has_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_QUIET", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        clients = [socket.create_connection(("127.0.0.1", port)) for _client in range(2)]
        accepted = [server.accept()[0] for _client in clients]

        def end() -> None:
            for end in (*clients, *accepted):
                end.close()

        threading.Timer(0.6, end).start()
        started = time.monotonic()
        assert serve(capsys, port, 60, 60) == 2
        assert time.monotonic() - started < 60, "it waited until it had to end"


@pytest.mark.parametrize("connected", [False, True])
def test_a_server_alone_waits_no_longer_than_it_may(connected: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        clients = [socket.create_connection(("127.0.0.1", port))] if connected else []
        assert serve(capsys, port, 0.5, 0.5) == len(clients)
        for client in clients:
            client.close()


def test_a_load_is_spread_over_the_addresses_of_a_server() -> None:
    two, cpus = "10.0.0.12,10.0.1.12", Machine(8, 0, 4, 4)
    listens = {"part": "server", "address": two}
    assert "bind 10.0.0.12 10.0.1.12" in run("key_value", listens, cpus).files["redis.conf"]
    assert f"'{two}'" in str(run("cache", listens, cpus).servers)
    assert run("web", listens, cpus).files["nginx.conf"].count(":18080 reuseport;") == 2
    (load,) = run("key_value", {"part": "client", "server": two}, cpus).commands
    assert json.loads(load.argv[1])["servers"] == two.split(",")
    for number, address in ((0, "10.0.0.12"), (1, "10.0.1.12"), (2, "10.0.0.12")):
        (load,) = run("web", {"part": "client", "server": two, "number": number}, cpus).commands
        assert load.argv[-1] == f"http://{address}:18080/"
    network = BENCHMARKS["network"]
    server = network.run(options_of("network", {**listens, "client_hosts": 2}), "").servers[0]
    assert "--bind" not in server, "iperf3 listens on one address, or on all"
