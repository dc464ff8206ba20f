# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ends the dead-man timer before it fires, and what doesn't: restores, failed or other runs, a broken systemd."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.record import CHANGE
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError, Unanswered
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, confirm, restore, tune

from tests.support.hosts import files_of
from tests.support.prove.experiments import Steps, files
from tests.unit.engine.lease.test_confirmation import CURRENT, current, cutting
from tests.unit.engine.lease.test_faults import Systemd, source_wanted, traces, tuned

__all__ = ["cutting"]

Call = Callable[..., Dict[str, Any]]


class Mute(Systemd):
    """From a moment on, its systemd answers nothing about our timer."""

    mute = False
    falls_silent = False  # with the first value that is written
    undoes = True  # whether the kernel takes anything after an error
    tries = 0

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        if self.mute and argv[0] == "systemctl" and argv[-1] == CHANGE.timer.unit:
            raise Unanswered(f"{' '.join(argv[:3])} did not end within 200 s")
        return super().command(argv, timeout)

    def write_value(self, path: str, text: str) -> None:
        self.mute = self.mute or self.falls_silent
        if path == CURRENT and not self.undoes:
            self.moods[path] = "late" if not self.tries else "EIO"
            self.tries += 1
        super().write_value(path, text)


@pytest.fixture
def host(tmp_path: Path) -> Mute:
    return Mute(tmp_path, files_of("xen_hvm"))


def restore_by_hand(_call: Call, host: Mute) -> None:
    assert command(["restore"], host) == 0


def restore_of_one(_call: Call, host: Mute) -> None:
    assert command(["restore", "clocksource"], host) == 0


def restore_by_module(call: Call, host: Mute) -> None:
    assert call(restore.main, host)["changed"]


def restore_by_state(call: Call, host: Mute) -> None:
    assert call(clocksource.main, host, state="restored")["changed"]


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("way", [restore_by_hand, restore_of_one, restore_by_module, restore_by_state])
def test_what_is_restored_stays_restored(host: Mute, call: Call, way: Callable[[Call, Mute], None]) -> None:
    tuned(call, host, "tsc")
    assert call(confirm.main, host)["changed"]
    assert tuned(call, host, "hpet")["confirm_within"] == 90
    way(call, host)
    assert (current(host), traces(host), source_wanted(host)) == ("xen", [], None)
    assert command(["expire", "dead-man"], host) == 0, "systemd had started it already"
    assert (current(host), source_wanted(host)) == ("xen", None)
    assert not (Path(host.root) / "var/lib/nearmetal").exists()


@pytest.mark.usefixtures("cutting")
def test_a_restore_that_fails_leaves_the_timer(host: Mute, call: Call) -> None:
    tuned(call, host, "tsc")
    host.moods[CURRENT] = "EIO"
    assert command(["restore"], host) == 1
    assert (current(host), len(traces(host))) == ("tsc", 3)
    host.moods.clear()
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host)) == ("xen", [])


def armed_for_two(host: Mute) -> Path:
    """The file of a change of two concerns."""
    place = Path(host.root) / CHANGE.path[1:]
    armed = json.loads(place.read_text())
    armed["actions"].append({**armed["actions"][0], "concern": "network_stack"})
    armed["devices"].append("")
    armed["wanted"]["network_stack"] = None
    place.write_text(json.dumps(armed))
    return place


@pytest.mark.usefixtures("cutting")
def test_the_other_concerns_of_a_change_still_wait(host: Mute, call: Call) -> None:
    tuned(call, host, "tsc")
    place = armed_for_two(host)
    restore_of_one(call, host)
    left = json.loads(place.read_text())
    assert [action["concern"] for action in left["actions"]] == ["network_stack"]
    assert (len(left["devices"]), list(left["wanted"])) == (1, ["network_stack"])
    assert host.timer
    restore_by_hand(call, host)
    assert traces(host) == [], "a restore of everything leaves nothing to put back"


@pytest.mark.usefixtures("cutting")
def test_a_restore_says_that_the_timer_may_undo_it(
    host: Mute, call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = store.remove_file

    def refuse(where: WritableHost, path: str) -> None:
        if path == CHANGE.path:
            raise NearmetalError(f"{path}: Input/output error")
        real(where, path)

    tuned(call, host, "tsc")
    with monkeypatch.context() as patched:
        patched.setattr(store, "remove_file", refuse)
        capsys.readouterr()
        assert command(["restore"], host) == 1
    assert f"the dead-man timer may set it again: {CHANGE.path}: Input/output error" in capsys.readouterr().out
    restore_by_hand(call, host)
    assert traces(host) == []


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("on_failure", ["keep", "rollback"])
def test_what_a_run_could_not_undo_is_left_to_the_timer(host: Mute, call: Call, on_failure: str) -> None:
    host.undoes = False
    wanted = {"clocksource": {"source": "tsc"}}
    failed = call(tune.main, host, concerns=wanted, confirm_within=90, on_failure=on_failure)
    assert failed["failed"]
    assert "undoing it failed" in failed["msg"]
    assert (current(host), len(traces(host)), failed["confirm_within"]) == ("tsc", 3, 90)
    assert command(["expire", "dead-man"], host) == 1
    assert len(traces(host)) == 3, "it tries again"
    host.undoes = True
    host.moods.clear()
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host)) == ("xen", [])
    restore_by_hand(call, host)
    assert not (Path(host.root) / "var/lib/nearmetal").exists()


@pytest.mark.usefixtures("cutting")
def test_a_confirmation_counts_although_systemd_does_not_answer(host: Mute, call: Call) -> None:
    tuned(call, host, "tsc")
    host.mute = True
    assert call(confirm.main, host)["changed"]
    assert (current(host), traces(host)) == ("tsc", [CHANGE.timer.agent, "timer"])
    host.mute = False
    assert command(["expire", "dead-man"], host) == 0, "the timer finds nothing to do, and ends"
    assert (current(host), traces(host)) == ("tsc", [])


@pytest.mark.usefixtures("cutting")
def test_a_failed_run_tells_of_all_its_concerns_although_systemd_does_not_answer(host: Mute, call: Call) -> None:
    host.moods[CURRENT] = "EIO"
    host.falls_silent = True
    failed = tuned(call, host, "tsc")
    assert "clocksource: the kernel refused tsc" in failed["msg"]
    assert list(failed["errors"]) == ["clocksource"]
    assert "confirm_within" not in failed
    assert not (Path(host.root) / CHANGE.path[1:]).exists()


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("step", ["plan", "begin"])
@pytest.mark.parametrize("reboot", [False, True])
def test_prove_begins_nothing_while_a_change_waits(host: Mute, call: Call, step: str, reboot: bool) -> None:
    """It would set the unconfirmed value again after the timer has taken it back."""
    tuned(call, host, "tsc")
    before, steps = files(host), Steps(call, host)
    assert "an earlier network change still waits to be confirmed" in steps(step, reboot=reboot)["msg"]
    assert files(host) == before
    assert call(confirm.main, host)["changed"]
    assert "waits to be confirmed" not in steps("plan", reboot=reboot)["msg"]


@pytest.mark.usefixtures("cutting")
def test_a_run_without_a_timer_changes_nothing_that_waits(host: Mute, call: Call) -> None:
    """The timer of the first run would take the second one back without a word."""
    tuned(call, host, "tsc")
    assert "an earlier network change still waits to be confirmed" in tuned(call, host, "hpet", within=0)["msg"]
    assert (current(host), source_wanted(host), len(traces(host))) == ("tsc", "tsc", 3)
    assert call(confirm.main, host)["changed"]
    assert tuned(call, host, "hpet", within=0)["changed"]
    assert current(host) == "hpet"
