# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rings, moderation, offloads and interrupts on drivers that have them: Intel's e1000e and VMware's vmxnet3.

EC2 has neither; like ENA and ixgbevf they answer the kernel's ethtool calls in their own ways: e1000e rounds a ring to
eight descriptors and moderates interrupts, vmxnet3 rounds to 32 and this one moderates nothing. ethtool says what they
have.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.host import Host, instance
from tests.support.lab import ansible

NICS = ("ens6", "ens7")
FEATURES = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("drivers", "drivers") as running:
        yield running


def module(name: str, host: Host, folder: Path, check: bool = False, **options: Any) -> dict[str, Any]:
    return ansible.module(name, host, folder, options, *(["--check"] if check else []))


def statuses(result: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Knob and interface → status."""
    findings = [finding for finding in result["findings"] if ": " in finding["reason"]]
    return {(finding["knob"], finding["reason"].partition(":")[0]): finding["status"] for finding in findings}


def look(host: Host) -> dict[str, list[str]]:
    """Of each NIC: rings, microseconds, offloads, as ethtool prints them."""
    found = {}
    for name in NICS:
        rings = host.run(f"ethtool -g {name} | awk '/^Current/ {{now=1}} now && /^(RX|TX):/ {{print $2}}'").split()
        usecs = host.run(f"ethtool -c {name} 2>/dev/null | awk '/^rx-usecs:/ {{print $2}}'; true").split()
        lines = [line.split()[:2] for line in host.run(f"ethtool -k {name}").splitlines() if len(line.split()) > 1]
        features = {feature.rstrip(":"): word for feature, word in lines}
        found[name] = [*rings, *usecs, *(features[feature] for feature in FEATURES)]
    return found


def test_rings_moderation_and_offloads_of_two_drivers_and_back(host: Host, tmp_path: Path) -> None:
    drivers = host.run("".join(f"basename $(readlink /sys/class/net/{name}/device/driver);" for name in NICS)).split()
    assert drivers == ["e1000e", "vmxnet3"]
    host.run("".join(f"ip link set {name} up;" for name in NICS))
    before = look(host)
    assert [len(values) for values in before.values()] == [6, 5], before
    offloads = {"tso": "disabled", "gro": "disabled"}
    wanted: dict[str, Any] = {
        "interfaces": [
            {"name": "ens6", "rx_ring": "1024", "tx_ring": "max", "rx_usecs": 50, "offloads": offloads},
            {"name": "ens7", "rx_ring": "1024", "tx_ring": "1024", "rx_usecs": 50, "offloads": offloads},
        ],
        "persist": False,
    }
    careful = statuses(module("network_stack", host, tmp_path, check=True, **wanted))
    assert careful["rx_ring", "ens6"] == careful["tx_ring", "ens7"] == "refused", careful
    wanted["allow_disruptive"] = True
    checked = module("network_stack", host, tmp_path, check=True, **wanted)
    assert checked["changed"]
    assert look(host) == before
    applied = module("network_stack", host, tmp_path, **wanted)
    assert applied["changed"], applied["msg"]
    assert look(host) == {
        "ens6": ["1024", "4096", "50", "off", "on", "off"],
        "ens7": ["1024", "1024", "off", "on", "off"],
    }, applied["findings"]
    assert statuses(applied)["rx_usecs", "ens7"] == "not_applicable"
    again = module("network_stack", host, tmp_path, **wanted)
    assert not again["changed"], again["msg"]
    module("restore", host, tmp_path)
    assert look(host) == before


def test_a_driver_with_one_queue_and_an_interrupt_for_each_direction(host: Host, tmp_path: Path) -> None:
    host.run("ip link set ens6 up")
    pins = (
        "awk '/ens6-[rt]x-0/ {print $1+0}' /proc/interrupts | while read n; do cat /proc/irq/$n/smp_affinity_list; done"
    )
    before = host.run(pins).split()
    assert len(before) == 2
    wanted: dict[str, Any] = {
        "interfaces": [{"name": "ens6", "policy": "spread", "queues": "max"}],
        "persist": False,
    }
    applied = module("network_irq", host, tmp_path, **wanted)
    assert statuses(applied)["queues", "ens6"] == "not_applicable"
    placed = host.run(pins).split()
    assert placed[0] == placed[1]
    assert placed[0].isdigit()
    assert not module("network_irq", host, tmp_path, **wanted)["changed"]
    module("restore", host, tmp_path)
    assert host.run(pins).split() == before
