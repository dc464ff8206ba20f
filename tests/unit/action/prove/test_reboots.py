# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that reboots its host before each measurement: the controller's side, against a host that boots from disk."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Mapping, Optional

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.nearmetal.ec2.plugins.action import prove as action
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import reboots

from tests.support.prove.experiments import Call, files
from tests.support.prove.reboots import TUNING, RebootingHost, rebooting
from tests.unit.action.prove import test_action, test_health

OPTIONS: Dict[str, Any] = {"tune": TUNING, "reboot": True, "pairs": 7, "seed": 4711}


class Play(test_action.Play):
    """The action, for which a reboot is one of the simulated host."""

    host: RebootingHost
    before_reboot: "Callable[[int], Optional[str]]" = staticmethod(lambda _number: None)
    reboots = 0

    def __call__(self, **options: Any) -> Dict[str, Any]:
        return super().__call__(**{**OPTIONS, **options})

    def reboot(self, within: int, task_vars: Mapping[str, Any], written: reboots.Written) -> None:
        self.reboots += 1
        lost = self.before_reboot(self.reboots)
        if lost:
            raise NearmetalError(reboots.not_back(within, lost, written))
        self.host.boot_again()


@pytest.fixture
def play(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr(action.ActionModule, "report_directory", lambda _action: str(tmp_path / "report"))
    host = rebooting(tmp_path / "host")
    found = Play(call, host)
    found.host = host
    return found


def load(play: Play, tuned: int) -> str:
    """A load whose figure depends on how the kernel was booted."""
    return (
        f"grep -q tsc=reliable {play.host.root}/proc/cmdline && echo ops {tuned} 1/s larger || echo ops 100 1/s larger"
    )


def test_a_host_without_systemd_is_refused_without_an_advice_that_would_be_refused_too(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RebootingHost, "booted", lambda _host: False)
    message = play(command=load(play, 120))["msg"]
    assert message == (
        "prove_reboot needs systemd and Python 3.7 or later on the host, for the timer that takes it back when its"
        " controller is lost"
    )
    message = play(command=load(play, 120), reboot=False)["msg"]
    assert "on the host: set prove_abandon_after: 0 to go without it; a host whose controller" in message
    assert play.host.commands == []


def test_a_better_tuning_is_kept_and_in_force(play: Play) -> None:
    result = play(command=load(play, 120))
    assert (result["verdict"]["verdict"], result["kept"], result["reboot_required"]) == ("better", True, False), result
    assert (play.host.tuned, play.host.waits) == (True, False)
    assert result["tested"] == ["clocksource.tsc_reliable", "network_stack.somaxconn"]
    report = json.loads(Path(result["reports"][0]).read_text())
    boots = [measurement["phase"] for measurement in report["measurements"]].count("pair")
    assert (result["verdict"]["pairs"], boots, report["settings"]["reboot"]) == (7, 14, True)
    assert play.said[1] == (
        "db-1  the host is rebooted 18 to 48 times, which takes at most 12 h 53 min: each reboot up to 600 s"
    )
    # Warm-up in the present boot; three sham pairs, seven pairs, and the soak, after which the host is tuned.
    assert play.reboots == 21
    lines = [json.loads(line) for line in Path(result["record"]).read_text().splitlines()]
    measurements = [line for line in lines if line["kind"] == "measurement"]
    seen = [line["before"]["boot_id"] for line in measurements if line["phase"] != "soak"]
    assert len(set(seen)) == len(seen), "each measurement has a boot of its own"
    assert len({line["before"]["boot_id"] for line in measurements}) == len(seen) + 1, "and the soak has one"
    assert any(line.startswith("  21 reboots of ") for line in play.said)
    assert "not watched: throttled, allowance, timers, clock" in "\n".join(play.said)
    assert play.steps.count("measure") == 1 + 16 * 21 + 33, "the first fifteen loads of a boot aren't counted"


def test_one_setting_is_compared_by_reboots_and_nothing_of_it_stays(play: Play) -> None:
    before = files(play.host)
    only = {"only": ["clocksource.tsc_reliable"], "tune": {"workload": ["base"], **TUNING}}
    assert play(check=True, command=load(play, 120), **only)["tested"] == ["clocksource.tsc_reliable"]
    assert (files(play.host), play.reboots) == (before, 0)
    result = play(command=load(play, 120), **only)
    assert (result["verdict"]["verdict"], result["kept"]) == ("better", False), result
    assert result["tested"] == ["clocksource.tsc_reliable"]
    assert result["msg"].startswith("better, restored (run tune to keep it)")
    assert (play.host.tuned, play.host.waits, files(play.host)) == (False, False, before)
    assert any("tsc=reliable" in boot for boot in play.host.boots)
    somaxconn = (Path(play.host.root) / "proc/sys/net/core/somaxconn").read_text()
    assert somaxconn == "4096\n", "what wasn't named was never set"


def test_a_setting_that_isn_t_known_is_refused_before_the_first_reboot(play: Play) -> None:
    message = play(command="true", only=["clocksource.sauce"])["msg"]
    assert message == (
        "prove.only has 'clocksource.sauce'; the settings of clocksource are source, tsc_reliable; is source meant?"
    )
    assert (play.reboots, play.host.waits) == (0, False)
    runtime = {"concerns": {"memory": {"swappiness": 1}}}
    without_reboot = play(command="true", tune=runtime)["msg"]
    assert without_reboot.startswith("no setting of this tuning needs a reboot: leave prove_reboot out")


def test_a_host_that_does_not_come_back_after_one_setting_was_compared_holds_nothing(play: Play) -> None:
    def gone(_number: int) -> Optional[str]:
        if play.steps[-1] != "keep":
            return None
        play.lose()
        return "Timed out"

    play.before_reboot = gone
    message = play(command=load(play, 120), only=["clocksource.tsc_reliable"], seed=4711)["msg"]
    assert "its files are as they were before the run;" in message
    assert "it is tuned" not in message


def test_a_tuning_that_breaks_its_load_is_taken_back(play: Play) -> None:
    before = files(play.host)
    result = play(command=f"grep -q tsc=reliable {play.host.root}/proc/cmdline && exit 1 || echo ops 1 1/s larger")
    assert (result["verdict"]["verdict"], result["kept"]) == ("unsafe", False)
    assert (play.host.tuned, files(play.host)) == (False, before)


def test_a_load_that_fails_ends_the_run_before_the_first_reboot(play: Play) -> None:
    result = play(command="exit 3")
    assert (result["verdict"]["verdict"], play.reboots) == ("unclear", 0)
    assert not play.host.waits


def test_without_the_option_nothing_is_rebooted(play: Play) -> None:
    tuning = {"concerns": {**TUNING["concerns"], "memory": {"swappiness": 1}}}
    result = play(command="echo ops 1 1/s larger", tune=tuning, reboot=False, abandon_after=0)
    assert play.reboots == 0
    assert len(play.host.boots) == 1
    assert result["tested"] == ["memory.swappiness"]


def test_a_host_that_does_not_come_back_is_reported_and_takes_itself_back(play: Play) -> None:
    before = files(play.host)
    lost = {"failed": True, "msg": "Failed to connect to the host via ssh: No route to host"}

    def gone(number: int) -> Optional[str]:
        if "switch" in play.steps and "tsc=reliable" in (play.host.arguments()):
            play.before_step = lambda _number: lost
            return "Timed out waiting for last boot time check (timeout=600)"
        return None

    play.before_reboot = gone
    message = play(command=load(play, 120))["msg"]
    assert message == (
        "the host did not come back from its reboot within 600 s (Timed out waiting for last boot time check"
        " (timeout=600)): its files hold the tuning; if it can't boot, remove the kernel arguments tsc=reliable in the"
        " menu of its boot loader; the host could not be restored (Failed to connect to the host via ssh: No route to"
        " host); its timer restores it 900 s after the last step or boot, and reboots it once more if it runs tuned"
    )
    play.host.boot_again()
    boots = len(play.host.boots)
    assert (command(["expire", "prove"], play.host), command(["expire", "prove"], play.host)) == (0, 0)
    assert (len(play.host.boots) - boots, files(play.host)) == (1, before)


def test_a_host_that_does_not_come_back_while_the_tuning_is_kept_is_said_to_hold_it(play: Play) -> None:
    def gone(_number: int) -> Optional[str]:
        if play.steps[-1] != "keep":
            return None
        play.lose()
        return "Timed out"

    play.before_reboot = gone
    message = play(command=load(play, 120), seed=1, soak=0)["msg"]  # whose last measurement is untuned
    assert message == (
        "the host did not come back from its reboot within 600 s (Timed out): its files hold the tuning; if it can't"
        " boot, remove the kernel arguments tsc=reliable in the menu of its boot loader; the host could not be restored"
        " (no route to host); it is tuned unless its timer restores it 900 s after the last step or boot, and reboots"
        " it once more if it runs tuned: run an audit to see"
    )


def test_a_host_that_is_ill_after_the_first_switch_of_a_boot_ends_the_run(play: Play) -> None:
    ill = {"answer": {"switch_seconds": 0.1, "unhealthy": "redis-server ended or was restarted"}}
    play.before_step = lambda _number: ill if play.steps[-2:] == ["switch", "measure"] else None
    result = play(command=load(play, 120))
    assert result["msg"].endswith("the host wasn't healthy: redis-server ended or was restarted"), result
    assert (result["verdict"]["verdict"], play.steps[-3:]) == ("unsafe", ["switch", "measure", "back"])


def test_a_server_that_starts_while_the_host_boots_is_healthy(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    command_of = RebootingHost.command

    def booting(host: RebootingHost, argv: "list[str] | tuple[str, ...]", timeout: float = 60) -> str:
        if "is-system-running" in argv:
            test_health.served_since(host, 500 + len(host.boots))
        return command_of(host, argv, timeout)

    monkeypatch.setattr(RebootingHost, "command", booting)
    test_health.served_since(play.host, 500)
    assert play(command=load(play, 120), programs=["redis-server"])["verdict"]["verdict"] == "better"


def test_ctrl_c_takes_the_host_back_and_the_run_can_go_on(play: Play) -> None:
    before = files(play.host)

    def press(number: int) -> None:
        if number > 16 and play.host.tuned:
            play.before_step = lambda _number: None
            signal.raise_signal(signal.SIGINT)

    play.before_step = press
    message = play(command=load(play, 120))["msg"]
    assert "the run was interrupted by SIGINT: the host is as it was before; to resume" in message
    assert (play.host.tuned, files(play.host)) == (False, before)
    play.before_step = lambda _number: {"failed": True, "msg": "gone"} if play.steps[-1] == "switch" else None
    again = play(resume=message.rpartition(" ")[2], reboot=False, command="exit 1")
    assert again["msg"].startswith("gone: the host is as it was before; to resume"), "with the reboots of the record"


@pytest.mark.parametrize(
    ("options", "hosts", "sentence"),
    [
        ({"each": True}, 1, "prove.each and reboot are both set: each concern would take up to twice as many"),
        ({"against": {"workload": ["web"]}}, 1, "prove.against and prove.reboot are both set"),
        ({}, 3, "prove.reboot is set, and this play has 3 hosts at once"),
    ],
)
def test_what_does_not_go_with_reboots_is_refused(
    options: Dict[str, Any], hosts: int, sentence: str, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = play.run
    batch = [f"db-{number}" for number in range(hosts)]
    monkeypatch.setattr(play, "run", lambda task_vars: run(task_vars={**task_vars, "ansible_play_batch": batch}))
    assert play(command="true", **options)["msg"].startswith(sentence)
    assert (play.steps, play.host.commands) == ([], [])


def test_the_machine_of_the_controller_is_not_rebooted(play: Play) -> None:
    before = files(play.host)
    own = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    play.host.reboot(own)
    result = play(command="true")
    assert "the host is the machine on which Ansible runs, which would end the run" in result["msg"]
    assert (play.reboots, files(play.host)) == (0, before)


class Reboot:
    """Stands in for ansible.builtin.reboot, which is tried on the lab."""

    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome
        self.made: Dict[str, Any] = {}

    def get(self, name: str, **parts: Any) -> "Reboot":
        self.made = {"name": name, **parts}
        return self

    def run(self, task_vars: Mapping[str, Any]) -> Dict[str, Any]:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return dict(self._outcome)


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        ({"rebooted": True, "changed": True}, ""),
        ({"failed": True, "rebooted": True, "msg": "Timed out"}, "within 90 s (Timed out): its files are as they were"),
        ({"failed": True, "rebooted": False, "msg": "Reboot command failed."}, "(Reboot command failed.)"),
        (AnsibleConnectionFailure("no route"), "(no route)"),
    ],
)
def test_ansible_s_own_reboot_is_used(outcome: Any, sentence: str, play: Play) -> None:
    task = SimpleNamespace(copy=lambda: SimpleNamespace(args={}))
    play._task, play._play_context, play._loader, play._templar = task, None, None, None
    plugin = Reboot(outcome)
    play._shared_loader_obj = SimpleNamespace(action_loader=plugin)
    try:
        action.ActionModule.reboot(play, 90, {}, reboots.Written())
        message = ""
    except NearmetalError as error:
        message = str(error)
    assert sentence in message
    assert bool(sentence) == bool(message)
    assert (plugin.made["name"], plugin.made["task"].args["reboot_timeout"]) == ("ansible.builtin.reboot", 90)
