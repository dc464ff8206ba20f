# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a real kernel: a better tuning is kept; one that is worse, without effect or abandoned is taken back."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance
from tests.support.lab import ansible

CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
SWAPPINESS = "/proc/sys/vm/swappiness"
SOMAXCONN = "/proc/sys/net/core/somaxconn"
BACKLOG = "ss -ltnH sport = :4242"
LEFT = "ls /run/nearmetal/prove.json /run/nearmetal/prove.pyz 2>/dev/null; true"
# A program that asks for the time and does little else: even on a busy machine, its own start is a small part of it.
LOAD = "python3 -c 'import time; [time.time() for _ in range(1000000)]'"
ABANDONED = 180
TUNED_FIRST = 4701  # of a coin that measures the host tuned before it measures it untuned in the first pair
# A server that goes on listening, with room for 100 that wait to be accepted.
SERVER = "import socket, time; server = socket.socket(); server.bind(('127.0.0.1', 4242)); server.listen(100)"
# Clients of Redis that connect anew for each request, which takes them a second. A connection that the kernel drops
# because too many wait keeps one waiting for minutes, or is reset, which redis-benchmark ends with.
CLIENTS = "timeout 10 redis-benchmark -t ping_inline -k 0 -c 200 -n 1000 -q"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("burstable", "prove") as running:
        yield running


def command(host: Host, folder: Path, source: str, **variables: object) -> "list[str]":
    options: "dict[str, object]" = {
        "prove_command": LOAD,
        "prove_timed": True,
        "prove_settle": 0.2,
        "prove_seconds": 3,
        "prove_pairs": 8,
        "prove_burn_in": 1,
        "prove_seed": 4711,
        "tune_concerns": {"clocksource": {"source": source}},
        **variables,
    }
    return ansible.playbook("prove", ansible.inventory_of(folder, host), options)


def prove(host: Host, folder: Path, source: str) -> str:
    return play(command(host, folder, source, prove_pairs=20), folder)


def play(arguments: "list[str]", folder: Path) -> str:
    done = ansible.run(arguments, folder, ansible.PIPELINED)
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_faster_clock_is_better_and_kept(host: Host, tmp_path: Path) -> None:
    assert host.run(f"cat {CURRENT}").strip() == "hpet"
    output = prove(host, tmp_path, "tsc")
    assert f"PROVE  {host.name}  better, kept" in output
    assert host.run(f"cat {CURRENT}").strip() == "tsc"
    assert host.run(LEFT) == ""
    host.run("test -e /var/lib/nearmetal/wanted.json")


def test_a_slower_clock_is_worse_and_taken_back(host: Host, tmp_path: Path) -> None:
    host.run(f"echo tsc > {CURRENT}")
    output = prove(host, tmp_path, "hpet")
    assert f"PROVE  {host.name}  worse, restored" in output
    assert host.run(f"cat {CURRENT}").strip() == "tsc"
    assert host.run(LEFT) == ""
    assert host.run("ls /var/lib/nearmetal 2>/dev/null; true") == ""


def test_a_backlog_that_a_listening_socket_keeps_is_not_tested(host: Host, tmp_path: Path) -> None:
    host.run(f'systemd-run --quiet --unit=listens python3 -c "{SERVER}; time.sleep(3600)"')
    assert host.wait(lambda: " 100 " in host.run(BACKLOG), 60.0, 1.0)
    before = host.run(f"cat {SOMAXCONN}").strip()
    host.run(f"echo 1 > {SOMAXCONN}")
    assert " 100 " in host.run(BACKLOG), "the kernel changes no socket that listens"
    host.run(f"echo {before} > {SOMAXCONN}")
    host.run(f"echo tsc > {CURRENT}")  # which the basic concerns would compare too
    concerns: "dict[str, dict[str, object]]" = {"network_stack": {"somaxconn": 1}}
    refused = ansible.run(command(host, tmp_path, "", tune_concerns=concerns), tmp_path, ansible.PIPELINED)
    print(refused.stdout)
    assert refused.returncode != 0
    assert "nothing of this tuning can be tested: network_stack.somaxconn (a running program keeps" in refused.stdout
    host.run(f"echo hpet > {CURRENT}")
    concerns["clocksource"] = {"source": "tsc"}
    output = play(command(host, tmp_path, "", prove_pairs=20, prove_soak=0, tune_concerns=concerns), tmp_path)
    assert f"PROVE  {host.name}  better, kept" in output
    assert "not tested: network_stack.somaxconn: a running program keeps the old value" in output
    unwatched = output.partition("not watched: ")[2].partition("\n")[0].split(", ")
    assert "timers" not in unwatched, "systemd names its timers"
    assert host.run(f"cat {SOMAXCONN}").strip() == before
    assert host.run("grep -r somaxconn /etc/sysctl.d/*nearmetal* 2>/dev/null; true") == ""
    assert host.run(f"cat {CURRENT}").strip() == "tsc"
    assert host.run(LEFT) == ""


def test_a_backlog_of_one_is_not_kept_once_redis_listens_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    backlog = BACKLOG.replace("4242", "6379")
    with instance.running("benchmarks", "prove") as host:
        host.run("systemctl start redis-server")
        before = host.run(backlog)
        assert " 511 " in before
        concerns = {"network_stack": {"somaxconn": 1}}
        served = {"prove_restart": "redis-server.service", "prove_programs": ["redis-server"]}
        options = {**served, "prove_command": CLIENTS, "tune_concerns": concerns}
        output = play(command(host, tmp_path, "", **options), tmp_path)
        [line] = [line for line in output.splitlines() if line.startswith(f"PROVE  {host.name}  ")]
        assert line.endswith((" worse, restored", " unsafe, restored")), line
        assert host.run(backlog) == before, "it was started anew once more, untuned"
        assert host.run(LEFT) == ""


def test_a_tuning_that_the_load_cannot_notice_is_not_called_better_or_worse(host: Host, tmp_path: Path) -> None:
    host.run(f"echo tsc > {CURRENT}")
    before = host.run(f"cat {SWAPPINESS}").strip()
    options = {"tune_concerns": {"memory": {"swappiness": 10}}, "prove_pairs": 12, "prove_margin": 10}
    output = play(command(host, tmp_path, "", **options), tmp_path)
    [line] = [line for line in output.splitlines() if line.startswith(f"PROVE  {host.name}  ")]
    assert line.endswith((" same, restored", " unclear, restored")), line
    assert host.run(f"cat {SWAPPINESS}").strip() == before != "10"
    assert host.run(LEFT) == ""
    assert host.run("ls /var/lib/nearmetal 2>/dev/null; true") == ""


def kill_after(host: Host, line: str, log: Path, arguments: "list[str]", clock: str = "") -> None:
    """Run Ansible until it prints a text and the host has this clock, then kill it and the worker that would take the
    host back."""
    with log.open("wb") as stream, subprocess.Popen(
        arguments,
        stdout=stream,
        stderr=subprocess.STDOUT,
        cwd=log.parent,
        start_new_session=True,
        env={**os.environ, **ansible.PIPELINED},
    ) as controller:
        host.wait(lambda: line in log.read_text("utf-8") or controller.poll() is not None, 600.0, 0.2)
        host.wait(lambda: clock in host.run(f"cat {CURRENT}") or controller.poll() is not None, 600.0, 0.2)
        # The worker has a session of its own.
        workers = Path(f"/proc/{controller.pid}/task/{controller.pid}/children").read_text("ascii").split()
        for pid in [*map(int, workers), controller.pid]:
            os.kill(pid, signal.SIGKILL)
    print(log.read_text("utf-8"))
    assert line in log.read_text("utf-8")


def test_a_run_whose_controller_is_killed_goes_on_and_a_host_that_is_left_comes_back_by_itself(
    host: Host, tmp_path: Path
) -> None:
    play(
        ["nearmetal.ec2.tune" if word == "nearmetal.ec2.prove" else word for word in command(host, tmp_path, "tsc")],
        tmp_path,
    )
    before = host.run("sha256sum /var/lib/nearmetal/*")
    lasting = {"prove_abandon_after": ABANDONED, "prove_seed": TUNED_FIRST}
    kill_after(host, "warm-up 1, untuned", tmp_path / "first", command(host, tmp_path, "tsc", **lasting))
    [record] = tmp_path.glob("nearmetal-report/prove/*.jsonl")
    resumed = command(host, tmp_path, "tsc", prove_resume=str(record))
    # In the step that measures the host untuned, which is completed.
    kill_after(host, "pair 1 of at most 8, tuned", tmp_path / "second", resumed, "hpet")
    killed = time.monotonic()
    assert "warm-up 1" not in (tmp_path / "second").read_text("utf-8")
    assert "prove.json" in host.run(LEFT)
    assert host.wait(lambda: host.run(LEFT) == "", 600.0, 2.0), host.run("journalctl -b --no-pager -u 'nearmetal*'")
    print(f"back {time.monotonic() - killed:.0f} s after its controller was killed")
    assert host.run(f"cat {CURRENT}").strip() == "tsc"
    assert host.run("sha256sum /var/lib/nearmetal/*") == before
    assert f"prove made no step for {ABANDONED} s: the host is as it was before" in host.run(
        "journalctl -b --no-pager -u 'nearmetal-prove*'"
    )
