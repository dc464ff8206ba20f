# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network change that nobody confirms takes itself back, and isn't set again by the unit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.clocksource import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease import confirmation
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.record import CHANGE
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, confirm, tune

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


@pytest.fixture
def cutting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock source plays a network setting: what it changes may cut the host off."""

    def plan(facts: Facts, wanted: Wanted) -> Plan:
        found = CONCERN.plan(facts, wanted)
        return found._replace(actions=tuple(action._replace(disruptive=True) for action in found.actions))

    def disruptive(actions: List[Action]) -> List[Action]:
        return [action for action in actions if action.disruptive and action.what == "clock.current"]

    monkeypatch.setattr(requests, "CONCERNS", {CONCERN.name: CONCERN._replace(plan=plan)})
    monkeypatch.setattr(confirmation, "cuts_off", disruptive)


def current(host: FakeKernel) -> str:
    return (Path(host.root) / CURRENT.lstrip("/")).read_text().strip()


def change(what: str, disruptive: bool) -> Action:
    return Action("some", "knob", what, 1, 2, "why", "test", disruptive=disruptive)


def test_only_network_changes_that_disrupt_can_cut_a_host_off() -> None:
    actions = [change("network.rings", True), change("network.rps", False), change("smt.control", True)]
    assert confirmation.cuts_off(actions) == actions[:1]


@pytest.mark.usefixtures("cutting")
def test_armed_before_the_change_and_disarmed_over_a_new_connection(host: FakeKernel, call: Call) -> None:
    wanted = {"clocksource": {"source": "tsc"}}
    checked = call(tune.main, host, check=True, concerns=wanted, confirm_within=90)
    assert checked["confirm_within"] == 90
    assert host.commands == []
    done = call(tune.main, host, concerns=wanted, confirm_within=90)
    assert done["confirm_within"] == 90
    units = Path(host.root) / "run/systemd/system"
    timer = (units / CHANGE.timer.unit).read_text()
    assert "OnActiveSec=90\nOnUnitInactiveSec=15\n" in timer
    assert "DefaultDependencies=no\nIgnoreOnIsolate=yes\n" in timer, "a soft reboot would stop it, and keep the change"
    starts = "ExecStart=/usr/bin/python3 -I /run/nearmetal/dead-man.pyz expire dead-man\n"
    assert starts in (units / "nearmetal-dead-man.service").read_text()
    assert "systemctl restart nearmetal-dead-man.timer" in host.commands
    assert call(confirm.main, host, check=True)["changed"]
    assert call(confirm.main, host)["changed"]
    assert "systemctl stop nearmetal-dead-man.timer" in host.commands[-3:]
    assert not call(confirm.main, host)["changed"]
    assert command(["expire", "dead-man"], host) == 0
    assert current(host) == "tsc", "what was confirmed stays"
    assert "confirm_within" not in call(tune.main, host, concerns=wanted, confirm_within=90)


@pytest.mark.usefixtures("cutting")
def test_an_unconfirmed_value_is_put_back_and_no_longer_wanted(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns={"clocksource": {"source": "auto"}}, confirm_within=90)
    assert current(host) == "tsc"
    assert command(["expire", "dead-man"], host) == 0
    assert current(host) == "xen"
    assert not (Path(host.root) / "var/lib/nearmetal/wanted.json").exists()
    assert command(["reapply"], host) == 0
    assert current(host) == "xen", "the unit must not cut it off again"
    assert not (Path(host.root) / CHANGE.path.lstrip("/")).exists()
    journal = json.loads((Path(host.root) / "var/lib/nearmetal/journal.json").read_text())
    assert all(entry["what"] != "clock.current" for entry in journal["entries"])


@pytest.mark.usefixtures("cutting")
def test_a_reboot_before_anybody_confirmed_brings_the_old_values_for_good(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    call(tune.main, host, concerns={"clocksource": {"source": "auto"}}, confirm_within=90)
    host.reboot("00000000-0000-4000-8000-000000000002")
    capsys.readouterr()
    assert command(["reapply"], host) == 0
    assert current(host) == "xen", "the unit must not cut it off again"
    assert "clocksource: nobody confirmed its network change before the reboot" in capsys.readouterr().out
    assert not call(confirm.main, host)["changed"]
    again = call(tune.main, host, concerns={"clocksource": {"source": "auto"}}, confirm_within=90)
    assert (current(host), again["confirm_within"]) == ("tsc", 90)


@pytest.mark.usefixtures("cutting")
def test_a_second_run_before_anybody_confirmed_asks_to_confirm_the_first(host: FakeKernel, call: Call) -> None:
    wanted = {"clocksource": {"source": "tsc"}}
    call(tune.main, host, concerns=wanted, confirm_within=90)
    again = call(tune.main, host, concerns=wanted, confirm_within=90)
    assert not again["changed"]
    assert again["confirm_within"] == 90, "a second run reaches the host again, and keeps the change"
    other = call(tune.main, host, concerns={"clocksource": {"source": "hpet"}}, confirm_within=90)
    assert other["failed"]
    assert "still waits to be confirmed" in other["msg"]
    assert current(host) == "tsc"
    assert command(["expire", "dead-man"], host) == 0
    assert current(host) == "xen", "the first run's way back is as it was"


@pytest.mark.usefixtures("cutting")
def test_a_timer_that_cannot_be_armed_stops_the_run_before_its_change(host: FakeKernel, call: Call) -> None:
    (Path(host.root) / "run/systemd/system/units").unlink()
    (Path(host.root) / "run/systemd/system").rmdir()
    failed = call(tune.main, host, concerns={"clocksource": {"source": "tsc"}}, confirm_within=90)
    assert failed["failed"]
    assert "confirm_within: 0" in failed["msg"]
    assert current(host) == "xen"
    assert not call(tune.main, host, concerns={"clocksource": {"source": "tsc"}}, confirm_within=0).get("failed")


@pytest.mark.usefixtures("cutting")
def test_a_failed_change_does_not_wait_for_a_confirmation(host: FakeKernel, call: Call) -> None:
    host.moods[CURRENT] = "EIO"
    failed = call(tune.main, host, concerns={"clocksource": {"source": "tsc"}}, confirm_within=90)
    assert failed["failed"]
    assert "confirm_within" not in failed
    assert "systemctl stop nearmetal-dead-man.timer" in host.commands[-3:]


@pytest.mark.parametrize("text", ["", "[", "[1]", '[{"what": "clock.current"}]', "{}x"])
def test_a_hostile_file_puts_nothing_back(
    host: FakeKernel, call: Call, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(clocksource.main, host, source="tsc")
    place = Path(host.root) / CHANGE.path.lstrip("/")
    place.write_text(text)
    assert command(["expire", "dead-man"], host) == 1
    assert CHANGE.path in capsys.readouterr().err
    assert current(host) == "tsc"
