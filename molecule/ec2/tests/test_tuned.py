# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tuned host of any system and architecture, as its own kernel and tools show it."""

from __future__ import annotations

import pytest
from testinfra.host import Host


def test_it_says_that_it_runs_on_ec2(host: Host) -> None:
    assert host.check_output("cat /sys/devices/virtual/dmi/id/sys_vendor") == "Amazon EC2"


def test_the_clock_is_read_without_a_system_call(host: Host) -> None:
    current = host.check_output("cat /sys/devices/system/clocksource/clocksource0/current_clocksource")
    assert current in ("tsc", "kvm-clock", "arch_sys_counter")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
        ("/proc/sys/net/core/somaxconn", "4096"),
        ("/proc/sys/net/ipv4/tcp_keepalive_time", "300"),
        ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
    ],
)
def test_the_kernel_has_the_value(host: Host, file: str, text: str) -> None:
    assert host.check_output(f"cat {file}") == text


def test_it_is_kept_and_the_unit_plans_again(host: Host) -> None:
    assert host.check_output("systemctl is-enabled nearmetal.timer") == "enabled"
    assert host.run("nearmetal status").rc == 0
