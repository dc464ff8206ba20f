# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
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
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._proof import signals

from tests.support.fake_kernel import FakeKernel
from tests.support.prove.plays import CURRENT, Play, current, load


def test_ctrl_c_before_the_run_began_says_that_nothing_was_switched(host: FakeKernel, play: Play) -> None:
    play.before_step = lambda number: os.kill(os.getpid(), signal.SIGINT) if number == 1 else None
    result = play(command=load(host, 120))
    assert result["msg"] == "the run was interrupted by SIGINT: nothing was switched"
    assert (play.steps, current(host), host.written) == (["begin", "back"], "xen", [])


def test_ctrl_c_after_the_host_was_taken_back_says_so(host: FakeKernel, play: Play) -> None:
    def press(number: int) -> None:
        if number == 5:
            assert command(["abandoned"], host) == 0
            os.kill(os.getpid(), signal.SIGINT)

    play.before_step = press
    message = play(command=load(host, 120))["msg"]
    assert message.startswith(
        "the run was interrupted by SIGINT: its timer or a person had taken the host back; to resume, "
    )


def test_a_step_that_fails_because_ansible_ended_is_told_to_its_terminal(
    host: FakeKernel, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: List[str] = []

    @contextmanager
    def stderr_of(_parent: int) -> Iterator[Callable[[str], None]]:
        yield said.append

    def end(number: int) -> None:
        if number == 5:
            monkeypatch.setattr(os, "getppid", lambda: 1)
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(signals, "stderr_of", stderr_of)
    play.before_step = end
    result = play(command=load(host, 120))
    assert said[0] == "db-1  Ansible ended: restoring the host …"
    assert said[1].startswith("db-1  Ansible ended: the host is as it was before; to resume, set prove_resume: ")
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
    assert message.endswith(".json can't be written: Is a directory")


@pytest.mark.parametrize("state", ["untuned", "tuned"])
def test_a_value_that_somebody_set_is_named_at_the_end(state: str, host: FakeKernel, play: Play) -> None:
    path = f"{host.root}{CURRENT}"
    source = {"tuned": "tsc", "untuned": "xen"}[state]
    lines = f'[ "$(cat {path})" = {source} ] && [ -e {path}.pair ] && echo hpet > {path}; echo ops 100 1/s'
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
    def press(number: int) -> None:
        if number == 5:
            Path(f"{host.root}{CURRENT}").write_text("hpet\n")
            os.kill(os.getpid(), signal.SIGINT)

    play.before_step = press
    message = play(command=load(host, 120))["msg"]
    assert message.startswith(
        "the run was interrupted by SIGINT: the host is as it was before, but for what somebody else set:"
        " clock.current is hpet, not xen; to resume, set prove_resume: "
    )
