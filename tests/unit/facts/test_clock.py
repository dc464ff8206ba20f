# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clock facts."""

from __future__ import annotations

import os
from typing import Callable, Dict, Mapping, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.clock import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

Build = Callable[[Mapping[str, str]], Host]

FOLDER = "/sys/devices/system/clocksource/clocksource0/"


def clock(current: str, available: str, flags: str = "tsc constant_tsc") -> Dict[str, str]:
    """The files that a clock is observed from."""
    return {
        FOLDER + "current_clocksource": current + "\n",
        FOLDER + "available_clocksource": available + " \n",
        "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: {}\n".format(flags),
        "/proc/cmdline": "root=/dev/xvda1 ro\n",
        "/dev/kmsg": "6,0,0,-;Linux version 5.10.0\n",
    }


def test_xen_reads_its_clock_by_system_calls(host_of: Build) -> None:
    facts = observe(host_of(clock("xen", "xen tsc hpet acpi_pm")))
    assert (facts.current, facts.available, facts.vdso) == ("xen", ("xen", "tsc", "hpet", "acpi_pm"), False)
    assert (facts.constant_tsc, facts.nonstop_tsc) == (True, False)
    assert facts.unstable_marks == ()


@pytest.mark.parametrize(
    ("cpu", "constant"),
    [
        ("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 63\n", True),
        ("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 13\n", False),
        ("vendor_id\t: GenuineIntel\ncpu family\t: 15\nmodel\t\t: 63\n", False),
        ("vendor_id\t: AuthenticAMD\ncpu family\t: 6\nmodel\t\t: 63\n", False),
        ("vendor_id\t: GenuineIntel\n", False),
        ("CPU implementer\t: 0x41\nFeatures\t: fp asimd\n", None),
    ],
)
def test_newer_kernels_no_longer_deduce_constant_tsc_from_the_model(
    host_of: Build, cpu: str, constant: Optional[bool]
) -> None:
    flags = "" if "implementer" in cpu else "flags\t\t: fpu tsc\n"
    facts = observe(host_of({**clock("xen", "xen tsc"), "/proc/cpuinfo": f"processor\t: 0\n{cpu}{flags}"}))
    assert facts.constant_by_model is constant
    assert not facts.constant_tsc


@pytest.mark.parametrize(
    ("source", "vdso"),
    [
        ("tsc", True),
        ("kvm-clock", True),
        ("arch_sys_counter", True),
        ("hyperv_clocksource_tsc_page", True),
        ("hpet", False),
        ("acpi_pm", False),
        ("never-heard-of", None),
    ],
)
def test_vdso(source: str, vdso: Optional[bool], host_of: Build) -> None:
    assert observe(host_of(clock(source, source))).vdso is vdso


def test_arm64_has_no_tsc_to_promise_anything(host_of: Build) -> None:
    files = clock("arch_sys_counter", "arch_sys_counter")
    files["/proc/cpuinfo"] = "processor\t: 0\nFeatures\t: fp\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
    facts = observe(host_of(files))
    assert (facts.constant_tsc, facts.nonstop_tsc, facts.vdso) == (None, None, True)


def test_a_host_without_any_file_is_unknown_throughout(host_of: Build) -> None:
    facts = observe(host_of({})).as_dict()
    assert facts == dict.fromkeys(facts)


MARK = "tsc: Marking TSC unstable due to clocksource watchdog"


def test_a_mark_is_found_in_the_ring(host_of: Build) -> None:
    files = clock("hpet", "hpet acpi_pm")
    files["/dev/kmsg"] += "4,1,1,-;{}\n6,2,2,-;clocksource: Switched to clocksource hpet\n".format(MARK)
    facts = observe(host_of(files))
    assert facts.unstable_marks == (MARK,)
    assert facts.switched_to == ("hpet",)


def test_a_mark_that_the_ring_has_lost_is_found_in_the_saved_log(host_of: Build) -> None:
    files = clock("hpet", "hpet acpi_pm")
    files["/dev/kmsg"] = "6,9000,1,-;something later\n"
    files["/var/log/dmesg"] = "[    5.140900] {}\n".format(MARK)
    assert observe(host_of(files)).unstable_marks == (MARK,)


def test_the_saved_log_of_an_earlier_boot_is_not_asked_while_the_ring_is_whole(host_of: Build) -> None:
    files = clock("tsc", "tsc")
    files["/var/log/dmesg"] = "[    5.140900] {}\n".format(MARK)
    assert observe(host_of(files)).unstable_marks == ()


def test_an_unreadable_log_is_unknown_instead_of_free_of_warnings(host_of: Build) -> None:
    files = clock("tsc", "tsc")
    del files["/dev/kmsg"]
    facts = observe(host_of(files))
    assert (facts.unstable_marks, facts.switched_to) == (None, None)


def test_arguments_of_the_running_kernel(host_of: Build) -> None:
    files = clock("tsc", "tsc")
    files["/proc/cmdline"] = "clocksource=hpet tsc=reliable clocksource=tsc\n"
    facts = observe(host_of(files))
    assert (facts.source_argument, facts.reliable_argument) == ("tsc", True)


def test_reading_the_log_of_this_machine_takes_nothing_from_it() -> None:
    host = Host()
    first, second = host.records("/dev/kmsg"), host.records("/dev/kmsg")
    if os.access("/dev/kmsg", os.R_OK) and first is not None:
        assert second is not None
        assert second[-200:] == first[-200:] or len(second) > len(first)
    else:
        assert observe(host).unstable_marks is None or host.exists("/var/log/dmesg")


def test_a_too_large_log_is_read_in_part_and_reported_so(host_of: Build) -> None:
    log = "6,0,0,-;Linux version 6.1\n" + "6,1,2,-;noise\n" * 700_000 + "4,9,9,-;tsc: Marking TSC unstable due to x\n"
    whole = observe(host_of({"/dev/kmsg": log[: 4 << 20]}))
    cut = observe(host_of({"/dev/kmsg": log}))
    assert (whole.log_cut, cut.log_cut) == (False, True)
    assert cut.unstable_marks == ()
