# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host goes between untuned and tuned, and back to how it was, whatever ends the experiment."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of
from tests.support.prove.experiments import (
    BOTH,
    CURRENT,
    DISKS,
    JOURNAL,
    MEMORY,
    SWAPPINESS,
    WANTED,
    Call,
    Steps,
    current,
    files,
    nomerges,
    swappiness,
)

UNITS = {f"run/systemd/system/nearmetal-prove.{kind}" for kind in ("service", "timer")}
STATE = "/run/nearmetal/prove.json"


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


@pytest.fixture
def big(tmp_path: Path) -> FakeKernel:
    return fresh(tmp_path / "big", "nitro_big")


def detach(host: FakeKernel) -> None:
    """Detach the last disk."""
    host.replug({path: text for path, text in host.hardware.items() if "nvme2n1" not in path and "00:1f.0" not in path})


@pytest.fixture
def steps(call: Call, host: FakeKernel) -> Steps:
    return Steps(call, host)


def test_only_what_runs_is_switched_and_nothing_is_left(host: FakeKernel, steps: Steps) -> None:
    before = files(host)
    begun = steps("begin")["answer"]
    assert (begun["tested"], begun["wanted"]) == (["clocksource.source"], {"clocksource.source": ["tsc"]})
    assert current(host) == "xen"
    for state, source in (("tuned", "tsc"), ("untuned", "xen"), ("untuned", "xen"), ("tuned", "tsc")):
        answer = steps("measure", state=state, command="echo ops 12 1/s larger")["answer"]
        assert (current(host), answer["load"]["output"], answer["taken_back"]) == (source, "ops 12 1/s larger\n", [])
    assert set(files(host)) - set(before) == {STATE[1:], "run/nearmetal/prove.pyz", JOURNAL, *UNITS}
    assert steps("back")["answer"] == {"ended": True}
    assert current(host) == "xen"
    assert files(host) == before


def test_a_sham_goes_through_the_same_two_writes(host: FakeKernel, steps: Steps) -> None:
    steps("begin")
    steps("measure", state="untuned")
    host.written.clear()
    steps("measure", state="untuned")
    assert [text.strip() for path, text in host.written if path == CURRENT] == ["tsc", "xen"]


def test_a_host_that_stays_in_its_state_is_not_switched(host: FakeKernel, steps: Steps) -> None:
    steps("begin")
    steps("measure", state="tuned")
    host.written.clear()
    steps("measure", state="tuned", stays=True)
    assert (current(host), [text for path, text in host.written if path == CURRENT]) == ("tsc", [])


def test_a_host_that_nearmetal_tuned_is_untuned_meanwhile_and_tuned_as_before_afterwards(
    host: FakeKernel, steps: Steps, call: Call
) -> None:
    call(tune.main, host, **WANTED)
    before = files(host)
    assert steps("begin")["answer"]["tested"] == ["clocksource.source"]
    assert current(host) == "xen"
    assert command(["reapply"], host) == 0
    assert current(host) == "xen", "the unit sets nothing while prove compares"
    steps("measure", state="tuned")
    steps("measure", state="untuned")
    steps("back")
    assert current(host) == "tsc"
    assert files(host) == before
    call(restore.main, host)
    assert current(host) == "xen"


def test_the_timer_is_wound_up_by_each_step_and_takes_the_host_back(host: FakeKernel, steps: Steps) -> None:
    before = files(host)
    steps("begin", abandon_after=300)
    again = "systemctl restart nearmetal-prove.timer"
    asked = "systemctl show --property=ActiveState nearmetal-prove.timer"
    assert host.commands == ["systemctl daemon-reload", again, asked], "systemctl can be wrong"
    service, timer = ((Path(host.root) / place).read_text() for place in sorted(UNITS))
    assert "ExecStart=/usr/bin/python3 -I /run/nearmetal/prove.pyz expire prove\n" in service
    assert "OnActiveSec=300\n" in timer
    assert "DefaultDependencies=no\nIgnoreOnIsolate=yes\n" in timer, "a soft reboot would stop it"
    host.commands.clear()
    steps("measure", state="tuned")
    counted = [line for line in host.commands if "nearmetal-prove" in line]
    assert counted == [again, asked], "at no time a host without a timer"
    assert command(["expire", "prove"], host) == 0
    assert current(host) == "xen"
    assert files(host) == before
    late = steps("measure", state="tuned")
    assert late["failed"]
    assert "the experiment ended on the host" in late["msg"]
    assert current(host) == "xen", "a controller that comes back late changes nothing"


class StoppedTimers(FakeKernel):
    """A host on which somebody stops each timer, once `stopped` is true."""

    stopped = False

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        super().command(argv, timeout)
        return "ActiveState=inactive\n" if self.stopped and argv[:2] == ("systemctl", "show") else ""


@pytest.mark.parametrize("abandon_after", [300, 0])
def test_the_unit_ends_an_experiment_whose_timer_was_stopped(tmp_path: Path, call: Call, abandon_after: int) -> None:
    host = StoppedTimers(tmp_path, files_of("xen_hvm"))
    before = files(host)
    steps = Steps(call, host)
    steps("begin", abandon_after=abandon_after)
    steps("measure", state="tuned")
    assert current(host) == "tsc"
    host.stopped = True
    assert command(["reapply", "--if-changed"], host) == 0
    if abandon_after:
        assert current(host) == "xen"
        assert {path for path in files(host) if "prove" in path or path == JOURNAL} == set()
        assert steps("measure", state="tuned")["failed"]
    else:
        assert current(host) == "tsc", "whoever wants no timer ends it himself"
        assert steps("back")["answer"] == {"ended": True}
        assert files(host) == before


def test_a_run_that_begins_again_goes_on_and_another_run_is_refused(host: FakeKernel, steps: Steps) -> None:
    steps("begin")
    steps("measure", state="tuned")
    refused = steps("begin", run="r2")
    assert "another run of prove" in refused["msg"]
    assert "prove_resume: nearmetal-report/prove/r1.jsonl, or" in refused["msg"]
    assert current(host) == "tsc"
    assert steps("begin")["answer"]["tested"] == ["clocksource.source"]
    assert current(host) == "xen"


def test_a_value_set_by_somebody_meanwhile_is_noticed(host: FakeKernel, steps: Steps) -> None:
    steps("begin")
    path = f"{host.root}{CURRENT}"
    answer = steps("measure", state="tuned", command=f"echo xen > {path}")["answer"]
    assert answer["taken_back"] == ["clock.current is xen, not tsc"]


def test_a_load_is_killed_when_its_experiment_ends(host: FakeKernel, steps: Steps) -> None:
    steps("begin")
    load = steps("measure", state="tuned", command=f"rm {host.root}{STATE}; exec sleep 60")["answer"]["load"]
    assert load["end"] == "gone"
    assert load["seconds"] < 30


@pytest.mark.parametrize("named", [{}, {"concerns": ["clocksource"]}])
@pytest.mark.parametrize("tuned_before", [False, True])
def test_restore_in_the_middle_ends_the_experiment(
    host: FakeKernel, steps: Steps, call: Call, tuned_before: bool, named: Dict[str, Any]
) -> None:
    before = files(host)
    if tuned_before:
        call(tune.main, host, **WANTED)
    steps("begin")
    steps("measure", state="tuned")
    host.written.clear()
    assert not call(restore.main, host, **named).get("failed")
    assert [text.strip() for path, text in host.written if path == CURRENT] == ["xen"]
    assert current(host) == "xen"
    assert "somebody restored the host" in steps("measure", state="tuned")["msg"]
    assert steps("back")["answer"] == {"ended": False}
    assert command(["expire", "prove"], host) == 0
    assert current(host) == "xen"
    assert files(host) == before


def test_a_restore_of_everything_ends_the_experiment_of_a_host_that_is_untuned(
    host: FakeKernel, steps: Steps, call: Call
) -> None:
    before = files(host)
    steps("begin")
    assert not call(restore.main, host).get("failed")
    assert "somebody restored the host" in steps("measure", state="tuned")["msg"]
    assert (files(host), current(host)) == (before, "xen")


def test_restore_of_another_concern_in_the_middle_sets_again_what_was_tuned_before(big: FakeKernel, call: Call) -> None:
    call(tune.main, big, **MEMORY)
    before = files(big)
    call(tune.main, big, concerns=DISKS)
    Steps(call, big)("begin", tune=BOTH)
    assert swappiness(big) == "60"
    call(restore.main, big, concerns=["block_storage"])
    assert (swappiness(big), nomerges(big)) == ("1", {"0"})
    assert files(big) == before


def test_restore_goes_on_where_the_experiment_cannot_be_taken_back(big: FakeKernel, call: Call) -> None:
    call(tune.main, big, concerns=DISKS)
    steps = Steps(call, big)
    steps("begin", tune=BOTH)
    steps("measure", state="tuned")
    big.moods[SWAPPINESS] = "EINVAL"
    assert call(restore.main, big)["failed"]
    assert (swappiness(big), nomerges(big)) == ("1", {"0"})
    assert steps("measure", state="tuned")["failed"], "nothing is tuned any more"
    assert command(["expire", "prove"], big) == 1
    assert nomerges(big) == {"0"}, "nor is what was tuned before"
    del big.moods[SWAPPINESS]
    assert not call(restore.main, big).get("failed")
    assert swappiness(big) == "60"


class Recorder(FakeKernel):
    """A host that records for each kernel file read or written whether the lock is held."""

    free: List[str]

    def _bytes(self, path: str, limit: int, records: bool) -> Optional[bytes]:
        self._look(path)
        return super()._bytes(path, limit, records)

    def write_value(self, path: str, text: str) -> None:
        self._look(path)
        super().write_value(path, text)

    def _look(self, path: str) -> None:
        lock = Path(self.root) / "run/nearmetal/lock"
        if path != CURRENT or not hasattr(self, "free"):
            return
        if not lock.exists():
            self.free.append(path)
            return
        with lock.open() as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
        self.free.append(path)


def test_a_run_holds_the_lock_from_observing_to_its_last_record(tmp_path: Path, call: Call) -> None:
    host = Recorder(tmp_path, files_of("xen_hvm"))
    call(tune.main, host, **WANTED)
    host.free = []
    assert Steps(call, host)("begin")["answer"]["tested"] == ["clocksource.source"]
    assert host.free == []


def test_only_what_this_run_tunes_takes_part(big: FakeKernel, call: Call) -> None:
    call(tune.main, big, **MEMORY)
    steps = Steps(call, big)
    steps("begin", tune={"concerns": DISKS})
    assert swappiness(big) == "1", "another run wanted it, and this one leaves it as it is"
    steps("measure", state="tuned")
    assert steps("keep")["changed"]
    assert (swappiness(big), nomerges(big)) == ("1", {"2"})
    call(restore.main, big)
    assert (swappiness(big), nomerges(big)) == ("60", {"0"})


def test_a_place_that_cannot_be_restored_stops_no_other_concern(big: FakeKernel, call: Call) -> None:
    call(tune.main, big, concerns={"block_storage": {**DISKS["block_storage"], "nomerges": 1}})
    before = files(big)
    steps = Steps(call, big)
    steps("begin", tune=BOTH)
    steps("measure", state="tuned")
    assert (swappiness(big), nomerges(big)) == ("1", {"2"})
    big.moods[SWAPPINESS] = "EINVAL"
    assert steps("back")["failed"]
    assert (swappiness(big), nomerges(big)) == ("1", {"1"})
    big.written.clear()
    assert command(["expire", "prove"], big) == 1
    assert big.written == [], "what is back isn't written at each try"
    assert (Path(big.root) / STATE.lstrip("/")).exists()
    del big.moods[SWAPPINESS]
    assert steps("back")["answer"] == {"ended": True}
    assert swappiness(big) == "60"
    assert files(big) == before


def test_without_its_journal_a_host_is_not_reported_as_restored(host: FakeKernel, steps: Steps) -> None:
    steps("begin")
    steps("measure", state="tuned")
    path = Path(host.root) / JOURNAL
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    failed = steps("back")
    assert failed["failed"]
    assert "journal" in failed["msg"]
    assert (Path(host.root) / STATE.lstrip("/")).exists()
    path.write_text(whole)
    assert steps("back")["answer"] == {"ended": True}
    assert current(host) == "xen"


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_detached_disk_does_not_prevent_restoring_the_others(big: FakeKernel, call: Call, when: str) -> None:
    call(tune.main, big, **BOTH)
    steps = Steps(call, big)
    if when == "before":
        detach(big)
    assert steps("begin", tune=BOTH)["answer"]["tested"] == ["memory.swappiness", "block_storage.nomerges"]
    steps("measure", state="tuned")
    if when == "during":
        detach(big)
    assert steps("back")["answer"] == {"ended": True}
    assert (swappiness(big), nomerges(big)) == ("1", {"2"})
    call(restore.main, big)
    assert (swappiness(big), nomerges(big)) == ("60", {"0"})


def test_no_other_run_tunes_during_an_experiment(host: FakeKernel, steps: Steps, call: Call) -> None:
    steps("begin")
    before = files(host)
    refused = call(tune.main, host, **WANTED)
    assert refused["msg"].startswith("prove is comparing two states of this host, so nothing else may tune the host")
    assert files(host) == before
    assert call(tune.main, host, check=True, **WANTED)["changed"], "an audit looks all the same"


def test_equal_states_are_reported_and_leave_no_trace(host: FakeKernel, steps: Steps) -> None:
    before = files(host)
    same = steps("begin", tune={"concerns": {"clocksource": {"source": "xen"}}})
    assert same["answer"]["nothing"].endswith("there is nothing to compare")
    assert files(host) == before


def test_only_the_named_knobs_are_switched(host: FakeKernel, steps: Steps) -> None:
    refused = steps("begin", only=["clocksource.vdso"])
    assert refused["failed"]
    assert refused["msg"] == "prove.only has 'clocksource.vdso'; the settings of clocksource are source, tsc_reliable"
    assert current(host) == "xen"


def test_without_a_timer_nothing_begins(host: FakeKernel, steps: Steps) -> None:
    before = files(host)
    host.moods["systemctl restart nearmetal-prove.timer"] = "no"
    failed = steps("begin")
    assert "no timer could be armed, so nothing was changed" in failed["msg"]
    assert files(host) == before


def test_a_setting_that_only_a_reboot_untunes_is_reported_and_stays_recorded(big: FakeKernel, call: Call) -> None:
    call(tune.main, big, **MEMORY)
    big.reboot("99999999-0000-0000-0000-000000000000", {**big.hardware, "/proc/sys/kernel/osrelease": "6.99.0\n"})
    assert swappiness(big) == "1", "a file set it at boot, so nobody knows what this kernel has without nearmetal"
    before = files(big)
    steps = Steps(call, big)
    alone = steps("begin", tune=MEMORY)
    assert "without a reboot or a restart (memory.swappiness can't)" in alone["answer"]["nothing"]
    assert files(big) == before
    begun = steps("begin", tune=BOTH)["answer"]
    assert begun["tested"] == ["block_storage.nomerges"]
    [sentence] = [line for line in begun["untested"] if "in an earlier boot" in line]
    assert sentence.startswith("memory.swappiness: ")
    steps("measure", state="tuned")
    assert steps("back")["answer"] == {"ended": True}
    assert files(big) == before


def test_a_value_set_after_nearmetal_is_reported_as_untested(big: FakeKernel, call: Call) -> None:
    call(tune.main, big, **MEMORY)
    (Path(big.root) / SWAPPINESS.lstrip("/")).write_text("10\n")
    steps = Steps(call, big)
    begun = steps("begin", tune={"concerns": {**DISKS, "memory": {"swappiness": 10}}})["answer"]
    assert [line for line in begun["untested"] if line.startswith("memory.swappiness: somebody set")]
