# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network change that really cuts a host off takes itself back.

The host is behind a path that loses every packet while its interface has an MTU of 9000.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance
from tests.support.lab import ansible

MTU = "cat /sys/class/net/ens5/mtu"
FIRED = "systemctl is-active nearmetal-dead-man.timer nearmetal-dead-man.service; true"
# A lost connection is noticed after 15 s.
NOTICED = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=10")
# Every packet to this machine is lost as soon as the interface has the MTU that the path can't carry.
PATH_OF_1500 = """\
ip monitor link | while read -r line; do
  case "$line" in
    *"mtu 9000"*) ip route replace blackhole 10.0.2.2/32 ;;
    *"mtu 1500"*) ip route del blackhole 10.0.2.2/32 ;;
  esac
done
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("burstable", "dead-man") as running:
        yield running


def tune(host: Host, folder: Path, **variables: object) -> "subprocess.CompletedProcess[str]":
    arguments = ansible.playbook("tune", ansible.inventory_of(folder, host), variables)
    lost = {"ANSIBLE_SSH_ARGS": f"{' '.join(NOTICED)} -o ControlMaster=auto -o ControlPersist=60s"}
    return ansible.run(arguments, folder, lost)


def cut_off(host: Host, folder: Path, confirm_within: int) -> None:
    """Ask for jumbo frames on the only interface, which the path can't carry."""
    host.put(PATH_OF_1500.encode(), "/root/path-of-1500")
    host.run("systemd-run --quiet --unit=path-of-1500 sh /root/path-of-1500")
    concerns = {"network_stack": {"mtu": 9000, "allow_disruptive": True}}
    done = tune(host, folder, tune_concerns=concerns, tune_confirm_within=confirm_within)
    assert done.returncode != 0, done.stdout
    assert "UNREACHABLE" in done.stdout.upper(), done.stdout


def test_a_host_that_is_cut_off_comes_back_with_its_old_values(host: Host, tmp_path: Path) -> None:
    begin = time.monotonic()
    cut_off(host, tmp_path, confirm_within=120)
    # The host can't be reached until its own timer fires.
    assert host.wait(lambda: reachable(host), 300.0, 2.0), host.stuck("it stays cut off")
    took = time.monotonic() - begin
    print(f"reachable again {took:.0f} s after tune was started")
    # The first value that is put back makes it reachable; wanted values, timer and log follow.
    assert host.wait(lambda: set(host.run(FIRED).split()) == {"inactive"}, 300.0, 2.0), host.run(FIRED)
    log = host.run("journalctl -b --no-pager -o short-monotonic -u 'nearmetal*'")
    assert host.run(MTU).strip() == "1500", log
    assert "nobody confirmed" in log
    assert took > 100.0, "it came back before its time"
    assert host.run("command -v nearmetal; true"), f"the run that was cut off didn't bring the unit:\n{log}"
    assert "network_stack" not in host.run("nearmetal status"), "it is not wanted any more"
    host.run("nearmetal reapply")
    assert host.run(MTU).strip() == "1500", "the unit must not cut it off again"


def test_a_host_that_is_cut_off_and_reset_comes_back_for_good(host: Host, tmp_path: Path) -> None:
    # A run installs the unit last, so the reset may come before a first run has installed it.
    done = tune(host, tmp_path, tune_concerns={"clocksource": {"source": "auto"}})
    assert done.returncode == 0, done.stdout
    cut_off(host, tmp_path, confirm_within=1200)
    assert not reachable(host)
    with host.monitor() as monitor:
        monitor.execute("system_reset")
    host.reached()
    log = host.run("nearmetal reapply; journalctl -b --no-pager -u 'nearmetal*'")
    assert host.run(MTU).strip() == "1500", log
    assert "nobody confirmed its network change before the reboot" in log


def reachable(host: Host) -> bool:
    """Whether a new connection gets a shell."""
    ssh, *rest = host.ssh()
    return subprocess.run([ssh, *NOTICED, *rest, "true"], capture_output=True, check=False).returncode == 0
