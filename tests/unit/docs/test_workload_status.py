# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/workload_status.csv against the rules that it follows from, and every workload against the table.

Workloads are planned on a host of every class and on every shape of the lab.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, FrozenSet, Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import values

from lab import shape
from lab.shape import Shape
from tests.support import workload_rules, workload_table
from tests.support.fresh_host import booted
from tests.support.hosts import CPU, built, lay_out
from tests.support.pointers import trouble

TABLE = workload_table.read()
CHECKS = workload_table.read_checks()
HOSTS = list(workload_rules.RULES["hosts"])
CLOCK = "/sys/devices/system/clocksource/clocksource0"
DMI = "/sys/devices/virtual/dmi/id"
APPLIES = frozenset(("ok", "would_change"))
CLOSED = ("not_ec2", "container")


def test_the_table_follows_from_the_rules() -> None:
    assert workload_rules.TABLE.read_text("utf-8") == workload_rules.table(), "python -m tests.support.workload_rules"


def test_every_rule_has_a_source_that_exists() -> None:
    groups = {**workload_rules.RULES["knobs"], **workload_rules.RULES["checks"]}
    assert {knob: trouble(group["source"]) for knob, group in groups.items() if trouble(group["source"])} == {}
    assert all(rule["because"] for group in groups.values() for rule in group.get("rules", ()))


def test_a_value_without_its_rules_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(workload_rules.RULES["workloads"]["web"], "numa.new", 1)
    with pytest.raises(workload_rules.RulesError, match=r"web wants numa\.new, which has no \[knobs\] table"):
        workload_rules.table()
    monkeypatch.setitem(workload_rules.RULES["knobs"], "numa.new", {"source": "docs/numa.md"})
    with pytest.raises(workload_rules.RulesError, match=r"no rule decides numa\.new, and it has no value in \[fresh\]"):
        workload_rules.table()


def look(kind: str, root: Path) -> Facts:
    """The facts of the fresh host of a class."""
    return workload_table.look(booted(root, built(workload_rules.description(kind))))


def named_type(kind: str) -> Dict[str, str]:
    """The option that names the type of a Xen host, which doesn't know its own."""
    name = workload_rules.instance_type(kind)
    return {"instance_type": name} if name else {}


def test_the_table_has_a_row_for_every_check() -> None:
    looks = [concern for concern in CONCERNS.values() if concern.name in workload_table.LOOKS]
    # A check that depends on an option differs for each workload: tests/unit/concerns/kernel_check/test_unsuited.py.
    checks = {f"{concern.name}.{check}" for concern in looks for check in set(concern.checks) - set(concern.options)}
    assert sorted(checks - set(CHECKS)) == [], "add them to [checks] in tests/support/workload_rules.toml"
    assert sorted(set(CHECKS) - checks) == [], "no concern has them: take them out of tests/support/workload_rules.toml"
    assert all(set(cells) == set(HOSTS) for cells in CHECKS.values())


@pytest.mark.parametrize("kind", HOSTS)
def test_a_host_gets_the_checks_of_its_class(kind: str, tmp_path: Path) -> None:
    facts = look(kind, tmp_path)
    expected = {knob: cells[kind] for knob, cells in CHECKS.items() if cells[kind]}
    for workload in WORKLOADS:
        statuses: Dict[str, FrozenSet[str]] = {}
        for finding in workload_table.planned(facts, workload, **named_type(kind))[1]:
            if finding.concern in workload_table.LOOKS and finding.knob != "workload":
                knob = f"{finding.concern}.{finding.knob}"
                statuses[knob] = statuses.get(knob, frozenset()) | {finding.status}
        assert statuses == expected, workload


def test_the_table_has_a_row_for_every_value() -> None:
    expected = {
        f"{name} {concern}.{knob}"
        for name, workload in WORKLOADS.items()
        for concern, options in values(workload).items()
        if concern not in workload_table.LOOKS
        for knob in _knobs(options)
    }
    have = {f"{name} {knob}" for name, rows in TABLE.items() for knob in rows}
    assert sorted(expected - have) == [], "add them to tests/support/workload_rules.toml"
    assert sorted(have - expected) == [], "no workload has them: take them out of tests/support/workload_rules.toml"
    assert all(set(cells) == set(HOSTS) for rows in TABLE.values() for cells in rows.values())


def _knobs(options: Dict[str, Any]) -> Set[str]:
    """The options, and those of each entry of `disks` in its place."""
    entries = options.get("disks", ())
    return (set(options) - {"disks"}).union(*entries) - {"kind"}


@pytest.mark.parametrize("kind", HOSTS)
def test_a_fresh_host_has_the_statuses_of_its_class(kind: str, tmp_path: Path) -> None:
    facts = look(kind, tmp_path)
    for workload, rows in TABLE.items():
        actions, findings = workload_table.planned(facts, workload, **named_type(kind))
        if kind in CLOSED:
            assert actions == ()
            only_look = (*workload_table.LOOKS, "service_check")
            assert {finding.status for finding in findings if finding.concern not in only_look} == {"refused"}
            continue
        wrong = {
            knob: (sorted(have), sorted(cells[kind]))
            for knob, cells in rows.items()
            for have in [workload_table.statuses(findings, knob)]
            if have != cells[kind]
        }
        assert wrong == {}, f"{workload} on {kind}: knob → (code, table)"
        assert actions or workload == "base", f"{workload} does nothing on {kind}"


def lab_files(host_shape: Shape) -> Dict[str, str]:
    """The files of a lab host when it is planned: QEMU gives it DMI, topology, virtio NICs and a clock."""
    nics = [
        {
            "name": f"ens{5 + number}",
            "driver": "virtio_net",
            "place": f"virtio{number}",
            "queues": max(
                1, int(dict(word.partition("=")[::2] for word in nic.split(",")).get("vectors", "4")) // 2 - 1
            ),
            "node": -1,
        }
        for number, nic in enumerate(host_shape.nics)
    ]
    flags = "fpu tsc lm constant_tsc" + ("" if "-hypervisor" in host_shape.cpu else " hypervisor")
    offered = "tsc hpet acpi_pm" if "tsc=reliable" in host_shape.kernel_args else "hpet acpi_pm"
    files = {
        "/proc/cpuinfo": f"processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: {flags}\n\n",
        "/proc/cmdline": f"root=/dev/vda1 ro {host_shape.kernel_args}\n",
        "/proc/sys/kernel/osrelease": "6.1.0-56-cloud-amd64\n",
        "/proc/sys/kernel/arch": "x86_64\n",
        "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
        "/dev/kmsg": "",
        f"{DMI}/sys_vendor": host_shape.smbios["system"]["manufacturer"] + "\n",
        f"{DMI}/product_name": host_shape.smbios["system"]["product"] + "\n",
        f"{DMI}/bios_vendor": host_shape.smbios["bios"]["vendor"] + "\n",
        f"{DMI}/bios_version": host_shape.smbios["bios"]["version"] + "\n",
        f"{DMI}/board_asset_tag": host_shape.smbios["board"]["asset"] + "\n",
        f"{CLOCK}/available_clocksource": f"{offered}\n",
        f"{CLOCK}/current_clocksource": "hpet\n",
        f"{CPU}/smt/control": "on\n" if host_shape.threads > 1 else "notsupported\n",
        f"{CPU}/smt/active": f"{int(host_shape.threads > 1)}\n",
    }
    counts = {
        "sockets": host_shape.sockets,
        "cores": host_shape.cores,
        "threads": host_shape.threads,
        "nodes": host_shape.nodes,
    }
    disks = [{"name": "vda", "driver": "virtio_blk", "device": "virtio9", "mount": "/"}]
    return built({"shape": counts, "nics": nics, "disks": disks, "files": files})


def lab_class(host_shape: Shape) -> str:
    """The class that its DMI claims."""
    product = host_shape.smbios["system"]["product"]
    if host_shape.smbios["system"]["manufacturer"] == "Xen":
        return "xen_hvm"
    if product.startswith("t3."):
        return "burstable"
    return "metal" if ".metal" in product else "nitro"


def on_the_lab(table: FrozenSet[str], knob: str, host_shape: Shape) -> FrozenSet[str]:
    """The statuses that are right on an emulated host, which has neither ENA nor CPUs that sleep."""
    if knob.startswith(("network_stack.rx_", "network_stack.tx_", "network_stack.adaptive", "network_irq.queues")):
        return frozenset(("not_applicable",))
    if knob == "hugepages.thp":
        table |= {"not_applicable"}  # a workload's value may be for the distributions of SAP, which no lab has
    if knob == "block_storage.io_timeout":
        return frozenset(("not_applicable",))  # virtio_blk has none, and AWS names one for its own disks alone
    if knob in ("block_storage.scheduler", "block_storage.nomerges"):
        table |= {"not_applicable"}  # a workload's setting may be for instance store, which no lab has
    if knob.startswith(("cpu_power.idle", "cpu_power.turbo", "cpu_power.governor")) and "refused" not in table:
        return frozenset(("not_applicable",))
    if knob.startswith("numa."):
        return APPLIES if host_shape.nodes > 1 else frozenset(("not_applicable",))
    if knob == "smt.threads" and host_shape.threads == 1:
        return frozenset(("not_applicable",))
    if knob == "smt.threads" and host_shape.sockets * host_shape.cores == 1:
        return frozenset(("refused",))  # one CPU would be left
    if knob == "network_stack.busy_poll" and host_shape.sockets * host_shape.cores <= 2:
        table |= {"refused"}  # without second threads two CPUs are left, or one
    if knob == "network_irq.policy" and host_shape.sockets * host_shape.cores * host_shape.threads == 1:
        table |= {"not_applicable"}
    if knob == "clocksource.source" and "tsc=reliable" not in host_shape.kernel_args:
        return frozenset(("not_applicable",))  # the reason for tsc=reliable on its command line
    return table | APPLIES if table & APPLIES else table


@pytest.mark.parametrize("name", shape.names())
def test_a_host_of_the_lab_has_the_statuses_of_its_class(name: str, tmp_path: Path) -> None:
    host_shape = shape.load(name)
    lay_out(tmp_path, lab_files(host_shape))
    facts = workload_table.look(Host(str(tmp_path)))
    wrong = {}
    for workload, rows in TABLE.items():
        _actions, findings = workload_table.planned(facts, workload)
        for knob, cells in rows.items():
            have = workload_table.statuses(findings, knob)
            right = on_the_lab(cells[lab_class(host_shape)], knob, host_shape)
            if not have or not have <= right:
                wrong[f"{workload} {knob}"] = (sorted(have), sorted(right))
    assert wrong == {}, f"{lab_class(host_shape)}: knob → (code, table)"
