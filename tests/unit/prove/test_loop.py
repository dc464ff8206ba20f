# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run on a simulated host: it measures, decides, keeps or takes back, and goes on where it was killed."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.guards import Firing
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import PHASES, Measurement, Start
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.settings import settings_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import Verdict, verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import document, log, loop, sentences

from tests.support.prove.proofs import run

FINE: Mapping[str, Any] = {"code": 0, "output": "", "message": "", "seconds": 1.0, "end": ""}


TAKEN_BACK = sentences.Ending(False, ["a.b"])


class Host(loop.HostControl):
    """A host whose load takes a second, `gain` less of it when tuned."""

    def __init__(self, gain: float, noise: float = 0.01, change: "Optional[Callable[[int], Mapping[str, Any]]]" = None):
        self._gain, self._generator, self._change = gain, random.Random(7), change
        self._noise = noise
        self.states: List[str] = []
        self.ended = ""

    def measure(self, state: str, without: str, stays: bool = False) -> loop.Answer:
        self.states.append(f"without {without}" if without and state == "untuned" else state)
        # The warm-up has a value in its middle that is neither the least nor the most.
        noise = (
            self._generator.gauss(0, self._noise) if len(self.states) > 3 else (0.0, 0.02, 0.01)[len(self.states) - 1]
        )
        seconds = (1 + noise) * (1 - (self._gain if state == "tuned" else 0))
        sample = {"boot_id": "1", "host_seconds": time.time()}
        more = self._change(len(self.states)) if self._change else {}
        return loop.Answer({**FINE, "seconds": seconds, **more}, sample, sample, switch_seconds=0.1)

    def reboot_into(self, state: str) -> float:
        raise AssertionError(f"rebooted into {state} without prove_reboot")

    def wait_for_quiet(self, disturbances: "Sequence[Firing]") -> None:
        self.states.append(f"waits for {disturbances[0].guard}")

    def profile(self) -> None:
        assert not self.ended, "the states are profiled before the host is left in one"

    def keep(self) -> bool:
        self.ended = "kept"
        return True

    def restore(self) -> None:
        self.ended = "back"


class Killed(BaseException):
    """The controller was killed."""


def begin(folder: Path, **settings: Any) -> log.Log:
    start = Start(
        settings_of({"seed": 5, "settle": 0, "timed": True, **settings}),
        "db-1",
        time.time(),
        "bench",
        "host",
        "1",
        ("a.b",),
    )
    return log.begin(str(folder / "run.jsonl"), start)


def run_to_verdict(record: log.Log, host: Host) -> Verdict:
    return loop.run_to_verdict(record, host, lambda _log, _measurement: None, 60)


@pytest.mark.parametrize(("gain", "verdict", "ended"), [(0.1, "better", "kept"), (-0.1, "worse", "back")])
def test_a_better_tuning_is_kept_and_a_worse_one_is_taken_back(
    gain: float, verdict: str, ended: str, tmp_path: Path
) -> None:
    record, host = begin(tmp_path), Host(gain)
    found = run_to_verdict(record, host)
    assert (found.verdict, host.ended) == (verdict, ended)
    assert host.states[:9] == 7 * ["untuned"] + 2 * ["tuned"], "warm-up and sham pairs"
    read = log.record_lines.read((tmp_path / "run.jsonl").read_bytes())
    assert read == record.record
    assert read.end is not None
    lines = sentences.block(read, found, sentences.Ending(ended == "kept", ["a.b"]))
    assert lines[0] == f"PROVE  db-1  {verdict}, {'kept' if ended == 'kept' else 'restored'}"
    assert "(20:1 is needed)" in "\n".join(lines)
    assert "  40 pairs could show a change of " in "\n".join(lines), "not what this run of fewer pairs could"
    printed_lines = sentences.summary(found, sentences.Ending(ended == "kept", ["a.b"]))
    assert printed_lines.startswith(f"{lines[0][len('PROVE  db-1  ') :]}: time in s (smaller is better) ")


def test_without_a_difference_nothing_is_kept(tmp_path: Path) -> None:
    host = Host(0.0, noise=0.05)
    found = run_to_verdict(begin(tmp_path, pairs=6), host)
    assert (found.verdict, host.ended) == ("unclear", "back")
    assert sentences.summary(found, TAKEN_BACK) == (
        "unclear, restored: 6 pairs, the most allowed, don't decide whether time changed"
    ), "what the figures say isn't what decided"


def test_without_pairs_no_evidence_is_shown(tmp_path: Path) -> None:
    record = begin(tmp_path)
    found = run_to_verdict(record, Host(0.1, change=lambda number: {"code": 1} if number > 9 else {}))
    assert (found.verdict, found.pairs) == ("not_quiet", 0)
    lines = sentences.block(record.record, found, TAKEN_BACK)
    assert "  time in s (smaller is better)  no pairs" in lines
    assert not any("evidence" in line for line in lines)
    assert "| time in s (smaller is better) | no pairs | – | – |" in sentences.markdown(
        record.record, found, TAKEN_BACK
    )


def test_the_message_of_an_outweighed_gain_names_the_loss(tmp_path: Path) -> None:
    def change(number: int) -> Mapping[str, Any]:
        tuned = host.states[-1] == "tuned"
        return {
            "output": f"ops {(120 if tuned else 100) + number % 3} 1/s larger\np99 {9 if tuned else 3} ms smaller\n"
        }

    host = Host(0.0, change=change)
    found = run_to_verdict(begin(tmp_path, timed=False), host)
    assert (found.verdict, host.ended) == ("worse", "back")
    assert sentences.summary(found, TAKEN_BACK) == "worse, restored: p99 became worse"


@pytest.mark.parametrize("killed_at", [1, 4, 10, 11])
def test_a_killed_run_continues_where_it_was(killed_at: int, tmp_path: Path) -> None:
    whole = begin(tmp_path)
    run_to_verdict(whole, Host(0.1))
    (tmp_path / "other").mkdir()
    host, record = Host(0.1), begin(tmp_path / "other")

    def killed(record_log: log.Log, _measurement: Any) -> None:
        if len(record_log.record.measurements) == killed_at:
            raise Killed

    with pytest.raises(Killed):
        loop.run_to_verdict(record, host, killed, 60)
    with open(record.path, "ab") as stream:
        stream.write(b'{"kind":"measurement","ph')  # the line that was being written
    resumed = log.resume(record.path, "db-1")
    found = run_to_verdict(resumed, host)
    assert found.verdict == "better"
    assert [measurement[:4] for measurement in log.record_lines.read(Path(record.path).read_bytes()).measurements] == [
        measurement[:4] for measurement in whole.record.measurements
    ]
    with pytest.raises(NearmetalError, match="a run that has ended"):
        log.resume(record.path, "db-1")


@pytest.mark.parametrize("passed", [1, 9, 15, 16])
def test_a_stay_that_goes_on_after_an_interruption_is_one_of_a_fresh_switch(passed: int, tmp_path: Path) -> None:
    record, host = begin(tmp_path), Host(0.1)

    def kill(_log: log.Log, measurement: Measurement) -> None:
        if measurement.phase == "soak" and measurement.attempt >= passed:
            raise Killed

    with pytest.raises(Killed):
        loop.run_to_verdict(record, host, kill, 60)
    loads, counted = len(host.states), len(record.record.measurements)
    with pytest.raises(Killed):
        loop.run_to_verdict(record, host, kill, 60)
    assert len(record.record.measurements) == counted + 1
    assert len(host.states) - loads == 1 + min(passed, 15), "as many loads as had passed don't count again"


def test_another_host_does_not_go_on(tmp_path: Path) -> None:
    record = begin(tmp_path)
    with pytest.raises(NearmetalError, match="a run on db-1, not on db-2"):
        log.resume(record.path, "db-2")
    with pytest.raises(NearmetalError, match="can't be read: No such file"):
        log.resume(str(tmp_path / "none.jsonl"), "db-1")


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ({"code": 3, "message": "bench: no server\n"}, "the command ended with code 3: bench: no server"),
        ({"code": -9}, "the command was stopped by signal 9: no message"),
        ({"code": -9, "end": "time"}, "the command was stopped after 60 s: set prove_seconds to the time"),
        (
            {"code": -9, "end": "time", "message": "warning\nCould not connect to Redis\n"},
            "one measurement takes; its last message is Could not connect to Redis",
        ),
        ({"code": "0"}, "the command was stopped"),
        ({"code": True}, "the command was stopped because the experiment ended"),
        ({"seconds": None}, "the time that the command took isn't known"),
        ({"seconds": float("inf")}, "the time that the command took isn't known"),
        ({"seconds": 1e308}, "the time that the command took isn't known"),
    ],
)
def test_a_load_that_fails_ends_the_run_before_its_first_pair(
    load: Mapping[str, Any], reason: str, tmp_path: Path
) -> None:
    host = Host(0.1, change=lambda _number: load)
    found = run_to_verdict(begin(tmp_path), host)
    assert (found.verdict, host.ended, len(host.states)) == ("unclear", "back", 1)
    assert reason in found.reasons[0]


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ({"output": "ops nan 1/s larger\n"}, "line 1 of the command's output has the value 'nan'"),
        ({"output": "ops 3 1/s\n"}, "but doesn't say which direction is better"),
        ({"output": "ops -3 1/s larger\n"}, "has the value '-3'; it must be 0, or from"),
        (
            {"output": "".join(f"m{number} 1 larger\n" for number in range(10))},
            "output is metric 9; at most 8 are read",
        ),
        ({"output": "ops 1e308 1/s larger\n"}, "has the value '1e308'; it must be 0, or from 1e-100 to 1e+100"),
        ({"output": " \n"}, "the command printed no figure: set prove_timed if the figure is the time that it takes"),
        (
            {"message": "bench\nrefused\n"},
            "set prove_timed if the figure is the time that it takes; its last message is refused",
        ),
    ],
)
def test_a_load_whose_figure_is_printed_has_failed_without_it(
    load: Mapping[str, Any], reason: str, tmp_path: Path
) -> None:
    host = Host(0.1, change=lambda _number: load)
    found = run_to_verdict(begin(tmp_path, timed=False), host)
    assert (found.verdict, host.ended, len(host.states)) == ("unclear", "back", 1)
    assert reason in found.reasons[0]


def test_a_load_that_fails_now_and_then_costs_pairs_and_is_named(tmp_path: Path) -> None:
    host = Host(0.1, change=lambda number: {"code": 1} if number == 12 else {})
    found = run_to_verdict(begin(tmp_path), host)
    assert (found.verdict, dict(found.repeated)) == ("better", {"load": 1})


@pytest.mark.parametrize("answer", [{"boot_id": 1, "host_seconds": 1.0}, {"boot_id": "1"}, {"boot_id": "1", "x": 2}])
def test_a_malformed_answer_is_refused(answer: Mapping[str, Any], tmp_path: Path) -> None:
    class Strange(Host):
        def measure(self, state: str, without: str, stays: bool = False) -> loop.Answer:
            return super().measure(state, without, stays)._replace(after=answer)

    record = begin(tmp_path)
    with pytest.raises(NearmetalError, match="the host's answer"):
        run_to_verdict(record, Strange(0.1))
    assert record.record.measurements == ()


def test_the_report_has_every_measurement_and_no_markup_of_others(tmp_path: Path) -> None:
    record = begin(tmp_path)
    found = run_to_verdict(record, Host(0.1))
    ending = sentences.Ending(True, ["a.b"], ["c.d: <script>|needs a reboot"])
    paths = document.write(str(tmp_path / "run"), record.record, found, ending)
    assert [Path(path).name for path in paths] == ["run.json", "run.md", "run.html"]
    content = json.loads(Path(paths[0]).read_text())
    assert (content["schema"], content["version"], content["host"]) == ("nearmetal.ec2/prove", 2, "db-1")
    assert len(content["measurements"]) == len(record.record.measurements)
    assert content["verdict"]["verdict"] == "better"
    states = {
        phase: {measurement["state"] for measurement in content["measurements"] if measurement["phase"] == phase}
        for phase in PHASES
    }
    untuned, tuned = {"untuned"}, {"tuned"}
    assert states == {
        "warm_up": untuned,
        "sham": untuned | tuned,
        "pair": untuned | tuned,
        "soak": untuned | tuned,
        "each": set(),
    }
    text = Path(paths[1]).read_text()
    assert "<script>" not in text
    assert text.count("| warm up |") == 3
    shams = [line.count("| tuned |") for line in text.splitlines() if line.startswith("| sham |")]
    assert shams[:6] == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(("untuned", "tuned", "change"), [(1e-100, 1e100, "+1e+202 %"), (1e100, 1e-100, "−100.0 %")])
def test_the_largest_ratio_is_a_figure_of_the_report(untuned: float, tuned: float, change: str, tmp_path: Path) -> None:
    record = run(lambda step: (Metric("ops", tuned if step.switch_to == "tuned" else untuned),))
    path, markdown, _html = document.write(str(tmp_path / "run"), record, verdict(record), TAKEN_BACK)
    assert json.loads(Path(path).read_text())["verdict"]["pairs"] >= 6
    assert f"| {change} |" in Path(markdown).read_text()


def test_progress_says_what_was_measured_and_what_it_is_worth(tmp_path: Path) -> None:
    printed_lines: List[str] = []
    host = Host(0.1, change=lambda number: {"code": 1, "message": "no"} if number == 12 else {})
    loop.run_to_verdict(
        begin(tmp_path), host, lambda record_log, _last: printed_lines.append(sentences.progress(record_log.record)), 60
    )
    assert printed_lines[0] == "db-1  warm-up 1, untuned: time 1 s"
    assert "sham pair 1, untuned" in printed_lines[3]
    (void,) = [line for line in printed_lines if "void" in line]
    assert void.endswith(": the command ended with code 1: no; void: loads that failed")
    for phase in ("pair 6 of at most 40", "pair of stays 4, load 3"):
        last_line = [line for line in printed_lines if phase in line][-1]
        assert "evidence" in last_line
        assert "at most" in last_line
    assert printed_lines[-1].startswith("db-1  pair of stays 6, load 17, ")


@pytest.mark.parametrize(
    ("value", "text"), [(1604107.4, "1604107"), (81234.77, "81234.8"), (0.00012, "0.00012"), (2.5e15, "2.5e+15")]
)
def test_a_figure_is_shown_as_a_person_writes_it(value: float, text: str, tmp_path: Path) -> None:
    record = run(lambda _step: (Metric("ops", value),))
    assert sentences.progress(record).startswith(f"db-1  pair {record.measurements[-1].pair} of at most ")
    assert f": ops {text}; so far" in sentences.progress(record)
    assert f" | ops {text} |" in sentences.markdown(record, verdict(record), TAKEN_BACK)
