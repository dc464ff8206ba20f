# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tuned host like Graviton, as its own kernel and tools show it."""

from __future__ import annotations

import pytest
from testinfra.host import Host

CLOCK = "/sys/devices/system/clocksource/clocksource0"


def test_it_is_the_host_that_the_scenario_promises(host: Host) -> None:
    assert host.check_output("uname -m") == "aarch64"
    assert host.check_output("uname -r").endswith("-cloud-arm64")
    dmi = host.check_output("cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name")
    assert dmi.splitlines() == ["Amazon EC2", "m6g.xlarge"]


def test_grub_was_started_by_uefi(host: Host) -> None:
    assert host.check_output("findmnt --noheadings --output FSTYPE /boot/efi") == "vfat"
    assert host.file("/boot/efi/EFI/BOOT/BOOTAA64.EFI").exists
    assert host.file("/sys/firmware/efi").is_directory
    assert "BOOT_IMAGE=" in host.check_output("cat /proc/cmdline")


def test_its_one_clock_source_stays(host: Host) -> None:
    sources = host.check_output(f"cat {CLOCK}/available_clocksource {CLOCK}/current_clocksource")
    assert sources.split() == ["arch_sys_counter", "arch_sys_counter"]


def test_no_cpu_was_taken_offline(host: Host) -> None:
    assert host.check_output("cat /sys/devices/system/cpu/online") == "0-3"
    assert host.check_output("lscpu | sed -n 's/^Thread(s) per core: *//p'") == "1"


def test_there_is_neither_frequency_nor_idle_state_to_choose(host: Host) -> None:
    assert host.check_output("find /sys/devices/system/cpu/cpu0 -name scaling_governor -o -name 'state[0-9]*'") == ""


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [defer+madvise] madvise never"),
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "16"),
        ("/proc/sys/net/core/somaxconn", "8192"),
        ("/proc/sys/net/ipv4/tcp_keepalive_time", "300"),
        ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
        ("/sys/block/vda/queue/read_ahead_kb", "256"),
    ],
)
def test_the_kernel_has_the_value(host: Host, file: str, text: str) -> None:
    assert host.check_output(f"cat {file}") == text


def test_each_interrupt_of_the_queues_has_one_cpu(host: Host) -> None:
    numbers = host.check_output(r"ls -d /sys/class/net/ens5/device/../msi_irqs/* | xargs -n 1 basename").split()
    named = host.check_output("grep -E 'virtio[0-9]+-(input|output)' /proc/interrupts").splitlines()
    queues = [line.split(":")[0].strip() for line in named if line.split(":")[0].strip() in numbers]
    assert len(queues) == 2
    cpus = [host.check_output(f"cat /proc/irq/{number}/smp_affinity_list") for number in queues]
    assert all(cpu.isdigit() for cpu in cpus), cpus


def test_packets_are_steered_to_no_other_cpu(host: Host) -> None:
    assert not int(host.check_output("cat /sys/class/net/ens5/queues/rx-0/rps_cpus").replace(",", ""), 16)


def test_the_unit_plans_again(host: Host) -> None:
    assert host.check_output("systemctl is-enabled nearmetal.timer") == "enabled"
    assert host.run("nearmetal status").rc == 0
