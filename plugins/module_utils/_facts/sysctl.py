# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters of /proc/sys that concerns manage. PRIVATE to the collection."""

from __future__ import annotations

from typing import Mapping

from .._number import is_number
from .._parameters import CPU_POWER, MEMORY, NETWORK_STACK
from .host import Host

NUMA_BALANCING = "kernel.numa_balancing"
ZONE_RECLAIM = "vm.zone_reclaim_mode"
HUGETLB_GROUP = "vm.hugetlb_shm_group"
TW_RECYCLE = "net.ipv4.tcp_tw_recycle"
RPS_ENTRIES = "net.core.rps_sock_flow_entries"
# Limits that have two files, of which the kernel uses the one that was written last: _ratio and _bytes.
DIRTY = ("dirty", "dirty_background")

_PARAMETERS = (*MEMORY, *CPU_POWER, *NETWORK_STACK)
# The only keys that can be written. None has a dot in one of its parts.
KEYS = (
    *(parameter.key for parameter in _PARAMETERS),
    RPS_ENTRIES,
    NUMA_BALANCING,
    ZONE_RECLAIM,
    HUGETLB_GROUP,
)
# What else can be written: for the time of a profile.
KERNEL_NAMES = "kernel.kptr_restrict"
# Those that the kernel computes from the host's memory at each boot.
SIZED = frozenset(parameter.key for parameter in _PARAMETERS if parameter.sized)
# All keys, and what is only looked at.
OBSERVED = (
    *KEYS,
    *(f"vm.{limit}_{unit}" for limit in DIRTY for unit in ("ratio", "bytes")),
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_autocorking",
    TW_RECYCLE,
    *("kernel.pid_max", "kernel.threads-max", "kernel.task_delayacct"),  # ClickHouse looks at them
)


def is_alike(value: str, present: str) -> bool:
    """Whether somebody's value has the form of the present one: as many words, and numbers for numbers."""
    words, others = value.split(), present.split()
    return len(words) == len(others) and all(
        is_number(word) is is_number(other) and str(int(word) if is_number(word) else word) == word
        for word, other in zip(words, others)
    )


def path(key: str) -> str:
    """The file of a key."""
    return "/proc/sys/" + key.replace(".", "/")


def observe(host: Host) -> Mapping[str, str]:
    """Key → value, with single spaces between words; without the keys that this kernel lacks."""
    texts = ((key, host.text(path(key), 4096)) for key in OBSERVED)
    return {key: " ".join(text.split()) for key, text in texts if text is not None}
