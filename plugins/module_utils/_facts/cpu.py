# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about the processor: who made it and what it promises. PRIVATE to the collection."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from .._parse import cpuinfo
from .host import Host

# x86: a hypervisor runs us; the TSC's rate, its run in idle states, its adjustment register; 1 GiB pages.
# arm64: large system extensions (atomics), scalable vectors.
FLAGS_OF_INTEREST = (
    "hypervisor",
    "constant_tsc",
    "nonstop_tsc",
    "tsc_adjust",
    "tsc_known_freq",
    "rdtscp",
    "pdpe1gb",
    "atomics",
    "sve",
    "sve2",
)

_IMPLEMENTERS = {0x41: "ARM", 0x48: "HiSilicon", 0x61: "Apple", 0xC0: "Ampere"}
# Graviton 2, 3 and 4 (docs/ec2.md#what-lscpu-shows).
_ARM_PARTS = {0xD0C: "Neoverse-N1", 0xD40: "Neoverse-V1", 0xD4F: "Neoverse-V2"}

# The first processor's part: 192 x86 processors have 300 KiB.
_FIRST_PROCESSOR = 8192


class CpuFacts(NamedTuple):
    """The first processor, which stands for all: EC2 has no hybrid types."""

    vendor: Optional[str]  # GenuineIntel, AuthenticAMD, ARM
    model: Optional[str]
    flags: Optional[Tuple[str, ...]]  # those of FLAGS_OF_INTEREST that it has; None: it lists no flags


def first_processor(host: Host) -> cpuinfo.CpuInfo:
    """The first processor of /proc/cpuinfo; all fields None when it can't be read."""
    return cpuinfo.parse(host.text("/proc/cpuinfo", _FIRST_PROCESSOR) or "")


def under_hypervisor(processor: cpuinfo.CpuInfo) -> Optional[bool]:
    """The x86 CPU flag; None on arm64, which has no such flag, and where the file can't be read."""
    return processor.flags is not None and "hypervisor" in processor.flags if processor.x86 else None


def observe(host: Host) -> CpuFacts:
    """Read /proc/cpuinfo."""
    first = first_processor(host)
    vendor, model = first.vendor, first.model
    if first.implementer is not None:
        vendor = vendor or _IMPLEMENTERS.get(first.implementer, "0x{:02x}".format(first.implementer))
        if model is None and first.part is not None:
            known = _ARM_PARTS.get(first.part) if first.implementer == 0x41 else None
            model = known or "part 0x{:03x}".format(first.part)
    flags = first.flags
    return CpuFacts(
        vendor=vendor,
        model=model,
        flags=tuple(name for name in FLAGS_OF_INTEREST if name in flags) if flags is not None else None,
    )
