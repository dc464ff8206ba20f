# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease of a rollout on a host: who has it, and how the host comes back without anybody."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List

import jinja2
import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.record import ROLLED
from ansible_collections.nearmetal.ec2.plugins.module_utils._rollout import vitals
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource

from tests.support.hosts import files_of
from tests.support.simulated import ROOT
from tests.unit.engine.lease.test_faults import Systemd

CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


@pytest.fixture
def host(tmp_path: Path) -> Systemd:
    """A host with systemd."""
    return Systemd(tmp_path, files_of("xen_hvm"))


def step(host: Systemd, name: str, run: str, lease: float = 3600) -> Dict[str, Any]:
    """One step of a rollout on the host."""
    done: Dict[str, Any] = vitals.TASKS["rollout"].run(host, {"step": name, "run": run, "lease": lease, "health": ""})
    return done


def test_a_host_belongs_to_one_rollout_until_it_is_released(host: Systemd) -> None:
    assert step(host, "claim", "first")["claimed"]
    assert step(host, "claim", "first")["claimed"], "its time begins anew"
    refused = step(host, "claim", "second")
    assert (refused["claimed"], "first" in refused["msg"]) == (False, True)
    assert not step(host, "release", "second")["released"]
    assert not step(host, "claim", "second")["claimed"]
    assert step(host, "release", "first")["released"]
    assert not step(host, "release", "first")["released"]
    assert not host.exists(ROLLED.path)
    assert step(host, "claim", "second")["claimed"]


def test_a_host_that_nobody_decides_on_restores_itself(host: Systemd, call: Callable[..., Any]) -> None:
    before = host.text(CURRENT)
    assert step(host, "claim", "first", 3600)["lease"] == 3600
    assert "OnActiveSec=3600\n" in (host.text("/etc/systemd/system/nearmetal-rollout.timer") or "")
    call(clocksource.main, host, source="tsc")
    assert host.text(CURRENT) != before
    assert command(["expire", "rollout"], host) == 0
    assert host.text(CURRENT) == before
    assert not ROLLED.is_present(host)


def test_a_restore_of_everything_ends_the_lease_and_one_of_a_concern_doesnt(
    host: Systemd, call: Callable[..., Any]
) -> None:
    step(host, "claim", "first")
    call(clocksource.main, host, source="tsc")
    assert command(["restore", "clocksource"], host) == 0
    assert ROLLED.is_present(host)
    assert command(["restore"], host) == 0
    assert not ROLLED.is_present(host)


@pytest.mark.parametrize(
    ("claimed", "back", "told"),
    [
        ({"claimed": True}, [], True),
        ({"unreachable_host": True}, [], True),  # the answer was lost, and the host may have a lease
        ({"claimed": True}, ["h2"], True),  # a proof has restored it, so it isn't taken back with the others
        ({"claimed": True}, ["h1"], False),
        ({"claimed": False}, [], False),
        ({"skipped": True}, [], False),
        (None, [], False),
    ],
)
def test_whoever_may_have_a_lease_and_is_not_taken_back_is_told(claimed: Any, back: List[str], told: bool) -> None:
    tasks = yaml.safe_load((ROOT / "roles/rollout/tasks/main.yml").read_text())
    environment = jinja2.Environment()
    environment.tests["skipped"] = lambda result: result.get("skipped", False)
    known = {"inventory_hostname": "h1", "rollout_decided": {"back": back}}
    known.update({"rollout_claimed": claimed} if claimed else {})
    assert all(environment.compile_expression(condition)(known) for condition in tasks[-1]["when"]) is told


@pytest.mark.parametrize("name", ["h1", "{address};echo no", "a b", "$(echo no)", "{instance_id}'", "{host}"])
def test_a_name_in_a_hook_is_never_a_command(name: str) -> None:
    tasks = yaml.safe_load((ROOT / "roles/rollout/tasks/hook.yml").read_text())
    text = tasks[1]["ansible.builtin.command"]["argv"][2]
    environment = jinja2.Environment()
    environment.filters["quote"] = shlex.quote
    known = {
        "rollout_hook": "printf '%s|' {host} {address} {instance_id} {host}",
        "inventory_hostname": name,
        "rollout_own": {"instance_id": "i-1"},
    }
    line = environment.from_string(text).render(known)
    said = subprocess.run(["/bin/sh", "-c", line], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said == f"{name}|{name}|i-1|{name}|"


def test_without_a_lease_nothing_is_armed(host: Systemd) -> None:
    assert step(host, "claim", "first", 0) == {"changed": False, "claimed": True, "lease": 0, "msg": "claimed"}
    assert not host.exists(ROLLED.timer.agent)
