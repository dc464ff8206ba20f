# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Isolated CPUs by network_irq's real main(): set, booted, taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_irq import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import COMMON, validate
from ansible_collections.nearmetal.ec2.plugins.modules import network_irq, restore

from tests.support.boot_trees import BootHost, debian, everything
from tests.support.hosts import FOLDER, built, lay_out

Call = Callable[..., Dict[str, Any]]
WANTED = {"policy": "dedicated", "isolation": "enabled", "persist": False}
CPU = "/sys/devices/system/cpu"
FREE = "1-3,5-7,9-11,13-15"


@pytest.fixture
def host(tmp_path: Path) -> BootHost:
    return debian(tmp_path, changes={f"{CPU}/nohz_full": "(null)\n", f"{CPU}/isolated": "\n"})


def reboot(host: BootHost) -> str:
    """Boot; the kernel shows the CPUs of its arguments."""
    line = host.boot()
    values = dict(word.partition("=")[::2] for word in line.split())
    isolated = values.get("isolcpus", "").rpartition("domain,")[2]
    for name, text in (("isolated", isolated), ("nohz_full", values.get("nohz_full", "(null)"))):
        (Path(host.root) / f"{CPU}/{name}".lstrip("/")).write_text(f"{text}\n")
    return line


def test_interrupts_stay_where_they_are_when_the_other_cpus_are_isolated(host: BootHost, call: Call) -> None:
    before = everything(host)
    applied = call(network_irq.main, host, **WANTED)
    assert not applied.get("failed"), applied["msg"]
    assert applied["reboot_required"]
    placed = next(action for action in applied["actions"] if action["what"] == "network.affinity")["after"]
    assert set(placed.values()) == {"4", "12"}
    line = reboot(host)
    assert line.endswith(f"isolcpus=managed_irq,domain,{FREE} nohz_full={FREE} rcu_nocbs={FREE}")
    again = call(network_irq.main, host, **WANTED)
    assert (again["changed"], again["reboot_required"]) == (False, False)
    back = call(restore.main, host)
    assert back["reboot_required"]
    assert "isolcpus" not in reboot(host)
    after = everything(host)
    shown = {f"{CPU}/{name}".lstrip("/") for name in ("isolated", "nohz_full")}
    changed = {path for path in {**before, **after} if before.get(path) != after.get(path)}
    assert {path for path in changed if "effective" not in path} <= shown


def test_it_is_given_back_alone(host: BootHost, call: Call) -> None:
    call(network_irq.main, host, **WANTED)
    reboot(host)
    given_back = call(network_irq.main, host, policy="dedicated", isolation="kernel", persist=False)
    assert [action["where"] for action in given_back["actions"] if action["what"] == "boot.arguments"] == [
        "isolcpus",
        "nohz_full",
        "rcu_nocbs",
    ]
    assert given_back["reboot_required"]
    assert "rcu_nocbs" not in reboot(host)


def test_cpus_that_we_isolated_do_not_limit_where_interrupts_go(tmp_path: Path) -> None:
    """Four of 32 cores take them; if those four were all that could be chosen from, one of them would take them."""
    host = json.loads((FOLDER / "metal.json").read_text())
    host["shape"] = {"sockets": 1, "cores": 32, "threads": 1, "nodes": 1}
    host["nics"][0]["node"] = -1
    record = {"version": 1, "arguments": {"isolcpus": "isolcpus=managed_irq,domain,4-31"}}
    changes = {f"{CPU}/isolated": "4-31\n", "/var/lib/nearmetal/boot_arguments.json": json.dumps(record)}
    places = []
    for name, files in (("before", {}), ("after", changes)):
        lay_out(tmp_path / name, built(host, files))
        facts = observe(Host(str(tmp_path / name)), ("platform", *CONCERN.domains))
        spec = {**COMMON, **CONCERN.options}
        plan = CONCERN.plan(facts, Wanted(validate(CONCERN.name, spec, WANTED), {}))
        placed = next(action.after for action in plan.actions if action.what == "network.affinity")
        assert isinstance(placed, dict)
        places.append(set(placed.values()))
    assert places == [{"0", "1", "2", "3"}] * 2
