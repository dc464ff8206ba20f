# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose DHCP answers after the unit has planned: what tune refused because of the default route stays refused.

The host's own files hold DHCP back, and let another NIC have a default route first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance, planned
from tests.support.lab.ansible import module

LOW, HIGH = "1500", "9001"
EARLY = "/run/early.json"
# ens5 carries ssh. Its DHCP begins when the unit has planned.
STATIC = """\
auto lo ens6 ens7
iface lo inet loopback
iface ens6 inet static
    address 10.9.6.2/24
iface ens7 inet static
    address 10.9.7.2/24
"""
HELD_BACK = """\
auto ens5
iface ens5 inet dhcp
    pre-up until test -e /run/nearmetal/fingerprint; do sleep 1; done
    pre-up ip route show default > /run/early_routes
"""
# What the operator sees before there is a route, and what the unit plans once another NIC has the only one.
LOOK = f"    pre-up nearmetal status --json > {EARLY} || true\n"
FIRST_ROUTE = "    up ip route add default via 10.9.6.1 dev ens6 metric 4000\n"
AGAIN = "    pre-up nearmetal reapply\n"


def mtus(host: Host) -> dict[str, str]:
    """What ip(8) says of each NIC."""
    return {link["ifname"]: str(link["mtu"]) for link in json.loads(host.run("ip -json link")) if link["mtu"] != 65536}


def refused(state: str) -> dict[str, str]:
    """Place of the NIC → reason, for each MTU that `nearmetal status` says is refused."""
    knobs = [knob for concern in json.loads(state)["concerns"] for knob in concern["knobs"]]
    return {knob["where"]: knob["reason"] for knob in knobs if (knob["knob"], knob["status"]) == ("mtu", "refused")}


def booted(host: Host) -> tuple[str, str]:
    """The default routes that there were before DHCP answered, and the unit's log."""
    host.reboot()
    assert planned.wait(host) == "inactive"
    return host.run("cat /run/early_routes").strip(), host.run("journalctl -b -u nearmetal -o cat")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("network", "late") as running:
        yield running


def test_a_refused_mtu_stays_refused_when_the_default_route_comes_late(host: Host, tmp_path: Path) -> None:
    host.run("ip address add 10.9.6.2/24 dev ens6; ip link set ens6 up; ip link set ens7 up")
    place = host.run("basename $(readlink /sys/class/net/ens5/device)").strip()
    module("tune", host, tmp_path, {"concerns": {"network_stack": {"mtu": 9001}, "network_irq": {"policy": "spread"}}})
    tuned = {"ens5": LOW, "ens6": HIGH, "ens7": HIGH}
    assert mtus(host) == tuned
    assert list(refused(host.run("nearmetal status --json"))) == [place]

    host.put((STATIC + HELD_BACK + LOOK).encode(), "/etc/network/interfaces")
    early_routes, log = booted(host)
    assert early_routes == ""
    assert mtus(host) == tuned, log
    for state in (host.run(f"cat {EARLY}"), host.run("nearmetal status --json; true")):
        assert "it carries the default route" in refused(state)[place], log

    # ens5 came up after the unit had planned: the timer finds that.
    assert host.wait(lambda: host.run("nearmetal status > /run/status; echo $?").strip() == "0", 300.0, 5.0), log

    first = STATIC.replace("10.9.6.2/24\n", f"10.9.6.2/24\n{FIRST_ROUTE}")
    host.put((first + HELD_BACK + AGAIN).encode(), "/etc/network/interfaces")
    early_routes, log = booted(host)
    assert early_routes.startswith("default via 10.9.6.1 dev ens6")
    assert mtus(host)["ens5"] == LOW, log
    assert mtus(host)["ens7"] == HIGH, log
    assert "it carries the default route" in refused(host.run("nearmetal status --json; true"))[place], log
