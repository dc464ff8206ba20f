# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel parameters that options of network_stack set, each declared once. Data only. PRIVATE to the collection.

They are below facts and levers, which read and write only declared keys.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple


class Parameter(NamedTuple):
    """What one option sets in /proc/sys."""

    option: str
    key: str
    reason: str  # what it does, in words
    reference: str
    spec: Mapping[str, Any]  # of the option: ascending numbers within a `range`, a choice, or a name
    bound: str = ""  # least, most or widest: a workload's value is a bound, not exact


def _number(least: int, most: int = 2147483647) -> Mapping[str, Any]:
    return {"type": "int", "range": (least, most)}


_NAME = {"type": "str"}
_WINDOW = {"type": "str", "numbers": 3, "range": (1, 2147483647)}
_SOCKETS = "Netflix, 2014–2017; Linux kernel, sysctl/net"
_POLL = "how many microseconds poll() and read() poll: less latency for more CPU time"
_POLL_SOURCE = "ENA driver guide; tuned, network-latency"

NETWORK_STACK = (
    Parameter(
        "somaxconn", "net.core.somaxconn", "how many connections may wait to be accepted", _SOCKETS, _number(1), "least"
    ),
    Parameter(
        "max_syn_backlog",
        "net.ipv4.tcp_max_syn_backlog",
        "how many connections may be half open",
        "SAP note 2382421; Linux kernel, ip-sysctl",
        _number(1),
        "least",
    ),
    Parameter(
        "netdev_max_backlog",
        "net.core.netdev_max_backlog",
        "how many packets may wait for a CPU when RPS is on",
        _SOCKETS,
        _number(1),
        "least",
    ),
    Parameter(
        "netdev_budget", "net.core.netdev_budget", "packets per round of NAPI", _SOCKETS, _number(1, 10000), "least"
    ),
    Parameter(
        "rmem_max",
        "net.core.rmem_max",
        "the largest receive buffer that a program may ask for",
        _SOCKETS,
        _number(2304),
        "least",
    ),
    Parameter(
        "wmem_max",
        "net.core.wmem_max",
        "the largest send buffer that a program may ask for",
        _SOCKETS,
        _number(4608),
        "least",
    ),
    Parameter(
        "tcp_rmem", "net.ipv4.tcp_rmem", "the receive window: least, initial and most bytes", _SOCKETS, _WINDOW, "least"
    ),
    Parameter(
        "tcp_wmem", "net.ipv4.tcp_wmem", "the send buffer: least, initial and most bytes", _SOCKETS, _WINDOW, "least"
    ),
    Parameter(
        "slow_start_after_idle",
        "net.ipv4.tcp_slow_start_after_idle",
        "whether a connection forgets its window when idle",
        "Netflix, 2014–2017; SAP note 2382421",
        {"type": "str", "choices": ["disabled", "enabled"]},
    ),
    Parameter(
        "mtu_probing",
        "net.ipv4.tcp_mtu_probing",
        "finds the path's MTU where ICMP is dropped",
        "EC2 User Guide, network MTU",
        {"type": "str", "choices": ["disabled", "on_black_hole", "enabled"]},
    ),
    Parameter(
        "keepalive_time",
        "net.ipv4.tcp_keepalive_time",
        "the newest types forget a connection that is idle for 350 s",
        "EC2 API, DescribeInstanceTypes",
        _number(1, 32767),
        "most",
    ),
    Parameter(
        "port_range",
        "net.ipv4.ip_local_port_range",
        "the ports for outgoing connections",
        "Linux kernel, ip-sysctl; unmeasured",
        {"type": "str", "numbers": 2, "range": (1024, 65535)},
        "widest",
    ),
    Parameter("busy_poll", "net.core.busy_poll", _POLL, _POLL_SOURCE, _number(0, 1000), "least"),
    Parameter("busy_poll", "net.core.busy_read", _POLL, _POLL_SOURCE, _number(0, 1000), "least"),
    Parameter(
        "qdisc",
        "net.core.default_qdisc",
        "the queueing discipline of interfaces that come up",
        "Linux kernel, sysctl/net; unmeasured",
        _NAME,
    ),
    Parameter(
        "congestion_control",
        "net.ipv4.tcp_congestion_control",
        "how a connection finds its speed; opt-in",
        "Linux kernel, ip-sysctl; unmeasured",
        _NAME,
    ),
    Parameter(
        "min_free_kbytes",
        "vm.min_free_kbytes",
        "memory that is kept free so that packets find a page",
        "ENA driver guide",
        _number(1024),
        "least",
    ),
)
