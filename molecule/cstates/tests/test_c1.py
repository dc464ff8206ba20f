# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with idle states and frequencies, as its kernel's files show it."""

from __future__ import annotations

from testinfra.host import Host

CPU = "/sys/devices/system/cpu"


def test_it_has_idle_states_and_frequencies(host: Host) -> None:
    assert host.check_output(f"cat {CPU}/cpuidle/current_driver") == "acpi_idle"
    assert host.check_output(f"cat {CPU}/cpu0/cpuidle/state*/name").split() == ["POLL", "C1", "C2", "C3"]
    assert host.check_output(f"cat {CPU}/cpufreq/policy*/scaling_driver").split() == ["acpi-cpufreq", "acpi-cpufreq"]


def test_only_polling_and_c1_are_left_on_each_cpu(host: Host) -> None:
    for cpu in (0, 1):
        assert host.check_output(f"cat {CPU}/cpu{cpu}/cpuidle/state*/disable").split() == ["0", "0", "1", "1"]


def test_each_cpu_has_the_governor(host: Host) -> None:
    assert host.check_output(f"cat {CPU}/cpufreq/policy*/scaling_governor").split() == ["performance", "performance"]


def test_without_a_turbo_switch_no_file_sets_turbo(host: Host) -> None:
    switches = host.run(f"ls {CPU}/cpufreq/boost {CPU}/intel_pstate/no_turbo 2>/dev/null").stdout
    kept = host.check_output("cat /etc/tmpfiles.d/nearmetal-cpu_power.conf")
    assert switches == ""
    assert "scaling_governor - - - - performance" in kept
    assert "boost" not in kept
