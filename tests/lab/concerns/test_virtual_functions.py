# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queues, rings, moderation and interrupts of igb, and of its virtual functions, which come and go while it is tuned.

igbvf is the nearest that QEMU has to ixgbevf, whose hardware no lab has. ethtool and /proc say what is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.host import Host, instance
from tests.support.lab import ansible

PHYSICAL, VIRTUAL = "ens6", ("ens6v0", "ens6v1")
PATIENCE = 180.0
FUNCTIONS = f"/sys/class/net/{PHYSICAL}/device/sriov_numvfs"
# An interface a line: its rings, microseconds, TSO and GRO, and the queues that its RSS table names.
_LOOK = r"""
for name in $(cd /sys/class/net; ls -d ens6*); do
    echo "$name" $(ethtool -g $name | awk '/^Current/ {now=1} now && /^(RX|TX):/ {print $2}') \
        $(ethtool -c $name 2>/dev/null | awk '/^[rt]x-usecs:/ {print $2}') \
        $(ethtool -k $name | awk '/^tcp-segmentation-offload|^generic-receive-offload/ {print $2}') \
        $(ethtool -x $name 2>/dev/null | awk '/^ +[0-9]+:/ {for (i = 2; i <= NF; i++) print $i}' | sort -u)
done
"""
_PINS = (
    "awk '/ens6[v01]*-/ {print $1+0, $NF}' /proc/interrupts |"
    ' while read number name; do echo "$name $(cat /proc/irq/$number/smp_affinity_list)"; done'
)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("sriov", "sriov") as running:
        running.run(f"ip link set {PHYSICAL} up")
        yield running


def look(host: Host) -> dict[str, list[str]]:
    """Of each NIC that igb and igbvf drive, what ethtool prints."""
    return {name: words for name, *words in map(str.split, host.run(_LOOK).splitlines())}


def queues(host: Host) -> int:
    return int(host.run(f"ethtool -l {PHYSICAL} | awk '/^Current/ {{now=1}} now && /^Combined/ {{print $2}}'"))


def pins(host: Host) -> dict[str, str]:
    """Interrupt name → the CPUs to which it may go."""
    return dict(line.split() for line in host.run(_PINS).splitlines())


def of(table: dict[str, str], name: str) -> dict[str, set[str]]:
    """Of one interface: queue → the CPUs to which its interrupts may go."""
    found: dict[str, set[str]] = {}
    for vector, cpus in table.items():
        device, _kind, queue = vector.split("-")
        if device == name:
            found.setdefault(queue, set()).add(cpus)
    return found


def spread(host: Host, name: str, number: int, apart: int) -> bool:
    """Whether each of so many queues has one CPU for all its interrupts, and they use so many CPUs."""
    found = list(of(pins(host), name).values())
    cpus = {cpu for both in found for cpu in both}
    return len(found) == number and all(len(both) == 1 for both in found) and len(cpus) == apart and "0-3" not in cpus


def functions(host: Host, number: int) -> None:
    """Have so many virtual functions, which are up."""
    host.run(
        f"echo {number} > {FUNCTIONS}; udevadm settle; for n in $(cd /sys/class/net; ls); do ip link set $n up; done"
    )


def module(name: str, host: Host, folder: Path, check: bool = False, **options: Any) -> dict[str, Any]:
    result = ansible.module(name, host, folder, options, *(["--check"] if check else []))
    assert not result.get("failed"), result
    return result


def statuses(result: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Knob and interface → status."""
    findings = [finding for finding in result["findings"] if ": " in finding["reason"]]
    return {(finding["knob"], finding["reason"].partition(":")[0]): finding["status"] for finding in findings}


def test_queues_of_igb_and_settings_of_both_drivers_and_back(host: Host, tmp_path: Path) -> None:
    assert queues(host) == 4
    before = look(host), pins(host)
    assert before[0] == {PHYSICAL: ["256", "256", "3", "3", "on", "on", "0", "1", "2", "3"]}

    def placed(number: str, check: bool = False) -> dict[str, Any]:
        named = [{"name": PHYSICAL, "policy": "spread", "queues": number}]
        return module("network_irq", host, tmp_path, check, interfaces=named, persist=False, allow_disruptive=True)

    # Up to four queues have an interrupt for each direction, more of them one for both.
    for number, names in (("2", 4), ("max", 8), ("3", 6)):
        wanted = 8 if number == "max" else int(number)
        now = queues(host), pins(host)
        assert placed(number, check=True)["changed"]
        assert (queues(host), pins(host)) == now
        applied = placed(number)
        assert queues(host) == wanted, applied
        assert len(pins(host)) == names
        assert spread(host, PHYSICAL, wanted, min(wanted, 4)), (pins(host), applied)
        assert look(host)[PHYSICAL][6:] == [str(queue) for queue in range(wanted)]
        assert not placed(number)["changed"]

    offloads = {"tso": "disabled", "ntuple": "enabled"}
    settings: dict[str, Any] = {"rx_ring": "1024", "tx_ring": "max", "rx_usecs": 50, "offloads": offloads}

    def tuned(*names: str) -> dict[str, Any]:
        entries = [{"name": name, **settings} for name in names]
        return module("network_stack", host, tmp_path, interfaces=entries, persist=False, allow_disruptive=True)

    applied = tuned(PHYSICAL)
    assert look(host)[PHYSICAL][:6] == ["1024", "4096", "50", "3", "off", "on"], applied
    assert statuses(applied)["ntuple", PHYSICAL] == "not_applicable"
    assert not tuned(PHYSICAL)["changed"]
    module("restore", host, tmp_path)
    assert (look(host), pins(host)) == before

    functions(host, 2)
    drivers = host.run(
        "".join(f"basename $(readlink /sys/class/net/{name}/device/driver);" for name in (PHYSICAL, *VIRTUAL))
    ).split()
    assert drivers == ["igb", "igbvf", "igbvf"]
    before = look(host), pins(host)
    assert [before[0][name] for name in VIRTUAL] == [["1024", "1024", "3", "n/a", "on", "on"]] * 2
    applied = tuned(*VIRTUAL)
    assert [look(host)[name] for name in VIRTUAL] == [["1024", "4096", "50", "n/a", "off", "on"]] * 2, applied
    assert {statuses(applied)["ntuple", name] for name in VIRTUAL} == {"not_applicable"}
    assert not tuned(*VIRTUAL)["changed"]
    named = [{"name": name, "policy": "spread", "queues": "max"} for name in VIRTUAL]
    applied = module("network_irq", host, tmp_path, interfaces=named, persist=False)
    assert {statuses(applied)["queues", name] for name in VIRTUAL} == {"not_applicable"}
    assert all(spread(host, name, 1, 1) for name in VIRTUAL), pins(host)
    module("restore", host, tmp_path)
    assert (look(host), pins(host)) == before
    assert host.run("ls -d /var/lib/nearmetal 2>/dev/null; true") == ""


def test_virtual_functions_that_come_are_tuned_by_the_unit_and_those_that_go_leave_nothing(
    host: Host, tmp_path: Path
) -> None:
    before = look(host), pins(host)
    module("network_irq", host, tmp_path, policy="spread", queues="max", allow_disruptive=True)
    module("network_stack", host, tmp_path, rx_ring="max", offloads={"tso": "disabled"}, allow_disruptive=True)
    assert spread(host, PHYSICAL, 8, 4)

    def wait(description: str, ready: Callable[[], bool]) -> None:
        assert host.wait(ready, PATIENCE, 2.0), (
            f"{description}: {look(host)}\n{pins(host)}\n{host.run('journalctl -b -u nearmetal | tail -40')}"
        )

    def came() -> bool:
        # A virtual function leaves igb two queues, one of them without an interrupt for sending.
        settings = [look(host).get(name, [])[:5] for name in VIRTUAL]
        return (
            settings == [["4096", "1024", "3", "n/a", "off"]] * 2
            and spread(host, PHYSICAL, 2, 2)
            and all(spread(host, name, 1, 1) for name in VIRTUAL)
        )

    # The second time they are those that the journal knows.
    for round_ in ("first", "second"):
        functions(host, 2)
        wait(f"{round_} virtual functions", came)
        functions(host, 0)
        wait(
            "none of them",
            lambda: list(look(host)) == [PHYSICAL] and queues(host) == 8 and spread(host, PHYSICAL, 8, 4),
        )
    assert "not the device" not in host.run("journalctl -b -u nearmetal")
    assert look(host)[PHYSICAL][:5] == ["4096", "256", "3", "0", "off"]

    functions(host, 2)
    wait("virtual functions to restore", came)
    module("restore", host, tmp_path)
    assert [look(host)[name][:5] for name in VIRTUAL] == [["1024", "1024", "3", "n/a", "on"]] * 2
    functions(host, 0)
    module("restore", host, tmp_path)
    assert (look(host), pins(host)) == before
    assert host.run("ls -d /var/lib/nearmetal /etc/systemd/system/nearmetal* 2>/dev/null; true") == ""
