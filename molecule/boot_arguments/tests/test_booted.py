# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with kernel arguments of four concerns, as its kernel shows it after one reboot."""

from __future__ import annotations

from testinfra.host import Host

CPU = "/sys/devices/system/cpu"
PAGES = "/sys/kernel/mm/hugepages/hugepages-{}/nr_hugepages"
OURS = (
    "hugepages=2 hugepages=64 hugepagesz=1G hugepagesz=2M intel_idle.max_cstate=1 nosmt numa=off"
    " processor.max_cstate=1 transparent_hugepage=never"
)


def test_one_write_and_one_reboot_brought_all_of_it(host: Host) -> None:
    assert host.check_output("cat /proc/sys/kernel/random/boot_id") != host.check_output("cat /root/before/boot_id")
    assert host.check_output("last -x reboot | grep -c ^reboot") == "2"
    old = host.check_output("sha256sum < /boot/grub/grub.cfg.nearmetal-old").split()[0]
    assert host.check_output("cat /root/before/grub").split()[0] == old


def test_the_kernel_has_its_earlier_arguments_and_nearmetals_at_the_end(host: Host) -> None:
    before = host.check_output("cat /root/before/cmdline").split()
    now = host.check_output("cut -d' ' -f2- /proc/cmdline").split()
    assert now[: len(before)] == before
    assert sorted(now[len(before) :]) == OURS.split()
    assert " hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=64" in " ".join(now), "a count follows its size"


def test_no_cpu_sleeps_deeper_than_c1(host: Host) -> None:
    assert host.check_output("cat /sys/module/processor/parameters/max_cstate") == "1"
    assert host.check_output(f"cat {CPU}/cpu[02]/cpuidle/state*/name").split() == ["POLL", "C1"] * 2


def test_one_thread_of_each_core_was_started(host: Host) -> None:
    assert host.check_output(f"cat {CPU}/smt/control {CPU}/online").split() == ["off", "0,2"]


def test_the_kernel_knows_one_node(host: Host) -> None:
    assert host.check_output("cat /sys/devices/system/node/online") == "0"


def test_pages_of_both_sizes_are_reserved(host: Host) -> None:
    assert host.check_output(f"cat {PAGES.format('1048576kB')}") == "2"
    assert host.check_output(f"cat {PAGES.format('2048kB')}") == "64"


def test_no_huge_page_is_transparent(host: Host) -> None:
    assert host.check_output("cat /sys/kernel/mm/transparent_hugepage/enabled") == "always madvise [never]"
