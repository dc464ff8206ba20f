# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of an HVM guest of Xen, the kind of host that AWS's talk measured."""

from __future__ import annotations

from testinfra.host import Host

CLOCK = "/sys/devices/system/clocksource/clocksource0"


def test_it_is_an_hvm_guest_of_a_real_xen(host: Host) -> None:
    assert host.check_output("cat /sys/hypervisor/type /sys/hypervisor/guest_type").split() == ["xen", "HVM"]
    assert host.check_output("lscpu | sed -n 's/^Virtualization type: *//p'") == "full"
    assert host.check_output("cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name") == "Xen\nHVM domU"


def test_it_offers_the_clock_sources_of_the_source(host: Host) -> None:
    assert host.check_output(f"cat {CLOCK}/available_clocksource").split() == ["xen", "tsc", "hpet", "acpi_pm"]


def test_the_clock_went_from_xen_to_tsc(host: Host) -> None:
    assert host.check_output("grep clocksource0 /root/before/knobs").split()[1] == "xen"
    assert host.check_output(f"cat {CLOCK}/current_clocksource") == "tsc"
    assert host.check_output("dmesg | grep -o 'Switched to clocksource.*' | tail -n 1").endswith("tsc")


def test_no_process_gets_huge_pages(host: Host) -> None:
    assert host.check_output("cat /sys/kernel/mm/transparent_hugepage/enabled") == "always madvise [never]"
