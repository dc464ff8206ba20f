# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check: which network driver a type offers, and which ENA its hosts need. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Optional, Tuple

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
