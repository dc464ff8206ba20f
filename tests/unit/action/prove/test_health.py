# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that a switch makes ill goes back at once, whatever the figures say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.host import health, load_sample
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.fake_kernel import FakeKernel
from tests.support.prove.plays import CURRENT, Play, current, load
from tests.support.prove.proofs import noisy, run

STAT = "proc/700/stat"


def served_since(host: FakeKernel, ticks: int, name: str = "redis-server") -> None:
    """Let the server of the load be a process that began then."""
    place = Path(host.root) / STAT
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"700 ({name}) S 1 700 700 0 -1 0 0 0 0 0 30 20 0 0 20 0 1 0 {ticks} 0 0\n")


def test_a_health_command_that_fails_on_the_tuned_host_ends_the_run_at_once(host: FakeKernel, play: Play) -> None:
    command = f'[ "$(cat {host.root}{CURRENT})" != tsc ] || {{ echo no answer >&2; exit 7; }}'
    result = play(command=load(host, 500), health=command)
    assert (result["verdict"]["verdict"], result["kept"], current(host)) == ("unsafe", False, "xen"), result
    assert result["msg"] == (
        "unsafe, restored: after a switch to tuned the host wasn't healthy: the health command ended with code 7:"
        " no answer"
    )
    measurements = [json.loads(line) for line in Path(result["record"]).read_text().splitlines()[1:-1]]
    assert [measurement["unhealthy"] for measurement in measurements[:-1]] == [False] * (len(measurements) - 1)
    assert measurements[-1]["unhealthy"]
    assert any("tuned: the health command ended with code 7" in line for line in play.said)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo broken >&2; exit 3", "the health command ended with code 3: broken, before anything was switched"),
        ("sleep 600", "the health command didn't end within 0.3 s, before anything was switched"),
    ],
)
def test_a_host_that_is_ill_before_is_not_switched(
    command: str, words: str, host: FakeKernel, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LIMIT", 0.3)
    result = play(command=load(host, 120), health=command)
    assert result["failed"]
    assert words in result["msg"]
    assert (host.written, host.commands) == ([], [])


@pytest.mark.parametrize(
    ("after", "often", "word"),
    [("tsc", 9, "unsafe"), ("tsc", 1, "better"), ("both", 9, "not_quiet"), ("none", 9, "better")],
)
def test_a_server_that_ends_is_unsafe_if_it_recurs_when_tuned_alone(
    after: str, often: int, word: str, host: FakeKernel, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    served_since(host, 500)
    serve, ends = load_sample.served, []

    def restarts(kernel: FakeKernel, programs: Any) -> Any:
        # The second look, after the switch, to the state that is measured.
        if programs and play.arguments["step"] == "measure" and len(ends) < often:
            looks.append(play.arguments["state"])
            if len(looks) % 2 == 0 and after in ("both", {"tuned": "tsc"}.get(looks[-1])):
                ends.append(looks[-1])
                served_since(host, 900 + len(ends))
        return serve(kernel, programs)

    looks: "list[str]" = []
    monkeypatch.setattr(load_sample, "served", restarts)
    result = play(command=load(host, 120), programs=["redis-server"])
    assert (result["verdict"]["verdict"], current(host)) == (word, "tsc" if word == "better" else "xen"), result
    if word == "unsafe":
        assert result["msg"].endswith(
            "redis-server ended or was restarted after a switch to tuned, and after none to untuned"
        )
        assert ends == ["tuned"] * 2, "the second one ends the run"
    if word == "not_quiet":
        assert "programs that serve the load and ended at a switch" in result["msg"]


def test_a_server_that_ends_when_tuned_and_is_missed_by_the_next_load_is_unsafe() -> None:
    def disturb(step: Step, measurement: Measurement) -> Measurement:
        if step.phase != "pair" or (not seen and step.state == "untuned"):
            return measurement
        seen.append(measurement._replace(metrics=(), error="refused", program_ended=not seen))
        return seen[-1]

    seen: "list[Measurement]" = []
    found = verdict(run(noisy(0.2, 0.01), disturb, seed=8))
    assert found.verdict == "unsafe"
    assert found.reasons[0].startswith("refused after a switch to tuned")


def test_an_unhealthy_host_outweighs_any_figure_in_each_phase() -> None:
    for phase in ("warm_up", "sham", "pair"):

        def disturb(step: Step, measurement: Measurement, ill: str = phase) -> Measurement:
            if step.phase != ill or step.pair < 2:
                return measurement
            return measurement._replace(metrics=(), error="no answer", unhealthy=True)

        record = run(noisy(0.2, 0.01), disturb, seed=8)
        found = verdict(record)
        assert (found.verdict, found.keep, found.over) == ("unsafe", False, True)
        assert sum(measurement.unhealthy for measurement in record.measurements) == 1
        assert found.reasons[0].endswith(" the host wasn't healthy: no answer")


def test_a_resumed_run_has_the_health_command_of_its_record(host: FakeKernel, play: Play) -> None:
    lost: Dict[str, Any] = {"unreachable": True, "msg": "connection reset"}
    play.before_step = lambda number: lost if number == 6 else None
    record = play(command=load(host, 120), health="true")["msg"].rpartition(" ")[2]
    play.before_step = lambda _number: None
    assert play(resume=record)["verdict"]["verdict"] == "better"
    assert play.arguments["health"] == "true"


@pytest.mark.parametrize(("runs", "reason"), [(True, "refused"), (False, "refused (no process of redis-server runs)")])
def test_a_load_that_fails_without_its_server_says_which_program_does_not_run(
    runs: bool, reason: str, host: FakeKernel, play: Play
) -> None:
    if runs:
        served_since(host, 500)
    result = play(command="echo refused >&2; exit 1", programs=["redis-server"])
    assert result["msg"].endswith(f"the command ended with code 1: {reason}")
