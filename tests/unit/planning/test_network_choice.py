# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a change that stops the traffic of a NIC is made, at a run and at the stages of a boot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.subcommands import OF_UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import stored_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.modules import network_irq, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
ROUTE = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\nens5\t00000000\t01\t0003\t0\t0\t0\t00000000\n"
# What each concern changes of a NIC that may cut the host off, with its value before and after.
DISRUPTIVE = {
    "network_stack": ({"mtu": 1500, "rx_ring": "max"}, (9001, 1024), (1500, 16384)),
    "network_irq": ({"queues": "max"}, 4, 8),
}


def probe(host: FakeKernel) -> None:
    """The driver's own defaults."""
    host.nics.channels.update({name: [8, 4] for name in ("ens5", "ens6")})
    host.nics.rings.update({name: [16384, 1024, 1024, 1024] for name in ("ens5", "ens6")})


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    """Two ENA interfaces, of which the first has the default route."""
    fresh = FakeKernel(tmp_path, files_of("nitro_big", {"/proc/net/route": ROUTE}))
    probe(fresh)
    return fresh


def disrupted(host: FakeKernel, concern: str, name: str) -> Any:
    """The values of a NIC."""
    if concern == "network_irq":
        return host.nics.channels[name][1]
    mtu = (Path(host.root) / f"sys/class/net/{name}/mtu").read_text()
    return int(mtu), host.nics.rings[name][2]


def routes(host: FakeKernel, *names: str) -> None:
    """These NICs have a default route, and no others."""
    head, line = ROUTE.splitlines(keepends=True)
    text = head + "".join(line.replace("ens5", name) for name in names)
    (Path(host.root) / "proc/net/route").write_text(text)


def boot(host: FakeKernel, *names: str) -> None:
    """The next boot, in which DHCP has answered on these NICs so far."""
    host.reboot("22222222-2222-3333-4444-555555555555")
    probe(host)
    routes(host, *names)


@pytest.mark.parametrize("concern", DISRUPTIVE)
@pytest.mark.parametrize("first", [(), ("ens6",)], ids=["no route yet", "another NIC first"])
def test_what_tune_refused_stays_refused_when_dhcp_comes_late(
    first: Tuple[str, ...], concern: str, host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    options, before, after = DISRUPTIVE[concern]
    call(tune.main, host, concerns={concern: options})
    assert [disrupted(host, concern, name) for name in ("ens5", "ens6")] == [before, after]
    for known in (first, (*first, "ens5"), ("ens5",)):
        if known == first:
            boot(host, *known)
        routes(host, *known)
        run(host, stored_requests, conditions=OF_UNIT)
        assert disrupted(host, concern, "ens5") == before, known
        capsys.readouterr()
        assert command(["status"], host) == 0
        assert "ens5: it carries the default route" in " ".join(capsys.readouterr().out.split())
        assert disrupted(host, concern, "ens6") == (before if "ens6" in known else after), known


@pytest.mark.parametrize("concern", DISRUPTIVE)
def test_what_tune_was_allowed_is_set_before_there_are_routes(concern: str, host: FakeKernel, call: Call) -> None:
    options, _before, after = DISRUPTIVE[concern]
    call(tune.main, host, concerns={concern: {**options, "allow_disruptive": True}})
    boot(host)
    run(host, stored_requests, conditions=OF_UNIT)
    assert [disrupted(host, concern, name) for name in ("ens5", "ens6")] == [after, after]


@pytest.mark.parametrize("concern", DISRUPTIVE)
def test_a_nic_that_may_get_the_default_route_is_left_alone(concern: str, host: FakeKernel, call: Call) -> None:
    """An older version stored no decisions, and no run has decided about a NIC that is new."""
    options, before, after = DISRUPTIVE[concern]
    call(tune.main, host, concerns={concern: options})
    place = Path(host.root) / "var/lib/nearmetal/wanted.json"
    stored = json.loads(place.read_text())
    del stored["concerns"][concern]["remembered"]
    place.write_text(json.dumps(stored))
    boot(host)
    run(host, stored_requests, conditions=OF_UNIT)
    assert [disrupted(host, concern, name) for name in ("ens5", "ens6")] == [before, before]
    routes(host, "ens5")
    run(host, stored_requests, conditions=OF_UNIT)
    assert [disrupted(host, concern, name) for name in ("ens5", "ens6")] == [before, after]


def test_the_next_run_of_tune_decides_anew(host: FakeKernel, call: Call) -> None:
    call(network_irq.main, host, queues="max")
    routes(host, "ens6")
    run(host, stored_requests, conditions=OF_UNIT)
    assert host.nics.channels["ens5"][1] == 4
    again = call(network_irq.main, host, queues="max")
    assert host.nics.channels["ens5"][1] == 8
    assert [action["what"] for action in again["actions"]] == ["network.queues"]
    assert not call(network_irq.main, host, queues="max")["changed"]


def test_until_its_bond_is_there_an_interface_gets_what_is_wanted_of_the_bond(host: FakeKernel, call: Call) -> None:
    bond = Path(host.root) / "sys/class/net/bond0"
    (bond / "lower_ens6").mkdir(parents=True)
    (bond / "type").write_text("1\n")
    wanted = {"rx_ring": "max", "interfaces": [{"name": "bond0", "rx_ring": "2048"}], "allow_disruptive": True}
    call(tune.main, host, concerns={"network_stack": wanted})
    rings = {name: table[2] for name, table in host.nics.rings.items()}
    assert rings == {"ens5": 16384, "ens6": 2048}
    boot(host)
    assert not bond.exists()
    run(host, stored_requests, conditions=OF_UNIT)
    assert {name: table[2] for name, table in host.nics.rings.items()} == rings
