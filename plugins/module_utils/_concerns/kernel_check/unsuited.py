# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instance types that a workload shouldn't run on, and a type that would do, by rules on their names. Pure. PRIVATE.

A host has no table of types, so a test checks each rule on every type of the offline table.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

from ..._facts.platform import is_burstable

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
