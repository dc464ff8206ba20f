# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/cpuinfo of x86 and arm64."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import cpuinfo

X86 = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) CPU E5-2666 v3 @ 2.90GHz
flags\t\t: fpu tsc constant_tsc hypervisor lm

processor\t: 1
vendor_id\t: Other
flags\t\t: fpu
"""
ARM64 = """processor\t: 0
Features\t: fp asimd atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd40

processor\t: 1
"""


def test_cpuinfo_of_x86_is_its_first_processor() -> None:
    found = cpuinfo.parse(X86)
    assert (found.vendor, found.model) == ("GenuineIntel", "Intel(R) Xeon(R) CPU E5-2666 v3 @ 2.90GHz")
    assert found.flags == {"fpu", "tsc", "constant_tsc", "hypervisor", "lm"}
    assert (found.x86, found.arm64, found.implementer) == (True, False, None)


def test_cpuinfo_of_arm64_has_no_vendor_and_no_model() -> None:
    found = cpuinfo.parse(ARM64)
    assert (found.vendor, found.model) == (None, None)
    assert (found.implementer, found.part) == (0x41, 0xD40)
    assert found.flags == {"fp", "asimd", "atomics"}
    assert (found.x86, found.arm64) == (False, True)


def test_cpuinfo_that_is_cut_within_the_first_processor_keeps_what_was_read() -> None:
    assert cpuinfo.parse(X86[:60]).vendor == "GenuineIntel"
    assert cpuinfo.parse(X86[:60]).flags is None
