# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/cpuinfo: the first processor's fields, x86 and arm64. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, FrozenSet, NamedTuple, Optional, Set


class CpuInfo(NamedTuple):
    """The first processor's fields; None where /proc/cpuinfo doesn't have one.

    Virtual Graviton hosts don't mention their hypervisor, and x86 has no implementer.
    """

    vendor: Optional[str] = None  # x86 vendor_id: GenuineIntel, AuthenticAMD
    model: Optional[str] = None  # x86 "model name"; arm64 has none
    family: Optional[int] = None  # x86: 6 is every Intel server since 2006
    number: Optional[int] = None  # x86 "model", within the family
    implementer: Optional[int] = None  # arm64: 0x41 is Arm
    part: Optional[int] = None  # arm64: 0xd0c is Neoverse N1
    flags: Optional[FrozenSet[str]] = None  # x86 "flags", arm64 "Features"
    x86: bool = False
    arm64: bool = False


def parse(text: str) -> CpuInfo:
    """The first processor's fields. The text may be cut anywhere after them: 8 KiB are enough.

    Raises nothing: what isn't there is None.
    """
    fields: Dict[str, str] = {}
    names: Set[str] = set()
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        name = name.strip()
        # Before Linux 3.19 arm64 lists all processors first, and then once the fields that hold for all of them.
        if name == "processor" and not names <= {"processor", "Processor"}:
            break
        if colon and name:
            names.add(name)
            fields.setdefault(name, value.strip())
    words = fields.get("flags", fields.get("Features"))
    architecture = fields.get("CPU architecture", "")
    return CpuInfo(
        vendor=fields.get("vendor_id") or None,
        model=fields.get("model name") or None,
        family=_number(fields.get("cpu family")),
        number=_number(fields.get("model")),
        implementer=_number(fields.get("CPU implementer")),
        part=_number(fields.get("CPU part")),
        flags=frozenset(words.split()) if words is not None else None,
        x86="flags" in fields and "vendor_id" in fields,
        arm64="CPU implementer" in fields and architecture in ("8", "AArch64"),
    )


def _number(text: Optional[str]) -> Optional[int]:
    """The number, decimal or 0x hexadecimal; None when it is none."""
    try:
        return int(text or "", 0)
    except ValueError:
        return None
