# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several hosts of one task: one that is unsafe ends the runs of the others, and verdicts may fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.action import prove as action
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import host_map

from tests.support.fake_kernel import FakeKernel
from tests.support.prove.plays import CURRENT, Play, current, load

UNSAFE = "db-1 was unsafe: after a switch to tuned the host wasn't healthy: the health command ended with code 7"


@pytest.fixture
def unsafe_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the hosts of the task share."""
    monkeypatch.setattr(action.ActionModule, "unsafe_file", lambda _action: str(tmp_path / "unsafe"))
    return tmp_path / "unsafe"


def test_an_unsafe_host_ends_the_runs_of_the_others(unsafe_file: Path, host: FakeKernel, play: Play) -> None:
    ill = play(command=load(host, 120), health=f'[ "$(cat {host.root}{CURRENT})" != tsc ] || exit 7')
    assert (ill["verdict"]["verdict"], unsafe_file.read_text()) == ("unsafe", UNSAFE)
    steps = len(play.steps)
    written = list(host.written)
    later = play(command=load(host, 120))
    assert later["failed"]
    assert later["msg"].startswith(f"this run ends because {UNSAFE}")
    assert play.steps[steps:] == ["back"], "nothing began"
    assert host.written == written


def test_a_host_that_is_measured_meanwhile_is_taken_back(unsafe_file: Path, host: FakeKernel, play: Play) -> None:
    play.before_step = lambda number: unsafe_file.write_text(UNSAFE) and None if number == 14 else None
    result = play(command=load(host, 120))
    assert result["failed"]
    assert "; to resume, set prove_resume: " in result["msg"]
    assert f"this run ends because {UNSAFE}: the host is as it was before" in result["msg"]
    assert (play.steps[-1], len(play.steps), current(host)) == ("back", 15, "xen")


@pytest.mark.parametrize(
    ("tuned", "fail_on", "fails"), [(80, ["worse"], True), (80, ["unsafe"], False), (120, ["worse"], False)]
)
def test_a_verdict_that_is_named_fails(
    tuned: int, fail_on: "list[str]", fails: bool, host: FakeKernel, play: Play
) -> None:
    result = play(command=load(host, tuned), fail_on=fail_on)
    assert result.get("failed", False) == fails
    assert result["verdict"]["verdict"] == ("worse" if tuned < 100 else "better")
    assert current(host) == ("xen" if tuned < 100 else "tsc")
    row = host_map.host_of("db-1", result, "failed" if fails else "")
    assert row is not None
    assert row.verdict == result["verdict"]["verdict"]
