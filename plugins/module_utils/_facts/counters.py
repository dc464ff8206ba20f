# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts for checks: what the kernel has counted since boot that tells of too little room. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Mapping, NamedTuple, Optional, Tuple

from .._parse import kernel_counters
from .._parse.kernel_counters import Softnet
from .host import Host
from .interface import NET
from .topology import NODE, node_names

_DEVICE = re.compile(r" *([^\s:]{1,15}): *[0-9]{1,20} +([0-9]{1,20}) .*")
_UPTIME = re.compile(r"([0-9]{1,12}\.[0-9]{1,9}) .*", re.ASCII)
_FILES = re.compile(r"([0-9]{1,20})\s+([0-9]{1,20})\s+([0-9]{1,20})", re.ASCII)
# Of /proc/vmstat: what a check asks for.
_MEMORY = ("compact_stall", "pswpin", "pswpout")


class Listening(NamedTuple):
    """TCP connections to this host since boot, in the network namespace of the reader."""

    accepted: int
    overflows: int  # that the queue of a listening socket had no room for
    drops: int  # those, and what was dropped for other reasons


class Swap(NamedTuple):
    """A swap area."""

    device: str  # nvme0n1p2, zram0; empty: a file
    busy: Optional[int]  # per mille of the time since boot in which its disk had requests; None: not known


class CounterFacts(NamedTuple):
    """Counts since boot. None, or a name that is missing, is what the host doesn't say."""

    seconds: Optional[int]  # since boot
    received: Optional[int]  # packets, by the NICs with hardware
    softnet: Optional[Softnet]
    listening: Optional[Listening]
    files: Optional[Tuple[int, int]]  # open in all processes, and fs.file-max
    memory: Mapping[str, int]  # compact_stall, pswpin, pswpout
    swaps: Optional[Tuple[Swap, ...]]
    misses: Mapping[str, int]  # node → per mille of its pages that were wanted on another node


def uptime(host: Host) -> Optional[float]:
    """Seconds since boot."""
    found = _UPTIME.fullmatch(host.line("/proc/uptime") or "")
    return float(found[1]) if found is not None else None


def observe(host: Host) -> CounterFacts:
    """Read a handful of files of /proc, and numastat of each node."""
    since_boot = uptime(host)
    seconds = int(since_boot) if since_boot is not None else None
    memory = kernel_counters.parse_counts(host.text("/proc/vmstat", 65536) or "")
    return CounterFacts(
        seconds=seconds,
        received=_received(host),
        softnet=kernel_counters.parse_softnet(host.text("/proc/net/softnet_stat") or ""),
        listening=_listening(host),
        files=_files(host),
        memory={name: memory[name] for name in _MEMORY if name in memory},
        swaps=_swaps(host, seconds),
        misses=_misses(host),
    )


def _received(host: Host) -> Optional[int]:
    """The kernel counts them in 64 bits; NICs without hardware would count a packet again."""
    rows = map(_DEVICE.fullmatch, (host.text("/proc/net/dev") or "").splitlines())
    numbers = [int(row[2]) for row in rows if row is not None and host.exists(f"{NET}/{row[1]}/device")]
    return sum(numbers) if numbers else None


def _listening(host: Host) -> Optional[Listening]:
    statistics = kernel_counters.parse_netstat(
        "\n".join(host.text(f"/proc/net/{name}", 65536) or "" for name in ("snmp", "netstat"))
    )
    names = ("Tcp.PassiveOpens", "TcpExt.ListenOverflows", "TcpExt.ListenDrops")
    if not all(name in statistics for name in names):
        return None
    return Listening(*(statistics[name] for name in names))


def _files(host: Host) -> Optional[Tuple[int, int]]:
    match = _FILES.fullmatch(host.line("/proc/sys/fs/file-nr") or "")
    return (int(match[1]) - int(match[2]), int(match[3])) if match is not None else None


def _swaps(host: Host, seconds: Optional[int]) -> Optional[Tuple[Swap, ...]]:
    areas = kernel_counters.parse_swaps(host.text("/proc/swaps", 65536) or "")
    if not areas:
        return () if areas is not None else None
    used = kernel_counters.in_use(host.text("/proc/diskstats") or "")
    areas_in_use = []
    for device in areas:
        milliseconds = used.get(kernel_counters.disk_of(device, used)) if device else None
        busy = min(1000, milliseconds // seconds) if milliseconds is not None and seconds else None
        areas_in_use.append(Swap(device, busy))
    return tuple(areas_in_use)


def _misses(host: Host) -> Mapping[str, int]:
    per_mille: Dict[str, int] = {}
    for node in node_names(host):
        pages = kernel_counters.parse_counts(host.text(f"{NODE}/{node}/numastat", 4096) or "")
        hit, miss = pages.get("numa_hit"), pages.get("numa_miss")
        if hit is not None and miss is not None and hit + miss:
            per_mille[node] = miss * 1000 // (hit + miss)
    return per_mille
