# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The TCP ports on which something listens. PRIVATE to the collection."""

from __future__ import annotations

from typing import Tuple

from .._parse import cpulist, listening
from .host import Host

# Listening sockets come before all connections: this has room for some 1,700.
_TABLE = 256 * 1024
# Ports as a kernel list such as 8080,30000-32767, for planners, which import no parser.
listed, shown_ports = cpulist.parse, cpulist.render


def observe(host: Host) -> Tuple[int, ...]:
    """The ports, in the network namespace of this process."""
    texts = [host.text(f"/proc/net/{name}", _TABLE) or "" for name in ("tcp", "tcp6")]
    return tuple(sorted({port for text in texts for port in listening.parse(text).values()}))
