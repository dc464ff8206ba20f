# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about the kernel's use of memory. PRIVATE to the collection."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple

from .._number import is_number
from .._parse import kernel_counters
from . import sys_files
from .host import Host
from .sysctl import DIRTY, path

_LEAST_BYTES = 2 * 65536  # two pages of the largest size


class MemoryFacts(NamedTuple):
    """None is what the kernel doesn't have or doesn't say."""

    dirty: Mapping[str, str]  # dirty or dirty_background → a share of the memory (20%), or bytes
    ksm: Optional[str]  # 0 stopped | 1 runs | 2 stopped, and everything separated again
    promised: Optional[int]  # bytes, Committed_AS
    most_promised: Optional[int]  # bytes, CommitLimit: what overcommit: never allows


def observe(host: Host) -> MemoryFacts:
    """Read /proc/sys/vm, /proc/meminfo, and the state of KSM."""
    memory = kernel_counters.parse_meminfo(host.text("/proc/meminfo") or "")
    limits = {name: dirty(host, name) for name in DIRTY}
    return MemoryFacts(
        dirty={name: limit for name, limit in limits.items() if limit is not None},
        ksm=sys_files.KSM.read(host),
        promised=memory.get("Committed_AS"),
        most_promised=memory.get("CommitLimit"),
    )


def dirty(host: Host, name: str) -> Optional[str]:
    """A limit of dirty file cache: 20%, or bytes; of its two files the one that isn't in use reads 0."""
    share, size = (host.number(path(f"vm.{name}_{unit}")) for unit in ("ratio", "bytes"))
    if size:
        return str(size)
    return f"{share}%" if share is not None else None


def limit_of(name: str, key: str, number: str) -> Optional[str]:
    """The limit that a kernel parameter of this number sets; None for another parameter, or one that it refuses."""
    value = int(number) if is_number(number) else -1
    if key == f"vm.{name}_ratio" and 0 <= value <= 100:
        return f"{value}%"
    return str(value) if key == f"vm.{name}_bytes" and _LEAST_BYTES <= value < 1 << 63 else None


def dirty_parameter(name: str, limit: str) -> Tuple[str, str]:
    """The kernel parameter that sets such a limit, and its value there."""
    number, share, _rest = limit.partition("%")
    return f"vm.{name}_{'ratio' if share else 'bytes'}", number
