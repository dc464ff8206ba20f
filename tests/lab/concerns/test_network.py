# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs are added, removed, changed and renamed on a real kernel, and the unit keeps interrupts placed and routes set.

ethtool says how many queues there are, /proc/irq where each interrupt may go. Answers are seen by a peer in a network
namespace of this machine, to which each NIC has a cable of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance, planned
from tests.support.kernel.peer import namespace
from tests.support.lab.ansible import module
from tests.support.lab.cables import (
    ADDRESS_SECONDS,
    FIRST,
    NICS,
    PLUGGED,
    ROUTER,
    ROUTING,
    answers,
    by_the_first,
    by_their_own,
    far_peer,
    plug,
    state,
    unplug,
    wire,
)

OPTIONS = {"policy": "spread", "rps": "auto", "xps": "auto"}
# Interrupt name and the CPUs it may go to, a line each.
_PINS = (
    'awk \'/-(input|output)[.]/ {sub(":", "", $1); print $1, $NF}\' /proc/interrupts |'
    ' while read number name; do echo "$name $(cat /proc/irq/$number/smp_affinity_list)"; done'
)
_FAST_TIMER = "[Timer]\nOnUnitInactiveSec=\nOnUnitInactiveSec=5\nAccuracySec=1\n"
PATIENCE = 120.0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("network", "network") as running:
        yield running


def queues(host: Host, name: str) -> int:
    """How many queue pairs ethtool says are in use."""
    return int(host.run(f"ethtool -l {name} | awk '/^Current/ {{now=1}} now && /^Combined/ {{print $2}}'"))


def pins(host: Host, name: str) -> list[str]:
    """Where the receive interrupt of each queue in use may go, by queue; the transmit interrupts must go there too."""
    device = host.run(f"basename $(readlink /sys/class/net/{name}/device)").strip()
    table = dict(line.split() for line in host.run(_PINS).splitlines())
    found = range(queues(host, name))
    both = [(table[f"{device}-input.{queue}"], table[f"{device}-output.{queue}"]) for queue in found]
    return [receive if receive == transmit else f"{receive}/{transmit}" for receive, transmit in both]


def spread(host: Host, name: str, number: int) -> Callable[[], bool]:
    """Whether each of so many queues has one CPU of its own."""

    def look() -> bool:
        present = host.run(f"test -e /sys/class/net/{name} && echo yes; true").strip()
        if not present or queues(host, name) != number:
            return False
        now = pins(host, name)
        return all(cpu.isdigit() for cpu in now) and len(set(now)) == number

    return look


def wait(host: Host, description: str, look: Callable[[], bool], seconds: float = PATIENCE) -> None:
    reached = host.wait(look, seconds, 1.0)
    assert reached, (
        f"{description}: never planned again\n{host.run(_PINS)}\n{host.run('journalctl -b -u nearmetal | tail -50')}"
    )


def test_the_unit_plans_again_for_whatever_happens_to_a_nic(host: Host, tmp_path: Path) -> None:
    host.run("ip link set ens6 up; ip link set ens7 up")
    module("network_irq", host, tmp_path, {**OPTIONS})
    assert spread(host, "ens6", 4)()
    assert spread(host, "ens7", 2)()

    host.run("ethtool -L ens6 combined 2")
    wait(host, "fewer queues", spread(host, "ens6", 2))
    host.run("ethtool -L ens6 combined 4")
    wait(host, "more queues", spread(host, "ens6", 4))

    # A renamed interface: its interrupts are spoilt first, so that only a new plan can have placed them.
    device = host.run("basename $(readlink /sys/class/net/ens7/device)").strip()
    numbers = f"$(awk '/{device}-[io]/ {{print $1+0}}' /proc/interrupts)"
    host.run(f"for n in {numbers}; do echo 0-7 > /proc/irq/$n/smp_affinity_list; done")
    assert not spread(host, "ens7", 2)()
    host.run("ip link set ens7 down; ip link set ens7 name data0; ip link set data0 up")
    wait(host, "rename", spread(host, "data0", 2))

    host.run(f"cd /sys/bus/virtio/drivers/virtio_net; echo {device} > unbind; echo {device} > bind")
    name = host.run(f"udevadm settle; ls /sys/bus/virtio/devices/{device}/net").strip()
    host.run(f"ip link set {name} up; ethtool -L {name} combined 2")
    wait(host, "another driver's life", spread(host, name, 2))

    with host.monitor() as monitor:
        monitor.human("netdev_add tap,id=plugged,queues=4,script=no,downscript=no,vhost=off")
        monitor.human("device_add virtio-net-pci,id=plugged,netdev=plugged,mq=on,vectors=10,addr=0x0a")
    wait(host, "the new NIC", lambda: "ens10" in host.run("ls /sys/class/net"))
    host.run("ip link set ens10 up; ethtool -L ens10 combined 4")
    wait(host, "hot-plug", spread(host, "ens10", 4))
    assert spread(host, "ens6", 4)(), "the NICs of before stay as they are"

    # A change without any event, as a reset of ENA is: only the timer can find it.
    host.put(_FAST_TIMER.encode(), "/run/fast.conf")
    folder = "/run/systemd/system/nearmetal.timer.d"
    host.run(
        f"mkdir -p {folder}; mv /run/fast.conf {folder}/; systemctl daemon-reload; systemctl restart nearmetal.timer"
    )
    host.run("udevadm settle; udevadm control --stop-exec-queue; ethtool -L ens6 combined 3")
    wait(host, "the timer", spread(host, "ens6", 3))
    host.run("udevadm control --start-exec-queue")

    module("restore", host, tmp_path, {})
    assert not spread(host, "ens6", 3)(), host.run(_PINS)
    assert host.run("ls -d /var/lib/nearmetal /etc/systemd/system/nearmetal* 2>/dev/null; true") == ""


INTERFACES = "auto lo\niface lo inet loopback\nallow-hotplug ens5\niface ens5 inet dhcp\n    metric 1024\n"


def configured(number: int) -> str:
    """A NIC's lines of the file that Debian configures interfaces by, also those that are plugged in later."""
    router = f"    gateway {ROUTER}\n" if number == FIRST else ""
    return f"allow-hotplug ens{number}\niface ens{number} inet static\n    address 10.0.0.{number}/24\n{router}"


def test_answers_leave_by_the_nic_that_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("burstable", "routes") as host, namespace() as peer:
        far_peer(peer)
        host.put((INTERFACES + "".join(map(configured, (*NICS, PLUGGED)))).encode(), "/etc/network/interfaces")
        for number in NICS:
            plug(host, number)
        host.reboot()
        wire(host, peer, *NICS)
        before = state(host)
        assert answers(peer, *NICS) == by_the_first(*NICS), before

        module("network_routes", host, tmp_path, {"own_routes": "enabled"})
        assert answers(peer, *NICS) == by_their_own(*NICS), host.run(ROUTING)

        host.reboot()
        assert planned.wait(host) == "inactive"
        wire(host, peer, *NICS)
        assert answers(peer, *NICS) == by_their_own(*NICS), host.run(ROUTING)

        plug(host, PLUGGED)
        wire(host, peer, PLUGGED)
        wait(host, "the new NIC's rule", lambda: f"from 10.0.0.{PLUGGED} " in host.run("ip rule"), ADDRESS_SECONDS)
        assert answers(peer, *NICS, PLUGGED) == by_their_own(*NICS, PLUGGED), host.run(ROUTING)

        unplug(host, PLUGGED)
        wait(
            host,
            "the removed NIC's rule",
            lambda: f"from 10.0.0.{PLUGGED} " not in host.run("ip rule"),
            ADDRESS_SECONDS,
        )
        assert answers(peer, *NICS) == by_their_own(*NICS), host.run(ROUTING)

        module("restore", host, tmp_path, {})
        after = state(host)
        assert after == before, set(after) ^ set(before)
        assert answers(peer, *NICS) == by_the_first(*NICS)
