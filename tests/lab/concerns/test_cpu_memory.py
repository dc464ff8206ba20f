# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""smt, numa, hugepages and interrupts on a real kernel of two nodes, each checked with the system's own tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.host import Host, instance
from tests.support.lab import ansible

THP = "/sys/kernel/mm/transparent_hugepage"
SERVICE = """[Service]
ExecStart=/bin/sleep infinity
"""
WANTED = {
    "smt": {"threads": "disabled"},
    "hugepages": {
        "thp": "never",
        "khugepaged_defrag": "disabled",
        "pages": [{"size": "2M", "count": 48, "nodes": "1"}],
        "mount": {"path": "/mnt/huge-2M", "size": "2M"},
        "group": "daemon",
    },
    "numa": {
        "balancing": "disabled",
        "zone_reclaim_mode": 1,
        "services": [
            {"unit": "bound.service", "nodes": "1"},
            {"unit": "spread.service", "nodes": "0-1", "policy": "interleave"},
        ],
    },
}
# The output of all tools in one round trip: ssh to an emulated host costs a second.
LOOK = f"""
lscpu -p=CPU | grep -cv '#'; lscpu | sed -n 's/^Thread(s) per core: *//p'
cat {THP}/enabled {THP}/khugepaged/defrag
cat /proc/sys/kernel/numa_balancing /proc/sys/vm/zone_reclaim_mode /proc/sys/vm/hugetlb_shm_group
numastat -m | sed -n 's/^HugePages_Total *//p'
findmnt -n -o FSTYPE,OPTIONS /mnt/huge-2M || echo no mount
"""
# Interfaces with the node that the kernel names for them, which is that of the PCI device above a virtio NIC.
NEAR = "cd /sys/class/net; for name in $(ls -I lo); do echo $(cat $name/device/../numa_node) $name; done"
PINS = (
    "grep $(basename $(readlink /sys/class/net/{0}/device))-input /proc/interrupts | cut -d: -f1 |"
    " while read number; do cat /proc/irq/$number/smp_affinity_list; done"
)
LEFT = "find / -xdev -name '*nearmetal*' -not -path '/proc/*'; ls -d /mnt/huge-2M /etc/systemd/system-generators; true"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("memory", "cpu-memory") as running:
        yield running


@pytest.fixture
def near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host whose devices have nodes."""
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("near", "cpu-memory-near") as running:
        yield running


def module(name: str, host: Host, folder: Path, **options: Any) -> dict[str, Any]:
    """What a module returned."""
    return ansible.module(name, host, folder, options)


def look(host: Host) -> list[str]:
    return host.run(LOOK).splitlines()


def process_of(host: Host, unit: str) -> list[str]:
    """The CPUs and the memory policy of the unit's main process, as the kernel shows them."""
    pid = f"$(systemctl show -P MainPID {unit})"
    return host.run(
        f"sed -n 's/^Cpus_allowed_list:\\t//p' /proc/{pid}/status; cut -d' ' -f2 /proc/{pid}/numa_maps | sort -u"
    ).splitlines()


def statuses(result: dict[str, Any]) -> dict[str, str]:
    return {finding["where"]: finding["status"] for finding in result["findings"] if finding["knob"] == "services"}


def test_every_cpu_and_memory_knob_and_back(host: Host, tmp_path: Path) -> None:
    for unit in ("bound", "spread"):
        host.run(f"printf '{SERVICE}' > /etc/systemd/system/{unit}.service")
    host.run("systemctl daemon-reload; systemctl start bound spread")
    before = look(host)
    assert before[:2] == ["8", "2"]
    wanted = {"concerns": WANTED}
    applied = module("tune", host, tmp_path, **wanted)
    assert applied["changed"]
    # numastat counts MB: 48 pages of 2 MiB.
    assert look(host) == [
        *("4", "1"),
        "always madvise [never]",
        *("0", "0", "1", "1"),
        "0.00           96.00           96.00",
        "hugetlbfs rw,relatime,gid=1,mode=1770,pagesize=2M",
    ]
    # Nothing was restarted, and the finding says so; the first CPU of each core of node 1 is 4 and 6.
    assert statuses(applied) == {"bound.service": "needs_restart", "spread.service": "needs_restart"}
    assert process_of(host, "bound")[1:] == ["default"]
    host.run("systemctl restart bound spread")
    assert process_of(host, "bound") == ["4,6", "bind:1"]
    assert process_of(host, "spread") == ["0,2,4,6", "interleave:0-1"]
    again = module("tune", host, tmp_path, **wanted)
    assert not again["changed"], again["msg"]
    assert statuses(again) == {"bound.service": "ok", "spread.service": "ok"}
    module("restore", host, tmp_path)
    assert look(host) == before
    assert host.run(LEFT) == ""
    host.run("systemctl restart bound spread")
    assert process_of(host, "bound") == ["0-7", "default"]


def test_a_kernel_without_a_switch_for_threads_takes_them_offline_one_by_one(host: Host, tmp_path: Path) -> None:
    # An empty folder over smt/ is what a kernel before 4.19 shows.
    host.run("mount -t tmpfs none /sys/devices/system/cpu/smt")
    assert module("smt", host, tmp_path, threads="disabled")["changed"]
    assert host.run("cat /sys/devices/system/cpu/offline").strip() == "1,3,5,7"
    assert host.run("lscpu -p=CPU,CORE | grep -v '#'").split() == ["0,0", "2,1", "4,2", "6,3"]
    assert not module("smt", host, tmp_path, threads="disabled")["changed"]
    module("restore", host, tmp_path)
    assert host.run("cat /sys/devices/system/cpu/online").strip() == "0-7"


def test_cpus_that_somebody_took_offline_stay_offline(host: Host, tmp_path: Path) -> None:
    """`on` in smt/control of this kernel brings every CPU online."""
    offline, hand = "cat /sys/devices/system/cpu/offline", "echo {} > /sys/devices/system/cpu/cpu{}/online"
    host.run(hand.format(0, 2))
    for changed in (True, False):
        assert module("smt", host, tmp_path, threads="disabled")["changed"] == changed
        assert host.run(offline).strip() == "1-2,5,7"  # CPU 3 has its core for itself already
    module("restore", host, tmp_path)
    assert host.run(offline).strip() == "2"
    host.run(hand.format(1, 2))
    module("smt", host, tmp_path, threads="disabled")
    host.run(hand.format(0, 4))
    assert host.run(f"cat /sys/devices/system/cpu/smt/control; {offline}").split() == ["off", "1,3-5,7"]
    module("restore", host, tmp_path)
    assert host.run(f"cat /sys/devices/system/cpu/smt/control; {offline}").split() == ["on", "4"]
    host.run("echo off > /sys/devices/system/cpu/smt/control")
    assert module("smt", host, tmp_path, threads="enabled")["changed"]
    assert host.run(offline).strip() == "4"
    assert not module("smt", host, tmp_path, threads="enabled")["changed"]


def test_services_and_interrupts_go_to_the_node_of_their_device(near: Host, tmp_path: Path) -> None:
    named = dict(line.split() for line in near.run(NEAR).splitlines())
    assert sorted(named) == ["-1", "0", "1"]
    units = "by-nic by-disk by-neither"
    near.run(
        f"for unit in {units}; do printf '{SERVICE}' > /etc/systemd/system/$unit.service; done;"
        f" systemctl daemon-reload; systemctl start {units}; ip link set {named['0']} up; ip link set {named['1']} up"
    )
    services = [
        {"unit": "by-nic.service", "near_interface": named["1"]},
        {"unit": "by-disk.service", "near_device": "nvme0", "policy": "preferred"},
        {"unit": "by-neither.service", "near_interface": named["-1"]},
    ]
    wanted = {"concerns": {"numa": {"services": services}, "network_irq": {"policy": "spread"}}}
    applied = module("tune", near, tmp_path, **wanted)
    assert statuses(applied) == {
        "by-nic.service": "needs_restart",
        "by-disk.service": "needs_restart",
        "by-neither.service": "not_applicable",
    }
    # The first threads of node 1; those of node 0 are shared with ens5, which was there first.
    assert sorted(near.run(PINS.format(named["1"])).split()) == ["4", "6"]
    assert sorted(near.run(PINS.format(named["0"])).split()) == ["1", "2"]
    near.run(f"systemctl restart {units}")
    assert process_of(near, "by-nic") == ["4-7", "bind:1"]
    assert process_of(near, "by-disk") == ["0-3", "prefer:0"]
    assert process_of(near, "by-neither") == ["0-7", "default"]
