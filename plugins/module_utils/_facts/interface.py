# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces by their folders in /sys, with few reads. PRIVATE to the collection."""

from __future__ import annotations

from .host import Host

NET = "/sys/class/net"


def devices(host: Host) -> dict[str, str]:
    """Interface → its device, which is its place, of those with hardware behind them."""
    places = ((name, host.target(f"{NET}/{name}/device")) for name in host.names(NET))
    return {name: place for name, place in places if place}


def drivers(host: Host) -> dict[str, str]:
    """Interface → its driver, of those that name one."""
    names = ((name, host.target(f"{NET}/{name}/device/driver")) for name in host.names(NET))
    return {name: driver for name, driver in names if driver}


def is_up(host: Host, name: str) -> bool:
    """Whether somebody brought the interface up."""
    # IFF_UP is the lowest bit.
    return not (host.line(f"{NET}/{name}/flags") or "0x1").endswith(tuple("02468ace"))
