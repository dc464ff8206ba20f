# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counters of a host that has been up for a day, with room in every queue, and its time service."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

SNMP = (
    "Ip: Forwarding DefaultTTL InReceives\nIp: 2 64 900000\n"
    "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens\nTcp: 1 200 120000 -1 300 20000\n"
)
NETSTAT = (
    "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 0 0\n"
    "IpExt: InNoRoutes InOctets\nIpExt: 0 123456789\n"
)
SERVICES = "/sys/fs/cgroup/system.slice"


def counter_files(nodes: int, nics: List[Dict[str, Any]]) -> Iterator[Tuple[str, str]]:
    """Path → text."""
    yield "/proc/uptime", "86400.25 170000.50\n"
    yield "/proc/net/softnet_stat", "000186a0 00000000 00000002 00000000 00000000 00000000 00000000 00000000 00000000\n"
    yield "/proc/net/dev", network_devices({"lo": 5000, **{nic["name"]: 1000000 for nic in nics}})
    yield "/proc/net/snmp", SNMP
    yield "/proc/net/netstat", NETSTAT
    yield "/proc/sys/fs/file-nr", "1600\t0\t9223372036854775807\n"
    yield "/proc/vmstat", "nr_free_pages 1500000\npswpin 0\npswpout 0\ncompact_stall 3\ncompact_fail 1\n"
    yield "/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    for node in range(nodes):
        yield f"/sys/devices/system/node/node{node}/numastat", "numa_hit 900000\nnuma_miss 0\n"
    yield f"{SERVICES}/chronyd.service/cgroup.procs", "640\n"
    yield "/etc/chrony.conf", "# The service of Amazon\nserver 169.254.169.123 prefer iburst minpoll 4 maxpoll 4\n"


def network_devices(received: Dict[str, int]) -> str:
    """/proc/net/dev with so many received packets."""
    head = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
    )
    rows = (
        f"{name:>6}: {packets * 800} {packets}    0    0    0     0 0 0 9 9\n" for name, packets in received.items()
    )
    return head + "".join(rows)
