# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs and disks come and go through QEMU's monitor; the kernel's own files show how the unit reacted.

The tests follow each other on one host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab.host import Host, instance

NAME = "molecule-hotplug"
LENGTH = "cat /sys/class/net/{}/tx_queue_len"
DEVICE = "basename $(readlink /sys/class/net/{}/device)"
# The CPUs that share the packets of its queue, as a mask: CPU 1.
HELPERS = "cat /sys/class/net/{}/queues/rx-0/rps_cpus"
# The settings of a disk once udev has finished.
QUEUE = "udevadm settle && cat /sys/block/{0}/queue/scheduler /sys/block/{0}/queue/read_ahead_kb | xargs"
WANTED = "[mq-deadline] none 512"
# The unit's timer without its two minutes. The empty value clears the earlier ones.
HASTE = "[Timer]\nOnActiveSec=\nOnActiveSec=3\nOnUnitInactiveSec=3\nAccuracySec=1\n"
DROP_IN = "/run/systemd/system/nearmetal.timer.d"
LAST_TRIGGER = "systemctl show -p LastTriggerUSecMonotonic --value nearmetal.timer"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """The host that molecule tuned, which plans only on events until a test starts the timer again."""
    found = instance.find(NAME)
    found.run(f"systemctl stop nearmetal.timer; mkdir -p {DROP_IN}")
    yield found
    found.run(f"rm -r {DROP_IN}; systemctl daemon-reload; systemctl start nearmetal.timer")


def log(host: Host) -> str:
    return host.run("journalctl -b --no-pager -o short-monotonic -u nearmetal | tail -n 40; ip -brief link")


def becomes(host: Host, command: str, expected: str, seconds: float = 300.0) -> None:
    """Wait until a command prints the expected text; a command that fails prints nothing."""
    command = f"{command} 2>/dev/null || true"
    reached = host.wait(lambda: host.run(command).strip() == expected, seconds, 0.5)
    assert reached, f"{command}: {host.run(command)!r}, not {expected!r}\n{log(host)}"


def settled(host: Host) -> None:
    """Wait until udev and the unit have nothing left to do."""
    becomes(host, "udevadm settle && systemctl is-active nearmetal.service", "inactive")


def plug(host: Host) -> None:
    with host.monitor() as monitor:
        monitor.execute("netdev_add", type="user", id="hot", restrict=True)
        monitor.execute("device_add", driver="virtio-net-pci", id="hot0", netdev="hot", addr="0x6")


def attach(host: Host) -> None:
    with host.monitor() as monitor:
        monitor.human("drive_add 0 if=none,id=disk,driver=null-co,size=64M,read-zeroes=on")
        monitor.execute("device_add", driver="virtio-blk-pci", id="disk0", drive="disk", addr="0x7")


def test_before_it_starts_the_host_is_as_wanted(host: Host) -> None:
    assert host.run(LENGTH.format("ens5")).strip() == "2000"
    assert host.run(HELPERS.format("ens5")).strip() == "2"
    assert host.run("ls /sys/class/net").split() == ["ens5", "lo"]
    assert host.run(QUEUE.format("vda")).strip() == WANTED


def test_a_nic_that_is_added_is_tuned_at_once(host: Host) -> None:
    plug(host)
    becomes(host, LENGTH.format("ens6"), "2000")


def test_a_renamed_nic_is_still_tuned(host: Host) -> None:
    settled(host)
    place = host.run(DEVICE.format("ens6")).strip()
    host.run("ip link set ens6 txqueuelen 500 && ip link set ens6 name data0")
    becomes(host, LENGTH.format("data0"), "2000")
    assert host.run(DEVICE.format("data0")).strip() == place


def test_a_driver_that_is_bound_again_starts_with_its_defaults_and_is_tuned_again(host: Host) -> None:
    settled(host)
    place = host.run(DEVICE.format("data0")).strip()
    driver = "/sys/bus/virtio/drivers/virtio_net"
    host.run(f"echo {place} > {driver}/unbind && test ! -e /sys/class/net/data0 && echo {place} > {driver}/bind")
    becomes(host, LENGTH.format("ens6"), "2000")


def test_a_change_without_an_event_is_found_by_the_timer_once_it_is_enabled(host: Host) -> None:
    settled(host)
    host.put(HASTE.encode(), f"{DROP_IN}/haste.conf")
    assert host.run(HELPERS.format("ens6")).strip() == "0", "a NIC that is down is left alone"
    host.run("ip link set ens6 up; install -D /dev/null /etc/nearmetal/disabled")
    host.run("systemctl daemon-reload && systemctl start nearmetal.timer")
    becomes(host, "systemctl show -p ConditionResult --value nearmetal.service", "no")
    skipped = host.run(LAST_TRIGGER)
    assert host.wait(lambda: host.run(LAST_TRIGGER) != skipped, 300.0, 0.5), log(host)
    assert host.run(HELPERS.format("ens6")).strip() == "0", "it was planned although it is switched off"
    host.run("rm -r /etc/nearmetal")
    becomes(host, HELPERS.format("ens6"), "2")
    host.run("systemctl stop nearmetal.timer")


def test_status_reports_the_new_nic(host: Host) -> None:
    settled(host)
    place = host.run(DEVICE.format("ens6")).strip()
    status = json.loads(host.run("nearmetal status --json"))
    assert status["drift"] == []
    knobs = [knob for concern in status["concerns"] for knob in concern["knobs"] if knob["where"] == place]
    assert {knob["status"] for knob in knobs} == {"ok"}
    assert "rps" in {knob["knob"] for knob in knobs}
    assert 2000 in [knob["now"] for knob in knobs]
    assert "Everything is as wanted" in host.run("nearmetal status")


def test_a_removed_nic_is_no_longer_reported(host: Host) -> None:
    place = host.run(DEVICE.format("ens6")).strip()
    with host.monitor() as monitor:
        monitor.execute("device_del", id="hot0")
    becomes(host, "ls /sys/class/net | xargs", "ens5 lo")
    settled(host)
    shown = host.run("nearmetal status")
    assert "Everything is as wanted" in shown
    assert place not in shown
    assert "failed" not in host.run("systemctl show -p Result nearmetal.service")


def test_a_disk_that_is_added_is_tuned_at_once(host: Host) -> None:
    attach(host)
    becomes(host, "cd /sys/block && echo vd*", "vda vdb")
    # The udev rule alone sets this: the unit takes longer.
    assert host.run(QUEUE.format("vdb")).strip() == WANTED


def test_a_disk_that_is_removed_is_forgotten_and_another_one_is_tuned(host: Host) -> None:
    settled(host)
    with host.monitor() as monitor:
        monitor.execute("device_del", id="disk0")
    becomes(host, "cd /sys/block && echo vd*", "vda")
    settled(host)
    assert "Everything is as wanted" in host.run("nearmetal status")
    attach(host)
    becomes(host, QUEUE.format("vdb"), WANTED)
