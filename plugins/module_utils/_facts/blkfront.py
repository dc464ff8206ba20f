# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about Xen's block front end: its disks, its parameters, and what it agreed on. PRIVATE to the collection."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple

from .._parse import blkfront
from . import log
from .host import Host

DEVICES = "/sys/bus/xen/devices"
PARAMETERS = "/sys/module/xen_blkfront/parameters"

# All are read-only while the kernel runs. max is max_indirect_segments before Linux 4.6.
_NAMES = ("feature_persistent", "max", "max_indirect_segments", "max_queues", "max_ring_page_order", "trusted")


class BlkfrontFacts(NamedTuple):
    """Xen's block front end. Without disks the host has none."""

    disks: Tuple[str, ...]  # the kernel's present names
    parameters: Mapping[str, str]  # those of the driver that this kernel has
    agreements: Optional[Mapping[str, blkfront.Agreement]]  # by disk; None: no log can be read
    refused_queues: Optional[Tuple[int, int]]  # the max_queues that was requested, and the one in use
    log_cut: Optional[bool]  # whether the log is so large that only its beginning was read


def observe(host: Host) -> BlkfrontFacts:
    """Read Xen's devices and the driver's parameters; the kernel log only when there is a disk to look for."""
    disks = tuple(
        disk
        for device in host.names(DEVICES)
        if device.startswith("vbd-")
        for disk in host.names(f"{DEVICES}/{device}/block")
    )
    boot_log = log.since_boot(host) if disks else None
    values = ((name, host.line(f"{PARAMETERS}/{name}")) for name in _NAMES)
    return BlkfrontFacts(
        disks=disks,
        parameters={name: value for name, value in values if value is not None},
        agreements=blkfront.agreements(boot_log.text) if boot_log is not None else None,
        refused_queues=blkfront.refused_queues(boot_log.text) if boot_log is not None else None,
        log_cut=boot_log.cut if boot_log is not None else None,
    )
