# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tuned host, as its own kernel and tools show it."""

from __future__ import annotations

from testinfra.host import Host

CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def test_the_host_matches_the_type_that_it_stands_for(host: Host) -> None:
    assert host.check_output("cat /sys/devices/virtual/dmi/id/product_name") == "m5.2xlarge"
    assert host.check_output("lscpu -p=SOCKET,CORE,CPU | grep -cv '#'") == "8"
    assert host.check_output("lscpu -p=SOCKET | grep -v '#' | sort -u | wc -l") == "2"
    assert host.check_output("lscpu -p=NODE | grep -v '#' | sort -u | wc -l") == "2"


def test_it_started_on_a_slow_clock_and_runs_on_tsc(host: Host) -> None:
    assert host.check_output(f"grep {CURRENT} /root/before/knobs") == f"{CURRENT} hpet"
    assert host.check_output(f"cat {CURRENT}") == "tsc"


def test_the_kernel_itself_logged_the_switch(host: Host) -> None:
    assert host.check_output("dmesg | grep -o 'Switched to clocksource.*' | tail -n 1").endswith("tsc")


def test_the_kernel_has_what_the_workloads_want(host: Host) -> None:
    wanted = {
        "vm.overcommit_memory": "1",
        "net.core.somaxconn": "4096",
        "net.core.busy_poll": "50",
        "net.core.rmem_max": "7500000",
        "net.ipv4.tcp_max_syn_backlog": "8192",
        "net.ipv4.tcp_slow_start_after_idle": "0",
        "net.ipv4.tcp_keepalive_time": "300",
        "net.ipv4.ip_local_port_range": "10240\t65535",
    }
    assert {key: host.check_output(f"sysctl -n {key}") for key in wanted} == wanted
    huge_pages = host.check_output("cat /sys/kernel/mm/transparent_hugepage/enabled")
    assert "[madvise]" in huge_pages, "web and cache come after in_memory_database"


def test_interrupts_have_a_cpu_each_and_the_other_cpus_help(host: Host) -> None:
    device = host.check_output("basename $(readlink /sys/class/net/e*/device)")
    numbers = host.check_output(f"awk '/{device}-(input|output)/ {{print $1+0}}' /proc/interrupts").split()
    assert numbers
    assert all(host.check_output(f"cat /proc/irq/{number}/smp_affinity_list").isdigit() for number in numbers)
    assert int(host.check_output("cat /sys/class/net/e*/queues/rx-0/rps_cpus").replace(",", ""), 16) > 0


def test_the_journal_is_for_root_alone(host: Host) -> None:
    modes = host.check_output("stat -c '%a %U' /var/lib/nearmetal /var/lib/nearmetal/journal.json")
    assert modes == "700 root\n600 root"
