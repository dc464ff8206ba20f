# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that is rebooted between untuned and tuned, and comes back to how it was, whoever is lost on the way."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease import expiry, record
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.host import reboots
from ansible_collections.nearmetal.ec2.plugins.modules import restore, smt, tune

from tests.support.prove.experiments import JOURNAL, Call, Steps, files
from tests.support.prove.reboots import TUNING, RebootingHost, rebooting
from tests.support.sequences.faults import Killed

STATE = "var/lib/nearmetal/prove.json"


@pytest.fixture
def host(tmp_path: Path) -> RebootingHost:
    return rebooting(tmp_path / "host")


@pytest.fixture
def steps(call: Call, host: RebootingHost) -> "RebootSteps":
    return RebootSteps(call, host)


class RebootSteps(Steps):
    """The steps of a run with reboots; `host` is rebooted where the controller would do it."""

    def __init__(self, call: Call, host: RebootingHost) -> None:
        super().__init__(call, host)
        self._rebooting = host

    def __call__(self, step: str, **options: Any) -> Dict[str, Any]:
        return super().__call__(step, **{"tune": TUNING, "reboot": True, **options})

    def boot_into(self, state: str) -> Dict[str, Any]:
        assert not self("switch", state=state).get("failed")
        self._rebooting.boot_again()
        return self("measure", state=state, command="cat /proc/self/comm")


def somaxconn(host: RebootingHost) -> int:
    return int((Path(host.root) / "proc/sys/net/core/somaxconn").read_text())


def test_each_state_is_booted_and_nothing_is_left(host: RebootingHost, steps: RebootSteps) -> None:
    before = files(host)
    planned = steps("plan")["answer"]
    assert planned == {"tested": ["clocksource.tsc_reliable", "network_stack.somaxconn"], "untested": []}
    assert files(host) == before
    begun = steps("begin")["answer"]
    assert begun["tested"] == ["clocksource.tsc_reliable", "network_stack.somaxconn"]
    assert begun["wanted"] == {"clocksource.tsc_reliable": ["tsc=reliable"], "network_stack.somaxconn": ["8192"]}
    assert (begun["untested"], begun["boot_id"]) == ([], host.boot_id())
    for state, kernel, value in (("tuned", True, 8192), ("untuned", False, 4096), ("tuned", True, 8192)):
        answer = steps.boot_into(state)["answer"]
        assert (host.tuned, somaxconn(host), answer["taken_back"]) == (kernel, value, []), state
        assert command(["reapply"], host) == 0
        assert host.waits
    back = steps("back", abandon_after=300)
    assert back["answer"] == {"ended": True, "reboot": True}
    assert back["msg"].endswith("what was taken back: reboot it, or its timer does so within 900 s")
    host.boot_again()
    assert steps("back")["answer"] == {"ended": True, "reboot": False}
    assert (host.tuned, host.waits, somaxconn(host)) == (False, False, 4096)
    assert files(host) == before


def test_a_state_counts_only_after_its_own_reboot(host: RebootingHost, steps: RebootSteps) -> None:
    steps("begin")
    assert not steps("measure", state="untuned").get("failed"), "the boot in which the run begins"
    for state in ("tuned", "untuned"):
        assert steps("switch", state=state)["answer"]["arguments"] == (["tsc=reliable"] if state == "tuned" else [])
        answer = steps("measure", state=state)
        assert answer["msg"] == f"the host was not rebooted into the {state} state: its boot id is the same as before"
        host.boot_again()
        other = "untuned" if state == "tuned" else "tuned"
        assert steps("measure", state=other)["failed"]


@pytest.mark.parametrize("lost", ["begun", "written", "tuned", "tuned by hand", "untuned", "taken back", "power cut"])
def test_a_host_whose_controller_is_lost_takes_itself_back_and_reboots_at_most_once(
    lost: str, host: RebootingHost, steps: RebootSteps, capsys: Any
) -> None:
    before = files(host)
    steps("begin", abandon_after=300)
    if lost == "written":
        steps("switch", state="tuned")
    elif lost != "begun":
        steps.boot_into("tuned")
    if lost == "tuned by hand":
        host.boot_again()  # a person reboots it
    elif lost == "untuned":
        steps.boot_into("untuned")
    elif lost == "taken back":
        steps("back")
    elif lost == "power cut":
        steps("back")
        host.boot_again()
    boots = len(host.boots)
    timer = (Path(host.root) / "etc/systemd/system/nearmetal-prove.timer").read_text()
    assert "OnActiveSec=300\nOnUnitInactiveSec=15\n" in timer
    assert host.waits, "each boot starts it"
    assert command(["expire", "prove"], host) == 0
    rebooted = lost in ("tuned", "tuned by hand", "taken back")
    assert len(host.boots) - boots == rebooted
    took_back = "<4>prove made no step for 300 s: the host is as it was before run r1\n"
    said = capsys.readouterr().out
    assert (said == took_back) is not rebooted
    if rebooted:
        assert "taken back, and the host reboots, because it still runs with it" in said
        timer = (Path(host.root) / "etc/systemd/system/nearmetal-prove.timer").read_text()
        assert "OnActiveSec=15\n" in timer
        assert command(["expire", "prove"], host) == 0
        assert capsys.readouterr().out == took_back
        assert len(host.boots) - boots == 1
    assert (host.tuned, host.waits, somaxconn(host)) == (False, False, 4096)
    assert files(host) == before
    late = steps("switch", state="tuned")
    assert "the experiment ended on the host" in late["msg"], "a controller that comes back late changes nothing"
    assert files(host) == before


def test_a_way_back_that_is_killed_after_its_restore_still_reboots_the_host(
    host: RebootingHost, steps: RebootSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(host)
    steps("begin")
    steps.boot_into("tuned")
    with monkeypatch.context() as patch:

        def killed(_host: RebootingHost, lease: record.Lease) -> None:
            if lease.state == "untuned":
                raise Killed
            record.write(_host, lease)

        patch.setattr(expiry, "write", killed)
        with pytest.raises(Killed):
            command(["expire", "prove"], host)
    assert (command(["expire", "prove"], host), len(host.boots)) == (0, 3)
    assert (command(["expire", "prove"], host), len(host.boots), host.tuned) == (0, 3, False)
    assert files(host) == before


def test_a_run_begins_again_after_a_reboot_into_the_untuned_state(host: RebootingHost, steps: RebootSteps) -> None:
    states = steps("begin")["answer"]["states"]
    steps.boot_into("tuned")
    assert steps("begin")["answer"] == {"reboot": True}
    assert steps("begin", run="r2")["msg"].startswith("another run of prove compares two states of this host")
    host.boot_again()
    assert steps("begin")["answer"]["states"] == states
    assert steps("measure", state="untuned")["answer"]["taken_back"] == []


def test_a_tuning_is_kept_when_the_host_runs_with_it(host: RebootingHost, steps: RebootSteps, call: Call) -> None:
    before = files(host)
    steps("begin")
    steps.boot_into("untuned")
    written = {"kept": True, "arguments": ["tsc=reliable"]}
    assert steps("keep")["answer"] == {**written, "reboot_required": True, "reboot": True}
    assert host.waits, "until it runs with the tuning, its timer would take it back"
    host.boot_again()
    assert steps("keep")["answer"] == {**written, "reboot_required": False, "reboot": False}
    assert (host.tuned, somaxconn(host), host.waits) == (True, 8192, False)
    assert not call(tune.main, host, check=True, **TUNING)["changed"]
    call(restore.main, host)
    host.boot_again()
    assert files(host) == before


def test_a_host_that_runs_tuned_is_kept_without_a_reboot(host: RebootingHost, steps: RebootSteps) -> None:
    steps("begin")
    steps.boot_into("tuned")
    assert steps("keep")["answer"]["reboot"] is False
    assert not host.waits


def test_what_another_program_changes_meanwhile_is_seen(host: RebootingHost, steps: RebootSteps) -> None:
    steps("begin")
    steps.boot_into("tuned")
    (Path(host.root) / "proc/sys/net/core/somaxconn").write_text("128\n")
    tuned = {"state": "tuned", "load_on": "controller"}
    assert steps("look", **tuned)["answer"]["taken_back"] == [
        "network_stack.somaxconn net.core.somaxconn isn't tuned any more"
    ]
    steps("switch", state="untuned")
    grub = Path(host.root) / "etc/default/grub.d/98-mine.cfg"
    grub.write_text('GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT tsc=reliable"\n')
    (Path(host.root) / "boot/grub/grub.cfg").write_bytes(host.output(["/usr/sbin/grub-mkconfig"]))
    host.boot_again()
    found = steps("measure", state="untuned")["answer"]["taken_back"]
    assert found == ["clocksource.tsc_reliable tsc is tuned already"]


def test_nothing_else_tunes_the_host_and_a_restore_of_everything_ends_the_run(
    host: RebootingHost, steps: RebootSteps, call: Call
) -> None:
    before = files(host)
    steps("begin")
    steps.boot_into("tuned")
    assert call(tune.main, host, **TUNING)["msg"].startswith("prove is comparing two states of this host")
    refused = call(restore.main, host, concerns=["network_stack"])
    assert refused["msg"].startswith(
        "prove is comparing two states of this host across reboots: to end that, restore everything"
    )
    assert host.waits
    assert not call(restore.main, host).get("failed")
    host.boot_again()
    assert files(host) == before
    assert "the experiment ended on the host" in steps("measure", state="tuned")["msg"]


def test_a_host_that_is_untuned_at_the_moment_can_be_restored_too(
    host: RebootingHost, steps: RebootSteps, call: Call
) -> None:
    before = files(host)
    steps("begin")
    steps.boot_into("untuned")
    refused = [call(restore.main, host, concerns=["smt"]), call(smt.main, host, state="restored")]
    assert all("restore everything, without naming concerns" in failed["msg"] for failed in refused)
    assert not call(tune.main, host, concerns={"network_stack": {}}).get("failed"), "it changes nothing"
    assert host.waits
    assert not steps("measure", state="untuned").get("failed")
    call(restore.main, host)
    assert files(host) == before
    assert steps("switch", state="tuned")["failed"]


def test_a_tuning_that_needs_no_reboot_is_refused(host: RebootingHost, steps: RebootSteps) -> None:
    before = files(host)
    runtime = {"concerns": {"memory": {"swappiness": 1}}}
    assert steps("begin", tune=runtime)["msg"].startswith("no setting of this tuning needs a reboot")
    assert files(host) == before


def test_a_host_that_is_tuned_is_left_alone(host: RebootingHost, steps: RebootSteps, call: Call) -> None:
    call(tune.main, host, **TUNING)
    before = files(host)
    assert "this host is tuned: run nearmetal.ec2.restore, reboot it" in steps("begin")["msg"]
    assert files(host) == before


def test_a_timer_that_can_not_be_armed_leaves_nothing(host: RebootingHost, steps: RebootSteps) -> None:
    before = files(host)
    host.moods["systemctl restart nearmetal-prove.timer"] = "Unit nearmetal-prove.timer is masked."
    assert steps("begin")["msg"].startswith("no timer could be armed, so nothing was changed: systemctl restart")
    assert files(host) == before


def test_a_damaged_file_stops_the_steps_and_a_restore_ends_it(
    host: RebootingHost, steps: RebootSteps, call: Call
) -> None:
    before = files(host)
    steps("begin")
    steps.boot_into("tuned")
    (Path(host.root) / STATE).write_text('{"run": 1}')
    for failed in (steps("switch", state="tuned"), steps("back"), call(tune.main, host, **TUNING)):
        assert failed["msg"].startswith(f"/{STATE} isn't what prove wrote")
    assert command(["expire", "prove"], host) == 1
    call(restore.main, host)
    host.boot_again()
    assert files(host) == before


def test_a_host_whose_originals_can_not_be_read_is_left_alone(
    host: RebootingHost, steps: RebootSteps, call: Call
) -> None:
    call(tune.main, host, **TUNING)
    journal = Path(host.root) / JOURNAL
    content = json.loads(journal.read_text())
    content["entries"] = [{**entry, "knob": 1} for entry in content["entries"]]
    journal.write_text(json.dumps(content))
    (journal.parent / "wanted.json").unlink()
    assert "this host is tuned: run nearmetal.ec2.restore, reboot it" in steps("begin")["msg"]
    assert not host.waits


def unheard(arguments: List[str], host: RebootingHost) -> int:
    """What somebody else does on the host while a step runs, which has no part in the step's answer."""
    with redirect_stdout(StringIO()):
        return command(arguments, host)


def test_nobody_tunes_a_host_while_a_run_begins(
    host: RebootingHost, steps: RebootSteps, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: List[str] = []
    plan_run = reboots.plan_run

    def planned(*given: Any) -> Any:
        refused.append(call(tune.main, host, **TUNING)["msg"])
        return plan_run(*given)

    monkeypatch.setattr(reboots, "plan_run", planned)
    assert steps("begin")["answer"]["tested"]
    assert refused[0].startswith("another nearmetal run ")
    assert (host.waits, somaxconn(host)) == (True, 4096)


def test_a_restore_while_a_step_waits_for_the_end_of_the_boot_ends_the_run(
    host: RebootingHost, steps: RebootSteps
) -> None:
    before = files(host)
    steps("begin")
    steps("switch", state="tuned")
    host.boot_again()
    host.meanwhile["systemctl is-system-running --wait"] = lambda: unheard(["restore"], host)
    assert "the experiment ended on the host" in steps("measure", state="tuned")["msg"]
    host.boot_again()
    assert (files(host), host.waits, somaxconn(host)) == (before, False, 4096)


def test_a_step_does_not_go_on_while_the_host_is_taken_back(
    host: RebootingHost, steps: RebootSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps("begin")
    steps.boot_into("tuned")
    taken_back: Dict[str, str] = {}

    def abandoned() -> None:
        unheard(["expire", "prove"], host)
        taken_back.update(files(host))

    host.meanwhile["systemctl is-system-running --wait"] = abandoned
    monkeypatch.setattr(host, "boot_again", lambda: None)  # the reboot that this asks for comes after the step
    assert "the experiment ended on the host" in steps("measure", state="tuned")["msg"]
    assert files(host) == taken_back


@pytest.mark.parametrize("ends", ["the timer", "a restore", "another run", "the same run"])
def test_a_timer_without_an_experiment_is_removed(
    ends: str, host: RebootingHost, steps: RebootSteps, call: Call
) -> None:
    before = files(host)
    steps("begin")
    (Path(host.root) / STATE).unlink()
    if ends == "the timer":
        assert command(["expire", "prove"], host) == 0
    elif ends == "a restore":
        assert not call(restore.main, host).get("failed")
    elif ends == "another run":
        runtime = {"concerns": {"memory": {"swappiness": 1}}}
        assert not steps("begin", tune=runtime, reboot=False).get("failed")
        assert not host.waits, "its unit would have the name of the new timer"
        steps("back", reboot=False)
    else:
        assert not steps("begin").get("failed")
        steps("back")
    assert (files(host), host.waits) == (before, False)


def test_a_run_whose_file_can_not_be_written_leaves_no_timer(
    host: RebootingHost, steps: RebootSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(host)

    def full(*_given: object) -> None:
        raise NearmetalError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(record, "write", full)
        assert "no space left on device" in steps("begin")["msg"]
    assert (files(host), host.waits) == (before, False)
