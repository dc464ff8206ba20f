# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts for checks only: date, stolen CPU time, drivers of the NICs. PRIVATE to the collection."""

from __future__ import annotations

import re
import time
from typing import Mapping, NamedTuple, Optional

from .._parse import kernel_counters
from .host import Host
from .interface import drivers

_VERSION = r"[0-9][A-Za-z0-9.+_-]{0,63}"


class KernelFacts(NamedTuple):
    """Date, stolen CPU time and drivers. None is what the host doesn't say."""

    today: str  # 2026-11-20
    stolen: Optional[int]  # per mille of CPU time since boot that the hypervisor gave to other guests
    drivers: Mapping[str, str]  # NIC with hardware → driver: ena, ixgbevf, vif (Xen's own)
    ena_version: Optional[
        str
    ]  # such as 2.2.9g for the driver that AWS ships; the kernel's own has the kernel's release


def observe(host: Host) -> KernelFacts:
    """Read the clock, /proc/stat, and which driver each NIC has."""
    version = host.line("/sys/module/ena/version")
    times = kernel_counters.all_times(host.text("/proc/stat", 4096) or "")
    return KernelFacts(
        today=time.strftime("%Y-%m-%d", time.gmtime()),
        stolen=times.stolen * 1000 // times.total if times is not None and times.total else None,
        drivers=drivers(host),
        ena_version=version if version is not None and re.fullmatch(_VERSION, version, re.ASCII) else None,
    )
