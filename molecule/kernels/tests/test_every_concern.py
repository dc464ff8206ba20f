# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every concern on one kernel, as that kernel and the host's own tools show it."""

from __future__ import annotations

import pytest
from testinfra.host import Host

# The kernels of the shapes; the newest kernel may be any.
KERNELS = {"molecule-kernel-5-10": "5.10.", "molecule-kernel-6-1": "6.1.", "molecule-kernel-6-12": "6.12."}


def test_it_is_the_kernel_that_the_scenario_promises(host: Host) -> None:
    name = host.backend.get_hostname()
    assert host.check_output("uname -r").startswith(KERNELS.get(name, ""))


def test_the_clock_is_read_without_a_system_call(host: Host) -> None:
    assert host.check_output("dmesg | grep -o 'Switched to clocksource.*' | tail -n 1").endswith("tsc")


def test_one_thread_per_core(host: Host) -> None:
    assert host.check_output("lscpu -p=CPU | grep -vc '#'") == "4"
    assert host.check_output("lscpu | awk '/^Thread/ {print $NF}'") == "1"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [defer+madvise] madvise never"),
        ("/proc/sys/kernel/numa_balancing", "0"),
        ("/proc/sys/vm/zone_reclaim_mode", "0"),
        ("/proc/sys/net/core/somaxconn", "8192"),
        ("/proc/sys/net/ipv4/tcp_keepalive_time", "300"),
        ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
    ],
)
def test_the_kernel_has_the_value(host: Host, file: str, text: str) -> None:
    assert host.check_output(f"cat {file}") == text


def test_huge_pages_are_reserved(host: Host) -> None:
    assert host.check_output("awk '/^HugePages_Total/ {print $2}' /proc/meminfo") == "16"
    per_node = host.check_output("cat /sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages")
    assert per_node.split() == ["8", "8"]


def test_the_only_queue_is_steered_to_other_cpus(host: Host) -> None:
    mask = host.check_output("cat /sys/class/net/ens5/queues/rx-0/rps_cpus").replace(",", "")
    online = host.check_output("cat /sys/devices/system/cpu/online")
    assert int(mask, 16), f"one queue, CPUs {online}"
    offline = host.check_output("cat /sys/devices/system/cpu/offline")
    assert offline
    for cpu in host.check_output("lscpu -p=CPU --offline | grep -v '#'").split():
        assert not int(mask, 16) >> int(cpu) & 1, f"RPS to CPU {cpu}, which is offline"


def test_it_is_kept_and_the_unit_plans_again(host: Host) -> None:
    assert host.check_output("systemctl is-enabled nearmetal.timer") == "enabled"
    assert host.run("nearmetal status").rc == 0
