# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet in batches, on simulated hosts of several classes: health between them, and hosts that die half-way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from tests.support.simulated import simulate

PROJECT = Path(__file__).resolve().parents[3]
KINDS = {"a": "xen_hvm", "b": "nitro", "c": "graviton"}
KEEPALIVE = "proc/sys/net/ipv4/tcp_keepalive_time"
# The Python of a host that dies just before a run writes a kernel value that is already in its journal.
DIES = '#!/bin/sh\nNEARMETAL_DIES_AT=1 exec "{python}" "$@"\n'


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Three hosts of three classes, one per batch."""
    hosts = {name: {**simulate(tmp_path / name, kind), "tune_workload": "jvm"} for name, kind in KINDS.items()}
    hosts["c"]["tune_workload"] = "burstable"
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    return tmp_path


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """A pipe without data until the test is over, so that its reader doesn't outlive the test."""
    pipe = tmp_path / "silent"
    os.mkfifo(pipe)
    yield pipe
    os.close(os.open(pipe, os.O_RDWR))


def run(
    fleet: Path, *words: str, playbook: str = "tune", strategy: str = "linear", **variables: Any
) -> "subprocess.CompletedProcess[str]":
    environment: Dict[str, str] = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(PROJECT / ".ansible/collections")
    environment["ANSIBLE_STRATEGY"] = strategy
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        "hosts.json",
        f"nearmetal.ec2.{playbook}",
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


def test_an_unhealthy_host_stops_the_fleet_until_it_is_healthy(fleet: Path) -> None:
    (fleet / "sick-b").touch()
    health = {"tune_health_command": f"test ! -e {fleet}/sick-{{{{ inventory_hostname }}}}", "tune_health_timeout": 1}
    done = run(fleet, **health)
    assert done.returncode == 2, done.stdout
    assert tuned(fleet) == "ab"
    assert "Ask whether the host is healthy" in done.stdout
    assert "ansible-playbook nearmetal.ec2.restore --limit b" in " ".join(done.stdout.split())
    again = run(fleet, **health)
    assert again.returncode == 2, "a run that changes nothing asks too"
    assert tuned(fleet) == "ab"
    (fleet / "sick-b").unlink()
    done = run(fleet, **health, tune_health_on="controller")
    assert done.returncode == 0, done.stdout
    assert tuned(fleet) == "abc"


@pytest.mark.parametrize("where", ["host", "controller"])
def test_a_health_command_that_is_not_there_changes_nothing(fleet: Path, where: str) -> None:
    done = run(fleet, tune_health_command="redsi-cli ping", tune_health_on=where)
    assert done.returncode == 2, done.stdout
    assert f"tune_health_command: the {where} has no program redsi-cli; nothing was changed" in done.stdout
    done = run(fleet, tune_health_command="redis-cli 'ping", tune_health_on=where)
    assert "tune_health_command: no closing quotation in redis-cli 'ping; nothing was changed" in done.stdout
    assert tuned(fleet) == ""


def test_another_strategy_in_ansible_cfg_stops_the_fleet_too(fleet: Path) -> None:
    done = run(fleet, strategy="free", tune_health_command="false", tune_health_timeout=1)
    assert done.returncode == 2, done.stdout
    assert tuned(fleet) == "a"


def test_variables_of_a_host_win_over_the_playbook_of_a_workload(fleet: Path) -> None:
    hosts = json.loads((fleet / "hosts.json").read_text())
    hosts["all"]["hosts"]["b"]["tune_concerns"] = {"network_stack": {"somaxconn": 16384}}
    (fleet / "hosts.json").write_text(json.dumps(hosts))
    done = run(fleet, "--limit", "b", playbook="web")
    assert done.returncode == 0, done.stdout
    somaxconn, ports = (fleet / "b/root/proc/sys/net" / name for name in ("core/somaxconn", "ipv4/ip_local_port_range"))
    assert somaxconn.read_text().strip() == "16384"
    assert ports.read_text().split() == ["10240", "65535"], "the rest of the concern is the playbook's"


def test_a_health_command_that_hangs_stops_the_fleet(fleet: Path, silent: Path) -> None:
    done = run(fleet, tune_health_command=f"cat {silent}", tune_health_timeout=1)
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


def test_an_unreachable_host_stops_the_fleet(fleet: Path) -> None:
    hosts = json.loads((fleet / "hosts.json").read_text())
    hosts["all"]["hosts"]["b"] = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}
    (fleet / "hosts.json").write_text(json.dumps(hosts))
    done = run(fleet)
    assert done.returncode == 4, done.stdout
    assert tuned(fleet) == "a"
    limited = run(fleet, "--limit", "a,c")
    assert limited.returncode == 0, limited.stdout
    assert tuned(fleet) == "ac"
    back = run(fleet, playbook="restore")
    assert back.returncode == 4, back.stdout
    assert tuned(fleet) == "", "the way back goes on past it"


MTU = {"tune_concerns": {"network_stack": {"mtu": 1500, "allow_disruptive": True}}}
ARMED = "root/var/lib/nearmetal/dead-man.json"


def test_a_network_change_stays_though_another_host_of_the_batch_fails(fleet: Path) -> None:
    python = fleet / "c/python"
    alive = python.rename(fleet / "c/alive")
    python.write_text(DIES.format(python=alive))
    python.chmod(0o755)
    done = run(fleet, "-v", tune_serial=3, **MTU)
    assert done.returncode == 2, done.stdout
    assert (fleet / "b/root/sys/class/net/ens5/mtu").read_text() == "1500\n"
    assert '"confirm_within": 120' in done.stdout, "its timer was armed"
    assert not (fleet / "b" / ARMED).exists(), "it was reached again"
    assert (fleet / "c" / ARMED).exists(), "the one that died was not"


def test_a_network_change_that_was_taken_back_meanwhile_stops_the_fleet(fleet: Path) -> None:
    python = fleet / "a/python"
    alive = python.rename(fleet / "a/alive")
    # Ansible's second module on a host is the confirmation: by then the record is gone, as when the timer had fired.
    python.write_text(f'#!/bin/sh\n[ ! -e {fleet}/a/{ARMED} ] || rm {fleet}/a/{ARMED}\nexec "{alive}" "$@"\n')
    python.chmod(0o755)
    done = run(fleet, **MTU)
    assert done.returncode == 2, done.stdout
    assert "could not be confirmed: too late" in done.stdout
    assert not (fleet / "b/root/var/lib/nearmetal").exists()


def test_an_audit_does_not_wait_for_ever_for_a_host_that_hangs(fleet: Path, silent: Path) -> None:
    python = fleet / "b/python"
    python.write_text(f"#!/bin/sh\nread answer < {silent}\n")
    done = run(fleet, playbook="audit", audit_timeout=20)
    assert done.returncode == 2, done.stdout
    assert "Timed out after 20 second" in done.stdout
    report = json.loads((fleet / "nearmetal-report/report.json").read_text())
    states = {host["name"]: host["state"] for host in report["hosts"]}
    assert (states.pop("b"), set(states)) == ("failed", {"a", "c"})
    assert "failed" not in states.values()
