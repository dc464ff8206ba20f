# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check: what the names of instance types tell: their network driver, and for which workloads they are wrong.

A host has no table of types, so a test checks each rule on every type of the offline table. Pure. PRIVATE.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Tuple

from ..._facts.platform import is_burstable

_TYPE = r"(([a-z]+(?:-[0-9]+tb)?)([0-9]*)([a-z0-9-]*))\.([a-z0-9-]+)"

# Xen families by DescribeInstanceTypes: with sriovNetSupport and no ENA; with neither. All other families have ENA.
_IXGBEVF = ("c3", "c4", "d2", "i2", "r3", "m4")
_NONE = ("c1", "cc2", "hs1", "m1", "m2", "m3", "t1", "t2")

# Nitro v4 and later: the 6th generation except Graviton2, and families that count their generations otherwise.
_OLD_SIXTH = ("c6g", "c6gd", "m6g", "m6gd", "r6g", "r6gd")
_NEW_FAMILIES = ("i4i", "i4g", "im4gn", "is4gen", "x2idn", "x2iedn", "trn1", "trn1n", "inf2")

# The oldest ENA that drives hosts of Nitro v4; distributions have it from these kernels on:
# docs/ec2.md#hosts-and-distributions.
ENA_MINIMUM = (2, 2, 9)
# Older drivers don't attach to such a host at all.
ENA_ATTACHES = (1, 2)
ENA_KERNELS = {
    "amzn": (4, 14, 186, 0),
    "rhel": (4, 18, 0, 240),
    "centos": (4, 18, 0, 240),
    "rocky": (4, 18, 0, 240),
    "almalinux": (4, 18, 0, 240),
    "ol": (4, 18, 0, 240),
    "ubuntu": (5, 4, 0, 1025),
}
# SLES differs by service pack. Of 15 and 15 SP1 the build tells: 4.12.14-150000.150.92.2 and 4.12.14-150100.197.114.2.
_SLES = {
    "12.4": (4, 12, 14, 95),
    "12.5": (4, 12, 14, 122),
    "15": (4, 12, 14, 150000),
    "15.1": (4, 12, 14, 150100),
    "15.2": (5, 3, 18, 24),
}
_MAINLINE = (5, 9, 0, 0)


def driver_of(instance_type: Optional[str]) -> Optional[str]:
    """The driver that a type's hosts offer: ena, ixgbevf, or none; None when the type isn't known."""
    match = re.fullmatch(_TYPE, instance_type or "", re.ASCII)
    if match is None:
        return None
    family, size = match.group(1), match.group(5)
    if family in _NONE:
        return "none"
    if family in _IXGBEVF and (family, size) != ("m4", "16xlarge"):
        return "ixgbevf"
    return "ena"


def needs_new_ena(instance_type: Optional[str]) -> Optional[bool]:
    """Whether the type's hosts are Nitro v4 or later, as far as its name tells; None for a text that is no type."""
    match = re.fullmatch(_TYPE, instance_type or "", re.ASCII)
    if match is None:
        return None
    family, generation = match.group(1), match.group(3)
    if family in _NEW_FAMILIES:
        return True
    return bool(generation) and int(generation) >= 6 and family not in _OLD_SIXTH


def ena_kernel(distribution: Optional[str], version: Optional[str]) -> Tuple[int, ...]:
    """The first kernel of a distribution whose own ENA is 2.2.9 or newer."""
    if distribution == "sles":
        return _SLES.get(version or "", (5, 3, 18, 24))
    return ENA_KERNELS.get(distribution or "", _MAINLINE)


SAP = "SAP note 1656250"

# t3a.large, m7i-flex.xlarge, u-6tb1.56xlarge
_NAME = re.compile(r"([a-z]+)([0-9]*)([a-z]*)(-[a-z0-9]+)?\.([a-z0-9-]+)", re.ASCII)
_SIZE = re.compile(r"(?:metal-)?([0-9]*)x(?:large|l)", re.ASCII)
_SMALL = ("nano", "micro", "small", "medium", "large")
# Sizes of the families that are recommended instead, in units of xlarge.
_SIZES = {
    "r6i": (1, 2, 4, 8, 12, 16, 24, 32),
    "r7i": (1, 2, 4, 8, 12, 16, 24, 48),
    "r8i": (1, 2, 4, 8, 12, 16, 24, 32, 48, 96),
    "x2iedn": (1, 2, 4, 8, 16, 24, 32),
    "x8i": (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96),
}
_FIXED = {"t3a": "m5a", "t4g": "m6g"}
_FIXED_SMALL = {"t1": "m5", "t8i": "m8i"}  # families without credits that have no larger size


class Unsuited(NamedTuple):
    """Why a type is wrong for a workload."""

    reason: str
    better: str  # a type that would do
    reference: str


def unsuited(workload: str, instance_type: str, cores: Optional[int]) -> Optional[Unsuited]:
    """Why this type is wrong for one of the concern's WORKLOADS; None where no source speaks against it.

    `cores` is the number of the host's cores, None where it isn't known.
    """
    match = _NAME.fullmatch(instance_type)
    if match is None:
        return None
    series, generation, letters, variant, size = match.groups()
    family = f"{series}{generation}{letters}"
    arm = series == "a" or "g" in letters or (variant or "").startswith("-gb")
    if workload == "sap_hana" and arm:
        reason = "SAP HANA runs only on x86 processors, and this is a Graviton type"
        return Unsuited(reason, _for_hana(family, generation, size), SAP)
    if is_burstable(instance_type):
        reason = "a burstable type earns CPU credits, and falls to its baseline when they are spent"
        return Unsuited(reason, _fixed(workload, family, generation, size), "EC2 User Guide, CPU credits")
    if workload == "sap_hana":
        return None
    if variant == "-flex":
        reason = "a flex type promises 40 % of its CPUs at all times, and all of them for 95 % of a day"
        return Unsuited(reason, f"{family}.{_at_least_xlarge(size)}", "EC2 instance types guide, flex instances")
    if size in _SMALL and cores is not None and cores < 2:
        reason = "one core: with one thread per core a single CPU is left for the workload, the kernel and interrupts"
        return Unsuited(reason, f"{_FIXED_SMALL.get(family, family)}{variant or ''}.xlarge", "AWS, 2017")
    return None


def _fixed(workload: str, family: str, generation: str, size: str) -> str:
    """A type with all of its CPUs, of the burstable one's processor or the next newer."""
    if workload == "sap_hana":
        return _for_hana(family, generation, size)
    return f"{_FIXED.get(family, 'm5')}.{_at_least_xlarge(size)}"


def _for_hana(family: str, generation: str, size: str) -> str:
    """A memory type of Intel's with at least as many vCPUs and as much memory, or the largest of them."""
    number = int(generation or 0)
    if family.startswith("x"):
        better = "x8i" if number >= 8 else "x2iedn"
    else:
        better = "r8i" if number >= 8 else "r7i" if number == 7 else "r6i"
    wanted, sizes = _in_xlarge(size), _SIZES[better]
    factor = next((offered for offered in sizes if offered >= wanted), sizes[-1])
    return f"{better}.{factor if factor > 1 else ''}xlarge"


def _in_xlarge(size: str) -> int:
    """A size in units of xlarge, rounded up; `metal` without a number is a Graviton host of at most 64 vCPUs."""
    match = _SIZE.fullmatch(size)
    if match is None:
        return 16 if size == "metal" else 1
    return int(match.group(1) or 1)


def _at_least_xlarge(size: str) -> str:
    return "xlarge" if size in _SMALL else size
