# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run that is interrupted, or whose settings somebody else changes, says of the host at its end."""

from __future__ import annotations

import errno
import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import signals

from tests.support.fake_kernel import FakeKernel
from tests.support.prove.plays import CURRENT, Play, current, load


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """What is written to the standard error of Ansible."""
    lines: List[str] = []

    @contextmanager
    def stderr_of(_parent: int) -> Iterator[Callable[[str], None]]:
        yield lines.append

    monkeypatch.setattr(signals, "stderr_of", stderr_of)
    return lines


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_the_run_begins_takes_back_what_the_host_began_after_it(host: FakeKernel, play: Play) -> None:
    play.before_step = lambda number: press() if number == 1 else None
    result = play(command=load(host, 120))
    assert result["msg"] == "the run was interrupted by SIGINT: the host is as it was before"
    assert (play.steps, current(host)) == (["begin", "back"], "xen")


def test_ctrl_c_while_a_run_cannot_begin_says_that_nothing_was_switched(host: FakeKernel, play: Play) -> None:
    play.before_step = lambda number: press() if number == 1 else None
    result = play(command=load(host, 120), health="exit 1")
    assert result["msg"] == "the run was interrupted by SIGINT: nothing was switched"
    assert (play.steps, current(host), host.written) == (["begin", "back"], "xen", [])


@pytest.mark.parametrize(
    ("tuned", "last_step", "line"),
    [(120, "keep", "PROVE  db-1  better, kept"), (80, "back", "PROVE  db-1  worse, restored")],
)
@pytest.mark.parametrize("secret", [False, True])
def test_ctrl_c_after_the_verdict_interrupts_nothing_and_the_verdict_is_told_to_the_terminal(
    tuned: int, last_step: str, line: str, secret: bool, host: FakeKernel, play: Play, heard: List[str]
) -> None:
    play.before_step = lambda _number: press() if play.steps[-1] == last_step else None
    play.no_log = secret
    result = play(command=load(host, tuned))
    assert (heard[0], len(heard) == 1) == (line, secret)
    assert [said for said in play.said if said.startswith("PROVE")] == []
    ended = json.loads(Path(result["record"]).read_text().splitlines()[-1])
    assert line.endswith(f"{ended['verdict']}, {ended['outcome']}")
    assert not signal.sigpending()


def test_ctrl_c_while_a_run_that_failed_is_taken_back_changes_nothing_and_the_end_is_told_to_the_terminal(
    host: FakeKernel, play: Play, heard: List[str]
) -> None:
    def fail(number: int) -> "Dict[str, Any] | None":
        if play.steps[-1] == "back":
            press()
        return {"failed": True, "msg": "no space left"} if number == 5 else None

    play.before_step = fail
    message = play(command=load(host, 120))["msg"]
    assert message.startswith("no space left: the host is as it was before; to resume, set prove_resume: ")
    assert heard == [f"db-1  {message}"]
    assert current(host) == "xen"


def test_ctrl_c_after_the_host_was_taken_back_says_so(host: FakeKernel, play: Play) -> None:
    def take_back(number: int) -> None:
        if number == 5:
            assert command(["expire", "prove"], host) == 0
            press()

    play.before_step = take_back
    message = play(command=load(host, 120))["msg"]
    assert message.startswith(
        "the run was interrupted by SIGINT: its timer or a person had taken the host back; to resume, "
    )


def test_a_step_that_fails_because_ansible_ended_is_told_to_its_terminal(
    host: FakeKernel, play: Play, monkeypatch: pytest.MonkeyPatch, heard: List[str]
) -> None:
    def end(number: int) -> None:
        if number == 5:
            monkeypatch.setattr(os, "getppid", lambda: 1)
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    play.before_step = end
    result = play(command=load(host, 120))
    assert heard[0] == "db-1  Ansible ended: restoring the host …"
    assert heard[1].startswith("db-1  Ansible ended: the host is as it was before; to resume, set prove_resume: ")
    assert (result["failed"], current(host)) == (True, "xen")


CRASH = SimpleNamespace(event=SimpleNamespace(msg="[Errno 22] Invalid argument"))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"exception": CRASH}, "the step measure broke off on the host: [Errno 22] Invalid argument"),
        ({}, "the host gave no answer"),
    ],
)
def test_a_step_that_breaks_off_is_reported_with_its_reason(
    answer: Dict[str, Any], sentence: str, host: FakeKernel, play: Play
) -> None:
    play.before_step = lambda number: {"failed": True, **answer} if number == 5 else None
    message = play(command=load(host, 120))["msg"]
    assert message.startswith(f"{sentence}: the host is as it was before; to resume")


@pytest.mark.parametrize(("tuned", "outcome"), [(120, "better, kept: "), (80, "worse, restored: ")])
def test_a_report_that_cannot_be_written_hides_no_verdict(
    tuned: int, outcome: str, host: FakeKernel, play: Play, tmp_path: Path
) -> None:
    def block(_number: int) -> None:
        for path in (tmp_path / "report" / "prove").glob("*.jsonl"):
            path.with_suffix(".json").mkdir(exist_ok=True)

    play.before_step = block
    message = play(command=load(host, tuned))["msg"]
    assert message.startswith(outcome)
    assert "is needed); but the report " in message
    assert ".json can't be written: Is a directory; name another directory with " in message


@pytest.mark.parametrize("state", ["untuned", "tuned"])
def test_a_value_that_somebody_set_is_named_at_the_end(state: str, host: FakeKernel, play: Play) -> None:
    path = f"{host.root}{CURRENT}"
    source = {"tuned": "tsc", "untuned": "xen"}[state]
    lines = f'[ "$(cat {path})" = {source} ] && [ -e {path}.pair ] && echo hpet > {path}; echo ops 100 1/s larger'
    play.before_step = lambda number: Path(f"{path}.pair").touch() if number == 12 else None
    result = play(command=lines)
    assert result["verdict"]["verdict"] == "not_quiet"
    assert result["msg"].startswith("not quiet, restored, but for what somebody else set: ")
    assert current(host) == "hpet"
    assert result["set_by_others"] == ["clock.current is hpet, not xen"]
    assert "  left as somebody else set it: clock.current is hpet, not xen" in play.said
    report = json.loads(Path(result["reports"][0]).read_text())
    assert report["set_by_others"] == result["set_by_others"]
    assert "left as somebody else set it: clock.current is hpet" in Path(result["reports"][1]).read_text()


def test_ctrl_c_names_the_value_that_somebody_set(host: FakeKernel, play: Play) -> None:
    def set_another(number: int) -> None:
        if number == 5:
            Path(f"{host.root}{CURRENT}").write_text("hpet\n")
            press()

    play.before_step = set_another
    message = play(command=load(host, 120))["msg"]
    assert message.startswith(
        "the run was interrupted by SIGINT: the host is as it was before, but for what somebody else set:"
        " clock.current is hpet, not xen; to resume, set prove_resume: "
    )
