# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides which values a kernel starts with: its release, and the size of the machine. PRIVATE."""

from __future__ import annotations

from .._parse import kernel_counters
from .host import Host
from .topology import CPU, NODE

# Two boots of one machine differ by less, two sizes of an instance family by more.
_TOLERANCE = 0.05


def observe(host: Host) -> str:
    """The kernel's release, CPUs, NUMA nodes and bytes of memory: `6.1.0-31-cloud-amd64 0-7 0-1 16164564992`.

    Empty where one of the first two can't be read.
    """
    release, cpus = (host.line(path) or "" for path in ("/proc/sys/kernel/osrelease", f"{CPU}/present"))
    memory = kernel_counters.parse_meminfo(host.text("/proc/meminfo") or "").get("MemTotal", 0)
    nodes = host.line(f"{NODE}/online") or "0"
    return f"{release} {cpus} {nodes} {memory}" if release and cpus else ""


def alike(machine: str, other: str) -> bool:
    """Whether a kernel starts with the same values on both: the same release, and the same size."""
    (*kind, memory), (*other_kind, other_memory) = machine.split(" "), other.split(" ")
    if not kind or kind != other_kind or not (memory.isdigit() and other_memory.isdigit()):
        return False
    return abs(int(memory) - int(other_memory)) <= _TOLERANCE * int(memory)
