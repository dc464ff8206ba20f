# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a real kernel: what helps is kept, what harms is taken back, and a host whose controller is killed comes back."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import instance, inventory
from lab.host import Host

CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
LEFT = "ls /run/nearmetal/prove.json /run/nearmetal/prove.pyz 2>/dev/null; true"
# A program that asks for the time and does nothing else: 1 µs each with tsc, 25 µs with hpet, in emulation.
LOAD = "python3 -c 'import time; [time.time() for _ in range(100000)]'"
# By the host's clock, which runs some three times too fast in emulation while its source is tsc.
ABANDONED = 240


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("burstable", "prove") as running:
        yield running


def command(host: Host, folder: Path, source: str, **variables: object) -> "list[str]":
    hosts = folder / "hosts.ini"
    hosts.write_text(inventory.ansible([host]), encoding="utf-8")
    options: "dict[str, object]" = {
        "prove_command": LOAD,
        "prove_timed": True,
        "prove_settle": 0.2,
        "prove_seconds": 3,
        "prove_pairs": 8,
        "prove_seed": 4711,
        "tune_concerns": {"clocksource": {"source": source}},
        **variables,
    }
    return ["ansible-playbook", "-i", str(hosts), "nearmetal.ec2.prove", "-e", json.dumps(options)]


def prove(host: Host, folder: Path, source: str) -> str:
    done = subprocess.run(
        command(host, folder, source),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "ANSIBLE_PIPELINING": "true"},
        check=False,
    )
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


def test_a_host_whose_controller_is_killed_comes_back_by_itself(host: Host, tmp_path: Path) -> None:
    host.run(f"echo tsc > {CURRENT}")
    log = tmp_path / "log"
    with log.open("wb") as stream, subprocess.Popen(
        command(host, tmp_path, "hpet", prove_abandon_after=ABANDONED),
        stdout=stream,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        start_new_session=True,
        env={**os.environ, "ANSIBLE_PIPELINING": "true"},
    ) as controller:
        measured = host.wait(lambda: "warm-up 1, untuned" in log.read_text("utf-8"), 300.0, 0.2)
        # Ansible, and the worker that would take the host back: it has a session of its own.
        workers = Path(f"/proc/{controller.pid}/task/{controller.pid}/children").read_text("ascii").split()
        for pid in [*map(int, workers), controller.pid]:
            os.kill(pid, 9)
        killed = time.monotonic()
    assert measured, log.read_text("utf-8")
    assert "prove.json" in host.run(LEFT)
    assert host.wait(lambda: host.run(LEFT) == "", 300.0, 2.0), host.run("journalctl -b --no-pager -u 'nearmetal*'")
    print(f"back {time.monotonic() - killed:.0f} s after its controller was killed")
    assert host.run(f"cat {CURRENT}").strip() == "tsc"
    assert f"prove made no step for {ABANDONED} s: the host is as it was before" in host.run(
        "journalctl -b --no-pager -u 'nearmetal-prove*'"
    )
