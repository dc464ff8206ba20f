# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dead-man timer where something goes wrong: while it is armed, confirmed or fired, and after a reboot."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any, Callable, Dict, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.record import CHANGE
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, confirm, restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.unit.engine.lease.test_confirmation import CURRENT, current, cutting

__all__ = ["cutting"]

Call = Callable[..., Dict[str, Any]]
NEXT_BOOT = "00000000-0000-4000-8000-000000000002"
WANTED = "var/lib/nearmetal/wanted.json"
UNITS = "run/systemd/system"
STARTS = f"systemctl restart {CHANGE.timer.unit}"


class Killed(BaseException):
    """The end of a run that can't report anything."""


class Systemd(FakeKernel):
    """A host whose systemd answers for our timer as systemctl(1) says."""

    timer = False
    order: "list[str]"  # files written and commands started, in this order
    broken = ""  # the error of a start
    forgets = False  # systemctl reports success, and there is no timer
    killed_after = ""  # the call, or the file, after which the run is killed
    hangs_up = False  # the terminal of the run goes with the connection, as soon as a value is written

    def __init__(self, root: Path, files: Dict[str, str]) -> None:
        super().__init__(root, files)
        self.order = []

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        answer = super().command(argv, timeout)
        self.order.append(argv[0])
        if argv == ("systemctl", "restart", CHANGE.timer.unit):
            self.order[-1] = STARTS
            if self.broken or not (Path(self.root) / UNITS / CHANGE.timer.unit).exists():
                raise NearmetalError(f"{STARTS} failed with code 1: {self.broken or 'Unit not found.'}")
            self.timer = not self.forgets
        if argv[:2] == ("systemctl", "stop") and argv[-1] == CHANGE.timer.unit:
            if not self.timer:
                raise NearmetalError(f"systemctl stop {argv[-1]} failed with code 5: Unit {argv[-1]} not loaded.")
            self.timer = False
        if argv[:2] == ("systemctl", "show") and argv[-1] == CHANGE.timer.unit:
            answer = f"ActiveState={'active' if self.timer else 'inactive'}\n"
        if self.killed_after == self.order[-1]:
            self.killed_after = ""
            raise Killed
        return answer

    def write_value(self, path: str, text: str) -> None:
        super().write_value(path, text)
        self.order.append(path)
        if self.hangs_up:
            os.kill(os.getpid(), signal.SIGHUP)
        if self.killed_after == path:
            self.killed_after = ""
            raise Killed

    def reboot(self, boot_id: str, hardware: "Dict[str, str] | None" = None) -> None:
        super().reboot(boot_id, hardware)
        self.timer = False
        for place in (CHANGE.timer.agent[1:], *(f"{UNITS}/nearmetal-dead-man.{kind}" for kind in ("timer", "service"))):
            (Path(self.root) / place).unlink(missing_ok=True)


@pytest.fixture
def host(tmp_path: Path) -> Systemd:
    return Systemd(tmp_path, files_of("xen_hvm"))


def tuned(call: Call, host: Systemd, source: str, within: int = 90) -> Dict[str, Any]:
    return call(tune.main, host, concerns={"clocksource": {"source": source}}, confirm_within=within)


def source_wanted(host: Systemd) -> "str | None":
    path = Path(host.root) / WANTED
    stored = json.loads(path.read_text())["concerns"] if path.exists() else {}
    return stored["clocksource"]["options"]["source"] if "clocksource" in stored else None


def traces(host: Systemd) -> "list[str]":
    """What of a timer is left."""
    files = [path for path in (CHANGE.path, CHANGE.timer.agent) if (Path(host.root) / path[1:]).exists()]
    units = [path.name for path in (Path(host.root) / UNITS).glob("nearmetal-*")]
    assert len(units) == (2 if CHANGE.timer.agent in files else 0), units
    return [*files, *(["timer"] if host.timer else [])]


def die(call: Call, host: Systemd, after: str, source: str) -> None:
    host.killed_after = after
    with pytest.raises(Killed):
        tuned(call, host, source)


@pytest.mark.usefixtures("cutting")
def test_a_timer_that_does_not_start_leaves_nothing(host: Systemd, call: Call) -> None:
    tuned(call, host, "tsc")
    assert call(confirm.main, host)["changed"]
    host.broken = "Failed to start transient timer unit: Connection timed out"
    failed = tuned(call, host, "hpet")
    assert failed["failed"]
    assert "Connection timed out" in failed["msg"]
    assert "confirm_within" not in failed
    assert (current(host), traces(host), source_wanted(host)) == ("tsc", [], "tsc")
    host.broken = ""
    assert tuned(call, host, "hpet")["confirm_within"] == 90
    assert current(host) == "hpet"


@pytest.mark.usefixtures("cutting")
def test_a_run_that_cuts_its_own_terminal_off_is_completed(host: Systemd, call: Call) -> None:
    """Without pipelining Ansible gives a run a terminal, and the kernel hangs it up with the connection."""

    def dies(number: int, _frame: object) -> None:
        raise Killed(number)

    host.hangs_up = True
    before = signal.signal(signal.SIGHUP, dies)
    try:
        done = tuned(call, host, "tsc")
        assert signal.getsignal(signal.SIGHUP) is dies
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done["confirm_within"] == 90
    assert (current(host), source_wanted(host)) == ("tsc", "tsc"), "what comes after the change is done too"


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("path", ["var/lib/nearmetal/journal.json", WANTED])
def test_damaged_files_do_not_keep_a_host_cut_off(host: Systemd, call: Call, path: str) -> None:
    tuned(call, host, "tsc")
    (Path(host.root) / path).write_text("{")
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host)) == ("xen", [])
    assert (Path(host.root) / path).read_text() == "{"


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("source", ["hpet", "xen"])  # the second value is the original: the run forgets the earlier one
@pytest.mark.parametrize("calls", [["replace_file"], ["replace_file", "remove_file"]], ids=["full", "read-only"])
def test_a_full_disk_does_not_keep_a_host_cut_off(
    host: Systemd, call: Call, calls: "list[str]", source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_where: Any, name: str, *_rest: Any, **_more: Any) -> None:
        raise NearmetalError(f"{name}: the file system takes nothing")

    tuned(call, host, "tsc")
    assert call(confirm.main, host)["changed"]
    assert tuned(call, host, source)["confirm_within"] == 90
    with monkeypatch.context() as patched:
        for name in calls:
            patched.setattr(store, name, refuse)
        for _try in range(2):
            assert command(["expire", "dead-man"], host) == 1
            assert (current(host), len(traces(host)), source_wanted(host)) == ("tsc", 3, source)
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host), source_wanted(host)) == ("tsc", [], "tsc")
    assert not call(restore.main, host).get("failed")
    assert current(host) == "xen"


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("path", ["var/lib/nearmetal/journal.json", WANTED])
def test_files_of_a_newer_version_do_not_keep_a_host_cut_off(
    host: Systemd, call: Call, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned(call, host, "tsc")
    place = Path(host.root) / path
    memory = place.read_text()
    place.write_text(json.dumps({**json.loads(memory), "version": 99}))
    capsys.readouterr()
    assert command(["expire", "dead-man"], host) == 1
    assert (current(host), len(traces(host))) == ("xen", 3)
    message = capsys.readouterr().err
    assert "the earlier values are back" in message
    assert f"/{path} has version 99" in message
    place.write_text(memory)
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host), source_wanted(host)) == ("xen", [], None)
    assert "clock.current" not in (Path(host.root) / "var/lib/nearmetal/journal.json").read_text()


@pytest.mark.usefixtures("cutting")
def test_an_unconfirmed_value_is_not_wanted_although_somebody_took_it_back(host: Systemd, call: Call) -> None:
    tuned(call, host, "tsc")
    host.write_value(CURRENT, "xen")
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host), source_wanted(host)) == ("xen", [], None)


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("path", [CHANGE.timer.agent, CHANGE.path])
def test_a_full_file_system_leaves_nothing(
    host: Systemd, call: Call, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store.replace_file

    def full(where: Any, name: str, *rest: Any, **more: Any) -> None:
        if name == path:
            raise NearmetalError(f"{name}: no space left on its file system; free some and run again")
        real(where, name, *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(store, "replace_file", full)
        failed = tuned(call, host, "tsc")
    assert f"{path}: no space left" in failed["msg"]
    assert (current(host), traces(host), source_wanted(host)) == ("xen", [], None)
    assert tuned(call, host, "tsc")["confirm_within"] == 90


@pytest.mark.usefixtures("cutting")
def test_a_run_that_is_killed_while_it_arms_stops_no_other_run(host: Systemd, call: Call) -> None:
    die(call, host, STARTS, "tsc")
    assert host.timer
    assert not call(confirm.main, host)["changed"], "nothing was changed, so nothing waits"
    again = tuned(call, host, "tsc")
    assert not again.get("failed"), again["msg"]
    assert (current(host), again["confirm_within"]) == ("tsc", 90)
    assert call(confirm.main, host)["changed"]
    assert traces(host) == []


@pytest.mark.usefixtures("cutting")
def test_a_timer_of_a_killed_run_ends_by_itself(host: Systemd, call: Call) -> None:
    die(call, host, STARTS, "tsc")
    assert command(["expire", "dead-man"], host) == 0
    assert traces(host) == []
    die(call, host, CURRENT, "tsc")
    assert current(host) == "tsc", "it was killed right after its change"
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host), source_wanted(host)) == ("xen", [], None)


@pytest.mark.usefixtures("cutting")
def test_confirm_and_disarm_work_without_a_timer(host: Systemd, call: Call) -> None:
    tuned(call, host, "tsc")
    host.timer = False
    assert call(confirm.main, host)["changed"]
    assert (current(host), traces(host)) == ("tsc", [])
    host.moods[CURRENT] = "EIO"
    assert tuned(call, host, "hpet")["failed"]
    assert traces(host) == []


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("by", ["timer", "reboot", "reboot and a run"])
def test_confirmed_values_are_wanted_again(host: Systemd, call: Call, by: str) -> None:
    tuned(call, host, "tsc")
    call(confirm.main, host)
    tuned(call, host, "hpet")
    assert source_wanted(host) == "hpet"
    if by == "timer":
        assert command(["expire", "dead-man"], host) == 0
        assert current(host) == "tsc"
    else:
        host.reboot(NEXT_BOOT)
        if by == "reboot":
            assert command(["reapply"], host) == 0
        else:
            call(tune.main, host, concerns={})
    assert (source_wanted(host), traces(host)) == ("tsc", [])
    assert not call(restore.main, host).get("failed")
    assert current(host) == "xen", "the originals are those of before the first run"


@pytest.mark.usefixtures("cutting")
def test_a_timer_that_systemd_does_not_have_is_not_armed(host: Systemd, call: Call) -> None:
    host.forgets = True
    failed = tuned(call, host, "tsc")
    assert (
        "no dead-man timer could be armed, so nothing was changed: systemd has no nearmetal-dead-man.timer"
        in failed["msg"]
    )
    assert (current(host), traces(host)) == ("xen", [])


@pytest.mark.usefixtures("cutting")
def test_a_service_that_failed_is_not_left_in_the_list_of_failures(host: Systemd, call: Call) -> None:
    tuned(call, host, "tsc")
    host.moods[CURRENT] = "EIO"
    assert command(["expire", "dead-man"], host) == 1
    host.moods.clear()
    assert command(["expire", "dead-man"], host) == 0
    assert "systemctl reset-failed nearmetal-dead-man.service" in host.commands
    assert tuned(call, host, "hpet")["confirm_within"] == 90


def hold(path: str, ready: Any, done: Any) -> None:
    import fcntl

    with Path(path).open("r+b", buffering=0) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(b"4242 ")
        ready.set()
        done.wait()


@pytest.mark.usefixtures("cutting")
def test_the_timer_tries_again_until_it_succeeds(host: Systemd, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    tuned(call, host, "tsc")
    ready, done = multiprocessing.Event(), multiprocessing.Event()
    run = multiprocessing.Process(target=hold, args=(host.real(store.LOCK), ready, done))
    run.start()
    ready.wait()
    assert command(["expire", "dead-man"], host) == 1
    assert "another nearmetal run (pid 4242)" in capsys.readouterr().err
    done.set()
    run.join()
    assert (current(host), len(traces(host))) == ("tsc", 3)
    host.moods[CURRENT] = "EIO"
    assert command(["expire", "dead-man"], host) == 1
    assert len(traces(host)) == 3
    host.moods.clear()
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host), source_wanted(host)) == ("xen", [], None)


def test_the_clock_starts_at_the_first_change_that_may_cut_off(tmp_path: Path, call: Call) -> None:
    host = Systemd(tmp_path, files_of("nitro_big"))
    wanted = {
        "hugepages": {"pages": [{"size": "2M", "count": 64}], "thp": "never"},
        "network_stack": {"mtu": 1500, "allow_disruptive": True},
    }
    done = call(tune.main, host, concerns=wanted, confirm_within=90)
    assert not done.get("failed"), done["msg"]
    armed = host.order.index(STARTS)
    assert host.order[armed + 1] == "systemctl", "it asks systemd whether it has the timer"
    assert host.order[armed + 2].endswith("/mtu")
    assert [path for path in host.order[:armed] if "hugepages" in path], "it takes its time and cuts nobody off"


@pytest.mark.parametrize("seconds", [-5, 1, 29, 3601, 10**12])
def test_no_timer_is_armed_for_no_time_or_for_ever(host: Systemd, call: Call, seconds: int) -> None:
    failed = tuned(call, host, "tsc", within=seconds)
    assert failed["msg"] == (
        f"tune.confirm_within: {seconds} is not possible: give 30 to 3600 seconds, or 0 to go without confirmation"
    )
    assert host.commands == []


@pytest.mark.parametrize("text", ["", "[", "[1]", '{"boot_id": "x", "actions": [{"what": "clock.current"}]}', "{}x"])
def test_a_damaged_file_is_named_and_stops_only_concerns_that_need_it(
    host: Systemd, call: Call, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Path(host.root) / CHANGE.path[1:]
    place.parent.mkdir(mode=0o700)
    place.write_text(text)
    assert not call(clocksource.main, host, source="auto").get("failed")
    assert not call(tune.main, host, concerns={"clocksource": {"source": "auto"}}, confirm_within=90).get("failed")
    assert command(["status"], host) == 0
    capsys.readouterr()
    assert command(["reapply"], host) == 0
    assert f"{CHANGE.path} isn't what nearmetal wrote" in capsys.readouterr().out
    host.timer = True
    for message in (call(confirm.main, host)["msg"], call(confirm.main, host, check=True)["msg"]):
        assert message.startswith(f"{CHANGE.path} isn't what nearmetal wrote")
        assert message.endswith("then remove the file")
    assert command(["expire", "dead-man"], host) == 1
    assert not host.timer, "it isn't tried again forever"
    assert not call(restore.main, host).get("failed")
    assert current(host) == "xen"


@pytest.mark.usefixtures("cutting")
def test_an_unreadable_file_is_tried_again_and_stops_only_changes_that_need_it(host: Systemd, call: Call) -> None:
    tuned(call, host, "tsc")
    place = Path(host.root) / CHANGE.path[1:]
    place.rename(place.with_name("aside"))
    place.mkdir()
    assert f"{CHANGE.path} is a directory" in call(confirm.main, host)["msg"]
    assert command(["reapply"], host) == 0
    assert command(["status"], host) == 0
    assert command(["expire", "dead-man"], host) == 1
    assert (current(host), host.timer) == ("tsc", True)
    place.rmdir()
    place.with_name("aside").rename(place)
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host)) == ("xen", [])
