# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose unit has a hundredth of a core: its boot doesn't wait, and it is tuned some time later.

With a twentieth of a core the plan is done within systemd's start timeout, and would show nothing. It has a hundredth
for longer than that timeout, and then a whole core, to save minutes. systemd's own clock shows the order of events,
its log how often the unit ran. The tests follow each other on one host.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance, planned
from tests.support.lab import ansible

CURRENT = "cat /sys/devices/system/clocksource/clocksource0/current_clocksource"
STATE = "systemctl show -p ActiveState --value nearmetal.service"
SLOW = "systemctl set-property nearmetal.service CPUQuota=1%"
FAST = "systemctl set-property nearmetal.service CPUQuota="
# systemd's DefaultTimeoutStartSec, and some more.
LONGER_THAN_A_START = 100e6
# Every NIC, queue and disk of the host, announced again as if it were new.
EVENTS = "udevadm trigger --action=add --subsystem-match=net --subsystem-match=queues --subsystem-match=block"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Tuned at full speed; slow from its next boot on."""
    folder = tmp_path_factory.mktemp("slow")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NEARMETAL_LAB_INSTANCES", str(folder / "instances"))
        with instance.running("burstable", "slow") as running:
            play(running, folder, "tune", tune_concerns={"clocksource": {"source": "auto"}, "network_irq": {}})
            planned.wait(running)
            running.run(SLOW)
            yield running


def play(host: Host, folder: Path, playbook: str, **variables: object) -> None:
    done = ansible.run(ansible.playbook(playbook, ansible.inventory_of(folder, host), variables), folder)
    assert done.returncode == 0, done.stdout


def moment(host: Host, name: str, unit: str = "") -> int:
    """The time of an event of this boot in microseconds, from systemd; 0 if it hasn't happened yet."""
    return int(host.run(f"systemctl show -p {name}TimestampMonotonic --value {unit}"))


def planning_for(host: Host) -> float:
    """For how many microseconds of the host's clock the unit has run."""
    return float(host.run("cut -d ' ' -f 1 /proc/uptime")) * 1e6 - moment(host, "ExecMainStart", "nearmetal.service")


def log(host: Host) -> str:
    return host.run("journalctl -b --no-pager -o short-monotonic -u nearmetal.service -u nearmetal.timer")


def test_the_boot_is_over_while_the_unit_still_plans_and_triggers_make_no_second_run(host: Host) -> None:
    host.reboot()  # it is `running`, or this fails
    assert host.run(STATE).strip() == "active", log(host)
    assert host.run(CURRENT).strip() == "hpet", "the kernel's own choice"
    host.run(f"{EVENTS}; udevadm settle; systemctl start nearmetal.service nearmetal.timer")
    assert host.run("systemctl list-jobs --no-legend").strip() in ("", "No jobs running."), "nothing is piled up"
    assert host.wait(lambda: planning_for(host) > LONGER_THAN_A_START, 600.0, 5.0), log(host)
    assert host.run(STATE).strip() == "active", log(host)
    host.run(FAST)
    assert planned.wait(host) == "inactive", log(host)
    assert log(host).count("Started nearmetal.service") == 1, log(host)
    assert host.run(CURRENT).strip() == "tsc"
    finished, ended = moment(host, "Finish"), moment(host, "ExecMainExit", "nearmetal.service")
    assert 0 < finished < ended, log(host)
    print(f"running after {finished / 1e6:.0f} s, tuned after {ended / 1e6:.0f} s\n{log(host)}")
    assert host.run("systemctl is-system-running").strip() == "running"


def test_a_stop_during_a_change_leaves_a_complete_concern(host: Host) -> None:
    host.run(f"echo hpet > /sys/devices/system/clocksource/clocksource0/current_clocksource; {SLOW}")
    host.run("systemctl stop nearmetal.timer; rm /run/nearmetal/fingerprint; systemctl start nearmetal.service")
    assert host.run(STATE).strip() == "active"
    host.run("systemctl stop nearmetal.service")
    assert host.run(f"{STATE}; systemctl show -p Result --value nearmetal.service").split() == ["inactive", "success"]
    host.run(f"{FAST}; systemctl start nearmetal.service nearmetal.timer")
    planned.wait(host)
    assert host.run(CURRENT).strip() == "tsc", log(host)
    assert "Everything is as wanted" in host.run("nearmetal status")


def test_restore_waits_for_it_and_takes_everything_back(host: Host, tmp_path: Path) -> None:
    host.run("rm /run/nearmetal/fingerprint; systemctl start nearmetal.service")
    play(host, tmp_path, "restore")
    assert host.run(CURRENT).strip() == "hpet"
    assert host.run("ls -d /var/lib/nearmetal /usr/local/lib/nearmetal 2>/dev/null; true") == ""
    assert host.run("systemctl is-failed nearmetal.service; true").strip() == "inactive"
