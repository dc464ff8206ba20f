# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a network interface is up, by one read. PRIVATE to the collection."""

from __future__ import annotations

from .host import Host

NET = "/sys/class/net"


def is_up(host: Host, name: str) -> bool:
    """Whether somebody brought the interface up."""
    # IFF_UP is the lowest bit.
    return not (host.line(f"{NET}/{name}/flags") or "0x1").endswith(tuple("02468ace"))
