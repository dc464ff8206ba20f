# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rebooted guest: its kernel chose xen again, the unit tsc; what a clock read cost before the first run, and now."""

from __future__ import annotations

import json

import pytest
from testinfra.host import Host

from lab import clock
from lab.host import instance


def test_the_unit_took_the_new_boot_from_xen_to_tsc(host: Host) -> None:
    switched = host.check_output("dmesg | sed -n 's/.*Switched to clocksource //p'").split()
    assert (switched[0], switched[-1]) == ("xen", "tsc")
    assert host.check_output("systemctl show --property Result --value nearmetal.service") == "success"


def test_the_other_values_are_kept_too(host: Host) -> None:
    assert host.check_output("cat /sys/kernel/mm/transparent_hugepage/enabled") == "always madvise [never]"
    assert host.check_output("cat /proc/sys/net/core/somaxconn /sys/block/xvdb/queue/read_ahead_kb") == "8192\n256"


@pytest.fixture(name="costs", scope="module")
def _costs(host: Host) -> "tuple[clock.ClockCost, clock.ClockCost]":
    before = clock.ClockCost(**json.loads(host.check_output("cat /root/before/clock.json")))
    return before, clock.measure(instance.find(host.backend.get_hostname()))


def test_each_read_was_a_system_call_and_none_is(costs: "tuple[clock.ClockCost, clock.ClockCost]") -> None:
    before, after = costs
    assert (before.source, after.source) == ("xen", "tsc")
    assert before.clock_calls >= clock.READS
    assert after.clock_calls == 0
    assert before.system_calls - after.system_calls >= clock.READS


def test_a_read_costs_less(costs: "tuple[clock.ClockCost, clock.ClockCost]") -> None:
    before, after = costs
    assert after.ns_per_read < before.ns_per_read, f"{before} {after}"
