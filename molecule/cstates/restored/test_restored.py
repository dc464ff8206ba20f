# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restored host: each idle state and governor is as the kernel had chosen it."""

from __future__ import annotations

from testinfra.host import Host


def test_all_is_as_before(host: Host) -> None:
    now = "cd /sys/devices/system/cpu; grep . cpu*/cpuidle/state*/disable cpufreq/policy*/scaling_governor"
    assert host.check_output(now) == host.check_output("cat /root/before/power")


def test_nothing_of_nearmetal_is_left(host: Host) -> None:
    assert host.check_output("find / -xdev -name '*nearmetal*' -not -path '/proc/*'") == ""
