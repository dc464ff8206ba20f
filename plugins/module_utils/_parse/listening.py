# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listening sockets, by their inode: /proc/net/tcp and tcp6. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Optional, Tuple

# Local address and port, state 0A (TCP_LISTEN) and inode of a line (get_tcp4_sock() in net/ipv4/tcp_ipv4.c).
_LISTENS = re.compile(
    r"\s*[0-9]{1,10}: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F:]{1,40} 0A \S{1,20} \S{1,20} \S{1,10}"
    r" {1,12}[0-9]{1,12} {1,12}[0-9]{1,12} ([0-9]{1,20})(?: .*)?",
    re.ASCII,
)
_SOCKET = re.compile(r"socket:\[([0-9]{1,20})\]", re.ASCII)


def parse(text: str) -> Dict[str, int]:
    """Inode → port of the listening sockets; all other lines are left out."""
    return {inode_of: port for inode_of, (_address, port) in places(text).items()}


def places(text: str) -> Dict[str, Tuple[str, int]]:
    """Inode → address, as the kernel writes it, and port of the listening sockets."""
    matches = (_LISTENS.fullmatch(line) for line in text.split("\n"))
    return {match[3]: (match[1], int(match[2], 16)) for match in matches if match is not None}


def inode(link: Optional[str]) -> Optional[str]:
    """The inode of the socket that a descriptor's link names; None for another file."""
    match = _SOCKET.fullmatch(link or "")
    return match[1] if match is not None else None


def render(listening: Dict[str, int]) -> str:
    """A table with these ports and inodes, and zeros in all other fields."""
    return "".join(
        f"{number}: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {key}\n"
        for number, (key, port) in enumerate(listening.items())
    )
