# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The TCP ports on which something listens, and the listening sockets of a process. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, Iterable, Optional, Tuple

from .._number import is_number
from .._parse import cpulist, listening
from .host import Host

# Listening sockets come before all connections (tcp_get_idx() in net/ipv4/tcp_ipv4.c): this has room for some 1,700.
_TABLE = 256 * 1024
_FIRST_DESCRIPTORS = 256  # a server listens before it takes connections
# Ports as a kernel list such as 8080,30000-32767, for planners, which import no parser.
listed, shown_ports = cpulist.parse, cpulist.render

Place = Tuple[str, int]  # an address as the kernel writes it, and a port
Sockets = Dict[str, Place]  # by inode


def observe(host: Host) -> Tuple[int, ...]:
    """The ports, in the network namespace of this process."""
    return tuple(sorted({port for _address, port in _sockets(host, "/proc/net").values()}))


def of_process(host: Host, pid: int, names: Iterable[str], tables: Dict[Optional[str], Sockets]) -> Sockets:
    """The sockets at which a process listens.

    `names` are those of its descriptors; `tables`: network namespace → its listening sockets, filled as needed.
    """
    space = host.link(f"/proc/{pid}/ns/net")
    if space not in tables:
        tables[space] = _sockets(host, f"/proc/{pid}/net")
    first = sorted(filter(is_number, names), key=int)[:_FIRST_DESCRIPTORS]
    inodes = (listening.inode(host.link(f"/proc/{pid}/fd/{name}")) or "" for name in first)
    return {inode: tables[space][inode] for inode in inodes if inode in tables[space]}


def _sockets(host: Host, folder: str) -> Sockets:
    texts = (host.text(f"{folder}/{name}", _TABLE) or "" for name in ("tcp", "tcp6"))
    return {inode: place for text in texts for inode, place in listening.places(text).items()}
