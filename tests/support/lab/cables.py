# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs of a lab host in one subnet, each with a cable of its own to a peer in a network namespace of this machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from lab.host import Host
from tests.support.kernel.peer import asked, of_peer

# The first one has the default route. Its router has the same address behind each NIC, as in a VPC.
NICS = {number: f"10.0.0.{number}" for number in (6, 7, 8)}
FIRST = min(NICS)
PLUGGED = 9
# An address that a NIC gets after the unit has planned for it is found by the timer, within two and a half minutes.
ADDRESS_SECONDS = 300.0
ROUTER, NEAR, FAR = "10.0.0.1", "10.0.0.100", "198.51.100.9"
LOOK = Path(__file__).parents[3] / "molecule/shared/look.sh"
ROUTING = "ip -4 rule; ip -6 rule; ip -4 route show table all | sort; ip -6 route show table all | sort"


def plug(host: Host, number: int) -> None:
    """Plug in a NIC that has an end of a cable on this machine."""
    with host.monitor() as monitor:
        monitor.human(f"netdev_add tap,id=cable{number},script=no,downscript=no,vhost=off")
        monitor.human(f"device_add virtio-net-pci,id=nic{number},netdev=cable{number},addr={number:#x}")


def unplug(host: Host, number: int) -> None:
    """Remove a NIC that was plugged in."""
    with host.monitor() as monitor:
        monitor.execute("device_del", id=f"nic{number}")


def wire(host: Host, peer: int, *numbers: int) -> None:
    """Give the peer the other ends of cables, which another QEMU has made after each reset."""
    with host.monitor() as monitor:
        ends = dict(re.findall(r"cable(\d+): index=0,type=tap,ifname=(\w+)", monitor.human("info network")))
    for number in numbers:
        subprocess.run(["ip", "link", "set", ends[str(number)], "netns", str(peer), "name", f"b{number}"], check=True)
        router = f"ip address add {ROUTER}/24 dev b{number}; ip address add {NEAR}/24 dev b{number};"
        route = f"ip route replace 10.0.0.{number} dev b{number}"
        first = router if number == FIRST else ""
        of_peer(peer, "sh", "-euc", f"ip link set b{number} up; {first}{route}")


def far_peer(peer: int) -> None:
    """Give the peer an address outside of the subnet."""
    of_peer(peer, "sh", "-euc", f"ip link set lo up; ip address add {FAR} dev lo")


def answers(peer: int, *numbers: int) -> dict[int, list[str]]:
    """By which interfaces ssh answers to a near and to a far peer, by the number of the NIC that is asked."""
    return {n: [asked(peer, "tcp", place, f"10.0.0.{n}", 22) for place in (NEAR, FAR)] for n in numbers}


def by_the_first(*numbers: int) -> dict[int, list[str]]:
    """All answers leave by the NIC that has the default route."""
    return {number: [f"b{FIRST}"] * 2 for number in numbers}


def by_their_own(*numbers: int) -> dict[int, list[str]]:
    """Each answer leaves by the NIC that was asked."""
    return {number: [f"b{number}"] * 2 for number in numbers}


def state(host: Host) -> list[str]:
    """All rules and routes, but for how long a router's are valid, and a digest of each file of the configuration."""
    host.put(LOOK.read_bytes(), "/root/look.sh")
    text = host.run(f"{ROUTING}; sh /root/look.sh /root/look; cat /root/look/files")
    return re.sub(r" expires \d+sec", "", text).splitlines()
