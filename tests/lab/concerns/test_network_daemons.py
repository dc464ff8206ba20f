# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes of each NIC beside systemd-networkd and beside NetworkManager, which configure the NICs and remove rules.

Answers are seen by a peer in a network namespace of this machine, to which each NIC has a cable of its own.
"""

from __future__ import annotations

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

NETWORKD, MANAGER = "systemd-networkd", "NetworkManager"
_PROFILES = "/etc/NetworkManager/system-connections"
# What removes rules and routes of others, or those of ens7 with its address.
DISTURBANCES = {
    NETWORKD: (
        "networkctl reload",
        "touch /etc/systemd/network/ens7.network; networkctl reload",
        "networkctl reconfigure ens7",
        "networkctl down ens7; networkctl up ens7",
    ),
    MANAGER: (
        "nmcli general reload",
        "nmcli connection reload",
        "nmcli device reapply ens7",
        "nmcli device disconnect ens7; nmcli device connect ens7",
        f"systemctl restart {MANAGER}",
    ),
}
# What gives all NICs their addresses again, with which the kernel removes their routes.
RENEWALS = {NETWORKD: (f"systemctl restart {NETWORKD}",), MANAGER: ()}
DISTURBED = 7
LOOKS = 2  # at the others: a daemon acts after the program that told it to has ended
UPLINK = 5  # carries ssh, and has the address that DHCP gives it
# The unit's timer looks more often than it does for operators, to save the lab's time.
FAST_TIMER = "[Timer]\nOnUnitInactiveSec=\nOnActiveSec=5\nOnUnitInactiveSec=10\nAccuracySec=1\n"
DROP_IN = "/run/systemd/system/nearmetal.timer.d"


def metric(number: int) -> int:
    """Of the routes of a NIC; of equal ones the kernel prefers those of the NIC that came up first in this boot."""
    return 100 + number if number != UPLINK else 1024


def of_networkd(number: int) -> str:
    """A file of systemd-networkd for a NIC."""
    dynamic = f"DHCP=ipv4\n[DHCPv4]\nRouteMetric={metric(number)}\n"
    # RouteMetric= of a fixed address is not set by version 252.
    subnet = f"[Route]\nDestination=10.0.0.0/24\nScope=link\nMetric={metric(number)}\n"
    static = f"[Address]\nAddress=10.0.0.{number}/24\nAddPrefixRoute=no\n{subnet}"
    router = f"[Route]\nGateway={ROUTER}\n" if number == FIRST else ""
    own = dynamic if number == UPLINK else static + router
    return f"[Match]\nName=ens{number}\n[Network]\nIPv6AcceptRA=no\n{own}"


def of_manager(number: int) -> str:
    """A file of NetworkManager for a NIC."""
    static = f"method=manual\naddress1=10.0.0.{number}/24\n" + (f"gateway={ROUTER}\n" if number == FIRST else "")
    own = "method=auto\n" if number == UPLINK else static
    head = f"[connection]\nid=ens{number}\ntype=ethernet\ninterface-name=ens{number}\n"
    return f"{head}[ipv4]\n{own}route-metric={metric(number)}\n[ipv6]\nmethod=ignore\n"


def configure(host: Host, daemon: str) -> None:
    """Give all NICs to a daemon, from the next boot on."""
    for number in (UPLINK, *NICS, PLUGGED):
        if daemon == NETWORKD:
            host.put(of_networkd(number).encode(), f"/etc/systemd/network/ens{number}.network")
        else:
            path = f"{_PROFILES}/ens{number}.nmconnection"
            host.put(of_manager(number).encode(), path)
            host.run(f"chmod 600 {path}")
    host.put(b"auto lo\niface lo inet loopback\n", "/etc/network/interfaces")
    # By default sshd refuses some connections while ten others, such as those of the peer, haven't logged in.
    host.put(b"MaxStartups 1000\n", "/etc/ssh/sshd_config.d/peer.conf")
    other = MANAGER if daemon == NETWORKD else NETWORKD
    host.run(
        f"systemctl disable --quiet networking; systemctl mask --quiet {other} {daemon}-wait-online;"
        f" systemctl enable --quiet {daemon}"
    )


def configured(host: Host) -> bool:
    """Whether the daemon has given each NIC its address, and the kernel has checked its own addresses of IPv6."""
    present, tentative = host.run("ip -4 address"), host.run("ip -6 address show tentative")
    return all(f" {address}/" in present for address in NICS.values()) and not tentative


def recorded(host: Host) -> list[str]:
    """The state without what the daemon writes whenever it gets an address."""
    return [line for line in state(host) if not line.endswith("  /etc/resolv.conf")]


def wait(host: Host, text: str, present: bool) -> None:
    """Wait until a rule is there, or has gone."""
    reached = host.wait(lambda: (text in host.run("ip rule")) is present, ADDRESS_SECONDS, 2.0)
    assert reached, f"{text}\n{host.run(ROUTING)}\n{host.run('journalctl -b -u nearmetal | tail -40')}"


def disturbed(host: Host, peer: int, daemon: str) -> None:
    """Whatever the daemon is told: all other NICs keep their routes, and the one that it is about gets them back."""
    host.run(f"mkdir -p {DROP_IN}")
    host.put(FAST_TIMER.encode(), f"{DROP_IN}/fast.conf")
    host.run("systemctl daemon-reload; systemctl restart nearmetal.timer")
    others = [number for number in NICS if number != DISTURBED]
    for disturbance in DISTURBANCES[daemon]:
        host.run(disturbance)
        for _time in range(LOOKS):
            found = answers(peer, *others)
            assert found == by_their_own(*others), f"{disturbance}: {found}\n{host.run(ROUTING)}"
        returned(host, peer, disturbance)
    for renewal in RENEWALS[daemon]:
        host.run(renewal)
        returned(host, peer, renewal)


def returned(host: Host, peer: int, disturbance: str) -> None:
    """Wait until each answer leaves by the NIC that was asked."""
    reached = host.wait(lambda: answers(peer, *NICS) == by_their_own(*NICS), ADDRESS_SECONDS, 2.0)
    assert reached, f"{disturbance}\n{host.run(ROUTING)}\n{host.run('journalctl -b -u nearmetal | tail -40')}"


@pytest.mark.parametrize("daemon", [NETWORKD, MANAGER])
def test_answers_leave_by_the_nic_that_was_asked(daemon: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("network_daemons", "daemons") as host, namespace() as peer:
        far_peer(peer)
        configure(host, daemon)
        for number in NICS:
            plug(host, number)
        host.reboot()
        wire(host, peer, *NICS)
        assert host.wait(lambda: configured(host), ADDRESS_SECONDS, 2.0), host.run("ip address")
        before = recorded(host)
        assert answers(peer, *NICS) == by_the_first(*NICS), before

        module("network_routes", host, tmp_path, {"own_routes": "enabled"})
        assert answers(peer, *NICS) == by_their_own(*NICS), host.run(ROUTING)
        disturbed(host, peer, daemon)

        plug(host, PLUGGED)
        wire(host, peer, PLUGGED)
        wait(host, f"from 10.0.0.{PLUGGED} ", present=True)
        assert answers(peer, *NICS, PLUGGED) == by_their_own(*NICS, PLUGGED), host.run(ROUTING)
        unplug(host, PLUGGED)
        wait(host, f"from 10.0.0.{PLUGGED} ", present=False)

        host.reboot()
        assert planned.wait(host) == "inactive"
        wire(host, peer, *NICS)
        returned(host, peer, "reboot")

        module("restore", host, tmp_path, {})
        after = recorded(host)
        assert after == before, set(after) ^ set(before)
        assert answers(peer, *NICS) == by_the_first(*NICS)
