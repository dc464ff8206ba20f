# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel parameters of the simulated hosts: those that the collection looks at, with a real kernel's defaults.

Only the names come from the collection, so that a new parameter has its default here before anybody writes it down. A
name that no kernel has is on no host.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Dict

RECORDED = Path(__file__).with_name("sysctls.conf")
# Where these hosts differ from the recorded one: Debian 12 on 8 GiB, two nodes, and a firewall.
OF_THESE_HOSTS = {
    "kernel.numa_balancing": "1",
    "net.core.rmem_max": "212992",
    "net.core.wmem_max": "212992",
    "net.ipv4.ip_local_reserved_ports": "",
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_limit_output_bytes": "1048576",
    "net.ipv4.tcp_max_syn_backlog": "512",
    "net.ipv4.tcp_mem": "94119 125494 188238",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.netfilter.nf_conntrack_buckets": "65536",
}


@lru_cache(maxsize=None)
def defaults() -> Dict[str, str]:
    """Key → text of each parameter that the collection looks at."""
    # Imported by the call: the Python of a simulated host imports this file with any version of the collection.
    from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.sysctl import OBSERVED

    lines = [line for line in RECORDED.read_text().splitlines() if not line.startswith("#")]
    recorded = {**dict(line.split(" = ") for line in lines), **OF_THESE_HOSTS}
    return {key: value for key, value in recorded.items() if key in OBSERVED}


def sysctl_files(*rooms: str) -> Dict[str, str]:
    """Path → text of the parameters below net, vm, fs or kernel; the kernel prints tabs between several numbers."""
    return {
        "/proc/sys/" + key.replace(".", "/"): value.replace(" ", "\t") + "\n"
        for key, value in defaults().items()
        if key.startswith(rooms)
    }
