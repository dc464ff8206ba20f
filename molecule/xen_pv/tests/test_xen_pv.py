# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of a paravirtual guest, and the settings that were refused."""

from __future__ import annotations

from testinfra.host import Host

CLOCK = "/sys/devices/system/clocksource/clocksource0"


def test_it_is_a_paravirtual_guest_of_a_real_xen(host: Host) -> None:
    assert host.check_output("cat /sys/hypervisor/type /sys/hypervisor/guest_type").split() == ["xen", "PV"]
    assert host.check_output("lscpu | sed -n 's/^Virtualization type: *//p'") == "para"
    assert not host.file("/sys/class/dmi/id/product_name").exists


def test_the_clock_stays_on_xen(host: Host) -> None:
    assert host.check_output(f"cat {CLOCK}/current_clocksource") == "xen"


def test_no_cpu_was_taken_offline(host: Host) -> None:
    assert host.check_output("cat /sys/devices/system/cpu/online") == "0-1"
