# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet in batches, on simulated hosts of several classes: health between them, and hosts that die half-way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

from tests.support.simulated import simulate

PROJECT = Path(__file__).resolve().parents[3]
KINDS = {"a": "xen_hvm", "b": "nitro", "c": "graviton"}
KEEPALIVE = "proc/sys/net/ipv4/tcp_keepalive_time"
# The Python of a host that goes away when a run is about to write a kernel value, which its journal has already.
DIES = '#!/bin/sh\nNEARMETAL_DIES_AT=1 exec "{python}" "$@"\n'


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Three hosts of three classes, one per batch."""
    hosts = {name: {**simulate(tmp_path / name, kind), "tune_workload": "jvm"} for name, kind in KINDS.items()}
    hosts["c"]["tune_workload"] = "burstable"
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    return tmp_path


def run(fleet: Path, *words: str, **variables: Any) -> "subprocess.CompletedProcess[str]":
    environment: Dict[str, str] = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(PROJECT / ".ansible/collections")
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        "hosts.json",
        "nearmetal.ec2.tune",
        *words,
    ]
    return subprocess.run(
        [*command, "-e", json.dumps(variables)],
        cwd=fleet,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def tuned(fleet: Path) -> str:
    """The hosts whose kernel was tuned."""
    return "".join(name for name in KINDS if (fleet / name / "root" / KEEPALIVE).read_text().strip() == "300")


def test_a_sick_host_stops_the_fleet_until_it_is_well(fleet: Path) -> None:
    (fleet / "sick-b").touch()
    health = {"tune_health_command": f"test ! -e {fleet}/sick-{{{{ inventory_hostname }}}}", "tune_health_timeout": 1}
    done = run(fleet, **health)
    assert done.returncode == 2, done.stdout
    assert tuned(fleet) == "ab"
    assert "Ask whether the host is healthy" in done.stdout
    again = run(fleet, **health)
    assert again.returncode == 2, "a run that changes nothing asks too"
    assert tuned(fleet) == "ab"
    (fleet / "sick-b").unlink()
    done = run(fleet, **health, tune_health_on="controller")
    assert done.returncode == 0, done.stdout
    assert tuned(fleet) == "abc"


def test_a_health_command_that_hangs_stops_the_fleet(fleet: Path) -> None:
    (fleet / "never").mkdir()
    os.mkfifo(fleet / "never/answers")
    done = run(fleet, tune_health_command=f"cat {fleet}/never/answers", tune_health_timeout=1)
    assert done.returncode == 2, done.stdout
    assert tuned(fleet) == "a"


@pytest.mark.parametrize("skipped", ["none", "always"])
def test_no_health_is_asked_in_check_mode(fleet: Path, skipped: str) -> None:
    done = run(fleet, "--check", "--skip-tags", skipped, tune_health_command="false", tune_health_timeout=1)
    assert done.returncode == 0, done.stdout
    assert tuned(fleet) == ""


def test_a_host_that_dies_half_way_stops_the_fleet_and_converges_later(fleet: Path) -> None:
    python = fleet / "b/python"
    alive = python.rename(fleet / "b/alive")
    python.write_text(DIES.format(python=alive))
    python.chmod(0o755)
    done = run(fleet)
    assert done.returncode == 2, done.stdout
    assert tuned(fleet) == "a"
    assert list((fleet / "b/root/var/lib/nearmetal").iterdir()), "what it wrote before it died stays"
    alive.replace(python)
    done = run(fleet)
    assert done.returncode == 0, done.stdout
    assert tuned(fleet) == "abc"
    assert "changed=1" in row(done, "b"), "what was missing"
    assert "changed=0" in row(run(fleet), "b")


def row(done: "subprocess.CompletedProcess[str]", host: str) -> str:
    """The host's line of the recap."""
    return next(line for line in done.stdout.splitlines() if re.match(rf"{host} +:", line))


def test_a_host_that_is_gone_stops_the_fleet(fleet: Path) -> None:
    hosts = json.loads((fleet / "hosts.json").read_text())
    hosts["all"]["hosts"]["b"] = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}
    (fleet / "hosts.json").write_text(json.dumps(hosts))
    done = run(fleet)
    assert done.returncode == 4, done.stdout
    assert tuned(fleet) == "a"
    limited = run(fleet, "--limit", "a,c")
    assert limited.returncode == 0, limited.stdout
    assert tuned(fleet) == "ac"
