# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of a PVH guest of Xen."""

from __future__ import annotations

from testinfra.host import Host

CLOCK = "/sys/devices/system/clocksource/clocksource0"


def test_it_is_a_pvh_guest_of_a_real_xen(host: Host) -> None:
    assert host.check_output("cat /sys/hypervisor/type /sys/hypervisor/guest_type").split() == ["xen", "PVH"]
    assert host.check_output("lscpu | sed -n 's/^Virtualization type: *//p'") == "full"
    assert not host.file("/sys/class/dmi/id/product_name").exists


def test_the_clock_went_from_xen_to_tsc(host: Host) -> None:
    assert host.check_output("grep clocksource0 /root/before/knobs").split()[1] == "xen"
    assert host.check_output(f"cat {CLOCK}/current_clocksource") == "tsc"


def test_no_process_gets_huge_pages(host: Host) -> None:
    assert host.check_output("cat /sys/kernel/mm/transparent_hugepage/enabled") == "always madvise [never]"
