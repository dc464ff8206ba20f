# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every workload on every recorded machine, against docs/workload_status.csv.

A recording has CPUs, nodes and DMI, nothing that can be tuned but SMT. So an EC2 one gets
the files that a kernel of its class has: sysctls, huge pages, a clock, a NIC with ENA's queues.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, FrozenSet

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

from tests.support import hosts, workload_table
from tests.support.files.memory import memory_files
from tests.support.files.sysctls import sysctl_files
from tests.support.kernel.disks import EBS, disk_files
from tests.support.kernel.nics import nic_files
from tests.unit.recorded import machines

TABLE = workload_table.read()
EC2 = [key for key in machines.names() if key.startswith("sparecores-aws/")]
OTHERS = [key for key in machines.names() if key not in EC2]
PARTS = re.compile(f"{machines.TOPOLOGY.pattern}|{machines.PLATFORM.pattern}")
CLOCK = "/sys/devices/system/clocksource/clocksource0"
CLOCKS = {
    "Xen": ("xen", "xen tsc hpet acpi_pm"),
    "x86_64": ("tsc", "tsc kvm-clock"),
    "aarch64": ("arch_sys_counter",) * 2,
}
APPLIES = frozenset(("ok", "would_change"))


def kind(name: str, expected: Dict[str, Any]) -> str:
    """The class of the table by the type's name and what lscpu says."""
    arm, metal = expected["arch"] == "aarch64", ".metal" in name
    if expected["hypervisor"] == "Xen":
        return "xen_hvm"
    if name.split(".")[0] in ("t2", "t3", "t3a", "t4g"):
        return "burstable"
    if arm:
        return "graviton_metal" if metal else "graviton"
    return "metal" if metal else "nitro"


def complete(root: Path, expected: Dict[str, Any]) -> None:
    """Files of every kernel that the recording lacks."""
    cpus, nodes = expected["counts"]["cpus_online"], expected["counts"]["numa_nodes"]
    clock = CLOCKS.get(expected["hypervisor"] or "", CLOCKS[expected["arch"]])
    nic = {"name": "eth9", "driver": "ena", "place": "0000:00:05.0", "queues": min(8, cpus), "node": -1}
    disk: Dict[str, Any] = {"name": "nvme0n1", "device": "0000:00:04.0", "model": EBS, "mount": "/"}
    if expected["hypervisor"] == "Xen":
        disk = {"name": "xvda", "driver": "vbd", "device": "vbd-51712", "mount": "/"}
    files = {**nic_files(cpus, [nic]), **sysctl_files("net"), **dict(memory_files(nodes)), **disk_files([disk])}
    files.update(
        {f"{CLOCK}/current_clocksource": clock[0], f"{CLOCK}/available_clocksource": clock[1], "/dev/kmsg": ""}
    )
    hosts.lay_out(root, {path: text for path, text in files.items() if "/node/" not in path})


def allowed(table: FrozenSet[str], knob: str, expected: Dict[str, Any]) -> FrozenSet[str]:
    """The statuses that are right on this very machine, of which not all is recorded."""
    concern = knob.split(".")[0]
    if knob.startswith(("network_stack.rx_", "network_stack.tx_", "network_stack.adaptive", "network_irq.queues")):
        return frozenset(("not_applicable",))  # a driver's answers aren't files
    parameters = ("cpu_power.nmi_watchdog", "cpu_power.stat_interval", "cpu_power.timer_migration")
    if concern == "cpu_power" and "refused" not in table and knob not in parameters:
        return frozenset(("not_applicable",))  # no recording has cpuidle or cpufreq
    if knob == "network_stack.busy_poll" and expected["counts"]["cores"] <= 2:
        table |= {"refused"}  # a workload polls on no host that has two CPUs left
    if knob == "hugepages.thp":
        table |= {"not_applicable"}  # SAP's value, as no recording is of RHEL or SLES
    if knob in ("block_storage.scheduler", "block_storage.nomerges"):
        table |= {"not_applicable"}  # instance store may be meant, which the stand-in disks aren't
    if concern == "numa":
        return APPLIES if expected["counts"]["numa_nodes"] > 1 else frozenset(("not_applicable",))
    if concern == "smt" and expected["counts"]["threads_per_core_max"] == 1:
        return frozenset(("not_applicable", "refused"))
    return table | APPLIES if table & APPLIES else table


@pytest.mark.parametrize("key", EC2)
def test_on_ec2(key: str, root: Path) -> None:
    machines.lay_out(key, root, PARTS)
    expected = machines.answer(key)
    complete(root, expected)
    column = kind(key.split("/")[1], expected)
    facts = workload_table.look(Host(str(root)))
    wrong = {}
    for workload, rows in TABLE.items():
        actions, findings = workload_table.planned(facts, workload)
        assert actions or workload == "base", f"{workload} does nothing"
        for knob, cells in rows.items():
            have, right = workload_table.statuses(findings, knob), allowed(cells[column], knob, expected)
            if not have or not have <= right:
                wrong[f"{workload} {knob}"] = (sorted(have), sorted(right))
    assert wrong == {}, f"{column}: knob → (code, table)"


@pytest.mark.parametrize("key", OTHERS)
def test_a_plan_on_a_machine_outside_ec2_is_refused(key: str, root: Path) -> None:
    """Nothing is planned, and with allow_not_ec2 there is a plan and no traceback."""
    machines.lay_out(key, root, PARTS)
    facts = workload_table.look(Host(str(root)))
    looks = (*workload_table.LOOKS, "service_check")
    for workload in TABLE:
        actions, findings = workload_table.planned(facts, workload)
        assert actions == ()
        assert {finding.status for finding in findings if finding.concern not in looks} == {"refused"}
        workload_table.planned(facts, workload, allow_not_ec2=True)
