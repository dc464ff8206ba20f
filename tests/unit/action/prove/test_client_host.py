# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client host: the load runs there, its disturbances count, and its failure takes the host under test back."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, Optional, Tuple

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.block import Block
from ansible.playbook.play import Play as AnsiblePlay
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.template import Templar
from ansible_collections.nearmetal.ec2.plugins.action import prove as action
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import measure, processes
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools import histogram
from ansible_collections.nearmetal.ec2.plugins.modules import prove
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible.delegation import action_on

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.support.prove.experiments import files
from tests.support.prove.plays import FINE_LOAD, Call, Play, current, load


@pytest.fixture
def client_host(call: Call, play: Play, tmp_path: Path) -> FakeKernel:
    """Another host, on which the load runs."""
    boot = {"/proc/sys/kernel/random/boot_id": "99999999-2222-3333-4444-555555555555\n"}
    machine = FakeKernel(tmp_path / "client", {**files_of("nitro"), **boot})
    play.client = Play(call, machine)
    play.client._task = SimpleNamespace(no_log=False, check_mode=False, async_val=0)
    return machine


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that the user of a benchmark can reach, which the tests' own folder needn't be."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_the_load_runs_on_a_client_of_which_nothing_is_changed(
    host: FakeKernel, client_host: FakeKernel, play: Play
) -> None:
    before = files(client_host)
    result = play(command=load(host, 120), load_on="client-1", programs=["python3"])
    assert (result["verdict"]["verdict"], result["kept"], current(host)) == ("better", True, "tsc"), result
    assert set(play.client.steps) == {"load"}
    assert len(play.client.steps) == 1 + play.steps.count("measure"), "it was reached before anything was switched"
    assert (client_host.written, files(client_host)) == ([], before)
    assert {command.partition(" --")[0] for command in client_host.commands} == {"systemctl show"}, "which only reads"
    assert {"command", "seconds", "programs", "step"} == set(play.client.arguments)
    assert any(line.endswith(" (on client-1)") for line in play.said)
    measurement = json.loads(Path(result["record"]).read_text().splitlines()[1])
    (sample,) = measurement["client_after"]
    assert sample["boot_id"] == client_host.boot_id() != measurement["after"]["boot_id"]
    assert sample["cpu_foreign"] is not None
    assert measurement["after"]["cpu_foreign"] is None, "on the host, the load's server is no other program"


def test_the_client_s_part_of_a_benchmark_runs_on_the_client(
    host: FakeKernel, client_host: FakeKernel, play: Play, reachable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(Path(__file__).parents[2] / "benchmark/tools/read/network/iperf3-3.12-tcp.out", reachable / "output")
    (reachable / "output").chmod(0o644)
    (reachable / "iperf3").write_text(f'#!/bin/sh\necho "$@" >>{reachable}/ran\nexec cat {reachable}/output\n')
    (reachable / "iperf3").chmod(0o755)
    (reachable / "ran").touch()
    (reachable / "ran").chmod(0o666)
    (reachable / "runs").mkdir()
    monkeypatch.setattr(measure, "_FOLDER", str(reachable / "runs"))
    monkeypatch.setattr(processes, "PATH", f"{reachable}:{processes.PATH}")
    options = {"part": "client", "server": "10.0.0.12"}
    result = play(benchmark="network", benchmark_options=options, load_on="client-1", seconds=1)
    assert result["verdict"]["verdict"] == "same", result
    assert set(play.client.steps) == {"load"}
    begun = (reachable / "ran").read_text().splitlines()
    assert begun[1].startswith("--client 10.0.0.12 --port 15201 --json --time 1 ")
    measurement = json.loads(Path(result["record"]).read_text().splitlines()[1])
    assert [metric["name"] for metric in measurement["metrics"]] == ["throughput"]


@pytest.mark.parametrize(
    ("at", "answer", "msg"),
    [
        (1, {"unreachable": True, "msg": "No route to host."}, "the load can't run on client-1 (No route to host): "),
        (9, {"unreachable": True, "msg": "No route to host."}, "the load can't run on client-1 (No route to host): "),
        (9, {"failed": True, "msg": "MODULE FAILURE"}, "the load can't run on client-1 (MODULE FAILURE): "),
        (9, {"answer": {"load": FINE_LOAD, "busy": 7}}, "the host's answer can't be recorded: it has 7 in place of"),
        (9, {"answer": {"load": FINE_LOAD, "before": {"x": 1}}}, "the host's answer has a form that this version"),
    ],
)
def test_a_client_that_fails_ends_the_run_and_the_host_goes_back(
    at: int, answer: Dict[str, Any], msg: str, host: FakeKernel, client_host: FakeKernel, play: Play
) -> None:
    play.client.before_step = lambda number: answer if number == at else None
    result = play(command=load(host, 120), load_on="client-1")
    assert (result["failed"], result["msg"].startswith(msg), current(host)) == (True, True, "xen"), result["msg"]
    if at == 1:
        assert (play.steps, host.written) == ([], []), "it is reached before anything is switched"
    else:
        assert play.steps[-1] == "back"
        assert ": the host is as it was before; to resume, set prove_resume: " in result["msg"]


def test_a_client_lost_after_the_last_load_changes_nothing(
    host: FakeKernel, client_host: FakeKernel, play: Play
) -> None:
    def lose(_number: int) -> None:
        if play.steps[-1] == "keep":
            play.client.lose()

    play.before_step = lose
    result = play(command=load(host, 120), load_on="client-1")
    assert (result.get("failed", False), result["kept"], current(host)) == (False, True, "tsc"), result
    assert "unreachable" not in result


def test_a_client_that_reboots_or_is_busy_costs_pairs_and_is_named(
    host: FakeKernel, client_host: FakeKernel, play: Play
) -> None:
    def disturbed(number: int) -> Optional[Dict[str, Any]]:
        if number not in (13, 16):  # the first attempts at two pairs
            return None
        answer = play.client._call(prove.main, client_host, **play.client.arguments)
        found = answer["answer"]
        found.update({"busy": 0.95} if number == 13 else {"after": {**found["after"], "boot_id": "b"}})
        return answer

    play.client.before_step = disturbed
    result = play(command=load(host, 120), load_on="client-1")
    assert (result["verdict"]["verdict"], current(host)) == ("better", "tsc")
    assert sorted(result["verdict"]["repeated"]) == ["client_reboot", "saturated"]


def test_several_clients_are_one_load(
    host: FakeKernel, client_host: FakeKernel, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histogram, "_TOGETHER", -1e9)  # these loads take as long as starting them
    result = play(command=load(host, 120), load_on=["client-1", "client-2"])
    assert (result["verdict"]["verdict"], result["kept"]) == ("better", True), result
    measurement = json.loads(Path(result["record"]).read_text().splitlines()[1])
    assert [metric["value"] for metric in measurement["metrics"]] == [200.0], "100 of each"
    assert len(measurement["client_after"]) == 2
    assert any(line.endswith(" (on client-1, client-2)") for line in play.said)
    assert play(resume=result["record"])["failed"], "the run is over, and its record was read"


def test_one_of_several_clients_that_fails_voids_the_load_with_its_name(
    host: FakeKernel, client_host: FakeKernel, play: Play
) -> None:
    second = Play(play._call, client_host)
    second._task = play.client._task
    failed = {"answer": {"load": {**FINE_LOAD, "code": 3, "message": "no route"}}}
    second.before_step = lambda number: failed if number > 1 else None
    play.others["client-2"] = second
    result = play(command=load(host, 120), load_on=["client-1", "client-2"])
    assert result["verdict"]["verdict"] == "unclear"
    reason = result["verdict"]["reasons"][0]
    assert reason.endswith(" the command ended with code 3: client-2: no route"), reason


def test_a_generator_at_its_limit_is_an_answer_and_not_a_busy_host(
    host: FakeKernel, client_host: FakeKernel, play: Play
) -> None:
    def at_its_limit(number: int) -> Optional[Dict[str, Any]]:
        answer = play.client._call(prove.main, client_host, **play.client.arguments)
        answer["answer"]["busy"] = 0.99
        return answer

    play.client.before_step = at_its_limit
    result = play(command=load(host, 120), load_on="client-1")
    assert result["verdict"]["verdict"] == "capped"
    assert "add a client to prove_on, or offer a fixed rate" in result["verdict"]["reasons"][0]
    assert current(host) == "xen"


def test_a_run_on_a_client_goes_on_there(host: FakeKernel, client_host: FakeKernel, play: Play) -> None:
    lost = {"unreachable": True, "msg": "No route to host."}
    play.client.before_step = lambda number: lost if number == 9 else None
    record = play(command=load(host, 120), load_on="client-1")["msg"].rpartition(" ")[2]
    play.client.before_step = lambda _number: None
    result = play(resume=record)
    assert (result["verdict"]["verdict"], set(play.client.steps)) == ("better", {"load"})


SUDO = {"ansible_become": True, "ansible_become_method": "sudo"}
KEY = {"ansible_connection": "ssh", "ansible_host": "192.0.2.9", **SUDO}
PASSWORDS = {"ansible_password": "of-db-1", "ansible_become_password": "root-of-db-1"}


@pytest.mark.parametrize(
    ("host_variables", "client_variables", "passwords"),
    [
        (PASSWORDS, KEY, ("", "")),
        ({"ansible_ssh_password": "of-db-1", "ansible_become_pass": "root-of-db-1"}, KEY, ("", "")),
        (PASSWORDS, {**KEY, "ansible_ssh_pass": "own", "ansible_become_pass": "root"}, ("own", "root")),
        (PASSWORDS, {**KEY, "ansible_ssh_password": "own"}, ("own", "")),
        ({"ansible_password": "of-db-1", "ansible_sudo_pass": "root-of-db-1"}, KEY, ("", "")),
        ({}, KEY, ("of-db-1", "root-of-db-1")),  # of the command line, which are those of all hosts
    ],
)
def test_a_client_gets_no_password_of_the_host_under_test(
    host_variables: Dict[str, Any], client_variables: Dict[str, Any], passwords: Tuple[str, str]
) -> None:
    context = PlayContext(passwords={"conn_pass": "of-db-1", "become_pass": "root-of-db-1"})
    variables = {**host_variables, "hostvars": {"client-1": client_variables}}
    loader = DataLoader()
    task = Task(Block(AnsiblePlay()))
    under_test = action.ActionModule(task, None, context, loader, Templar(loader, variables), None)
    other, _variables = action_on(under_test, "client-1", variables)
    found = other._play_context
    assert (found.password, found.become_pass) == passwords
    options = (other._connection.get_option("password"), other._connection.become.get_option("become_pass"))
    assert tuple(value or "" for value in options) == passwords
