# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel parameters that options of three concerns set, each declared once. PRIVATE to the collection.

They are below facts and levers, which read and write only declared keys.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Tuple

EVERY = ("",)
RESERVED_PORTS = "net.ipv4.ip_local_reserved_ports"


class Parameter(NamedTuple):
    """What one option sets in /proc/sys."""

    option: str
    key: str
    reason: str  # what it does, in words
    reference: str
    takes_effect: str  # one of EFFECTS in _planning/knob.py
    spec: Mapping[str, Any]  # of the option: ascending numbers within a `range`, a choice, or a name
    bound: str = ""  # least, most or widest: a workload's value is a bound, not exact
    by_unit: Tuple[str, ...] = ()  # values that fit this host alone, which the unit sets at boot; or EVERY
    sized: bool = False  # the kernel computes it from the host's memory at each boot


def _number(least: int, most: int = 2147483647) -> Mapping[str, Any]:
    return {"type": "int", "range": (least, most)}


_NAME = {"type": "str"}
_WINDOW = {"type": "str", "numbers": 3, "range": (1, 2147483647)}
# The kernel rounds up to whole pages of 8-byte pointers: 512 of them, or 8192 on a kernel with pages of 64 KiB.
_BUCKETS = {"type": "int", "range": (8192, 1 << 28), "step": 8192}
_NEIGHBORS = "Linux kernel, ip-sysctl"
_TABLE = (
    ("neighbor_gc_thresh1", "gc_thresh1", "the number of neighbors up to which the kernel forgets none"),
    ("neighbor_gc_thresh2", "gc_thresh2", "the number of neighbors from which on old ones are forgotten after 5 s"),
    ("neighbor_gc_thresh3", "gc_thresh3", "how many neighbors the kernel knows at most"),
)
_SOCKETS = "Netflix, 2017; Linux kernel, sysctl/net"
_POLL = (
    "how many microseconds poll() and read() of all sockets poll: less latency for more CPU time; what polls queue by"
    " queue since Linux 6.13 is left to programs"
)
_POLL_SOURCE = "ENA driver guide; tuned, network-latency"

MEMORY = (
    Parameter(
        "swappiness",
        "vm.swappiness",
        "how readily memory of programs goes to swap so that file cache can stay",
        "Linux kernel, sysctl/vm",
        "at_once",
        _number(0, 200),  # 100 at most before Linux 5.8
        "most",
    ),
    Parameter(
        "overcommit",
        "vm.overcommit_memory",
        "whether the kernel promises programs more memory than there is",
        "Linux kernel, overcommit-accounting",
        "limit",
        {"type": "str", "choices": ["heuristic", "always", "never"]},
        by_unit=("never",),
    ),
    Parameter(
        "aio_max_nr",
        "fs.aio-max-nr",
        "how many asynchronous requests to disks all programs together may prepare",
        "Linux kernel, sysctl/fs",
        "limit",
        _number(1),
        "least",
    ),
    Parameter(
        "max_map_count",
        "vm.max_map_count",
        "how many areas of memory one process may map",
        "Linux kernel, sysctl/vm",
        "limit",
        _number(65530),  # the kernel's own number (DEFAULT_MAX_MAP_COUNT): with a few, no program starts
        "least",
    ),
    Parameter(
        "vfs_cache_pressure",
        "vm.vfs_cache_pressure",
        "how readily the kernel forgets names and inodes of files, compared with file cache; 100 is even",
        "Linux kernel, sysctl/vm",
        "slowly",
        _number(1, 10000),
    ),
    Parameter(
        "min_free_kbytes",
        "vm.min_free_kbytes",
        "memory that the kernel keeps free, for example for arriving packets",
        "ENA driver guide",
        "at_once",
        _number(1024),
        "least",
        by_unit=EVERY,  # the same disk may start as a type with less memory
        sized=True,
    ),
)

CPU_POWER = (
    Parameter(
        "nmi_watchdog",
        "kernel.nmi_watchdog",
        "whether an interrupt looks at each CPU for a kernel that hangs",
        "tuned, network-latency",
        "at_once",
        {"type": "str", "choices": ["disabled", "enabled"]},
    ),
    Parameter(
        "timer_migration",
        "kernel.timer_migration",
        "whether timers of an idle CPU go to a busy one, so that the idle one sleeps on",
        "tuned, network-latency",
        "at_once",
        {"type": "str", "choices": ["disabled", "enabled"]},
    ),
    Parameter(
        "stat_interval",
        "vm.stat_interval",
        "how many seconds pass until each CPU adds up its counters of memory again",
        "tuned, network-latency; Linux kernel, sysctl/vm",
        "at_once",
        _number(1, 3600),
        "least",
    ),
)

NETWORK_STACK = (
    Parameter(
        "somaxconn",
        "net.core.somaxconn",
        "how many connections may wait to be accepted",
        _SOCKETS,
        "listen",
        _number(1),
        "least",
    ),
    Parameter(
        "max_syn_backlog",
        "net.ipv4.tcp_max_syn_backlog",
        "how many connections may be half open",
        "SAP note 2382421; Netflix, 2017; Linux kernel, ip-sysctl",
        "limit",
        _number(1),
        "least",
        sized=True,
    ),
    Parameter(
        "netdev_max_backlog",
        "net.core.netdev_max_backlog",
        "how many packets may wait for a CPU when RPS is on",
        _SOCKETS,
        "limit",
        _number(1),
        "least",
    ),
    Parameter(
        "netdev_budget",
        "net.core.netdev_budget",
        "packets per round of NAPI",
        "Linux kernel, sysctl/net",
        "limit",
        _number(1, 10000),
        "least",
    ),
    Parameter(
        "rmem_max",
        "net.core.rmem_max",
        "the largest receive buffer that a program may ask for",
        _SOCKETS,
        "listen",
        _number(2304),
        "least",
    ),
    Parameter(
        "wmem_max",
        "net.core.wmem_max",
        "the largest send buffer that a program may ask for",
        _SOCKETS,
        "listen",
        _number(4608),
        "least",
    ),
    Parameter(
        "tcp_rmem",
        "net.ipv4.tcp_rmem",
        "the receive buffer: least, initial and most bytes",
        _SOCKETS,
        "listen",
        _WINDOW,
        "least",
        sized=True,
    ),
    Parameter(
        "tcp_wmem",
        "net.ipv4.tcp_wmem",
        "the send buffer: least, initial and most bytes",
        _SOCKETS,
        "listen",
        _WINDOW,
        "least",
        sized=True,
    ),
    Parameter(
        "tcp_mem",
        "net.ipv4.tcp_mem",
        "pages that all TCP connections together may have: no pressure, pressure, and at most",
        "Linux kernel, ip-sysctl; perftune",
        "limit",
        _WINDOW,
        "least",
        by_unit=EVERY,
        sized=True,
    ),
    Parameter(
        "syn_retries",
        "net.ipv4.tcp_syn_retries",
        "how often a connection that nobody answers is tried again: 6 take 127 s, 3 take 15 s",
        "Linux kernel, ip-sysctl; amazon-ec2-net-utils",
        "limit",
        _number(1, 127),
    ),
    Parameter(
        "tcp_retries",
        "net.ipv4.tcp_retries2",
        "how often data that nobody acknowledges is sent again: 15 times take 924 s and more, 5 take 13 s",
        "Linux kernel, ip-sysctl",
        "limit",
        _number(1, 255),
        "most",
    ),
    Parameter(
        "conntrack_max",
        "net.netfilter.nf_conntrack_max",
        "how many connections a firewall or NAT on this host remembers",
        "Linux kernel, nf_conntrack-sysctl",
        "limit",
        _number(1),
        "least",
        by_unit=EVERY,  # a firewall loads its module after systemd-sysctl
        sized=True,
    ),
    Parameter(
        "conntrack_buckets",
        "net.netfilter.nf_conntrack_buckets",
        "over how many lists these connections are spread: in a short list a connection is found faster",
        "Linux kernel, nf_conntrack-sysctl",
        "at_once",
        _BUCKETS,
        "least",
        by_unit=EVERY,
        sized=True,
    ),
    *(
        Parameter(option, f"net.{family}.neigh.default.{name}", reason, _NEIGHBORS, "limit", _number(1), "least")
        for option, name, reason in _TABLE
        for family in ("ipv4", "ipv6")
    ),
    Parameter(
        "slow_start_after_idle",
        "net.ipv4.tcp_slow_start_after_idle",
        "whether a connection forgets its congestion window when idle",
        "Netflix, 2017; SAP note 2382421",
        "at_once",
        {"type": "str", "choices": ["disabled", "enabled"]},
    ),
    Parameter(
        "mtu_probing",
        "net.ipv4.tcp_mtu_probing",
        "finds the path's MTU where ICMP is dropped",
        "EC2 User Guide, network MTU",
        "new_connections",
        {"type": "str", "choices": ["disabled", "on_black_hole", "enabled"]},
    ),
    Parameter(
        "keepalive_time",
        "net.ipv4.tcp_keepalive_time",
        "how long a connection is idle before it asks whether its peer is there",
        "EC2 API, DescribeInstanceTypes",
        "new_connections",
        _number(1, 32767),
        "most",
    ),
    Parameter(
        "port_range",
        "net.ipv4.ip_local_port_range",
        "the ports for outgoing connections",
        "Netflix, 2017; Linux kernel, ip-sysctl; unmeasured",
        "limit",
        {"type": "str", "numbers": 2, "range": (1024, 65535)},
        "widest",
    ),
    Parameter(
        "reserved_ports",
        RESERVED_PORTS,
        "ports that no outgoing connection gets, so that the service that listens there can start again",
        "Linux kernel, ip-sysctl",
        "new_connections",
        {"type": "str", "ports": True},
    ),
    Parameter("busy_poll", "net.core.busy_poll", _POLL, _POLL_SOURCE, "at_once", _number(0, 1000), "least"),
    Parameter("busy_poll", "net.core.busy_read", _POLL, _POLL_SOURCE, "listen", _number(0, 1000), "least"),
    Parameter(
        "qdisc",
        "net.core.default_qdisc",
        "the queueing discipline of interfaces that come up",
        "Linux kernel, sysctl/net; unmeasured",
        "interface_up",
        _NAME,
    ),
    Parameter(
        "congestion_control",
        "net.ipv4.tcp_congestion_control",
        "how a connection finds its speed; opt-in",
        "Linux kernel, ip-sysctl; unmeasured",
        "new_connections",
        _NAME,
    ),
)
