# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side against a host with a fake kernel: every step is a real call of the module."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import prove, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.prove.experiments import BOTH, SWAPPINESS, nomerges, swappiness
from tests.support.prove.plays import CURRENT, OPTIONS, Call, Play, current, load


@pytest.mark.parametrize("load_on", ["host", "controller"])
def test_a_better_tuning_is_kept(load_on: str, host: FakeKernel, play: Play) -> None:
    result = play(command=load(host, 120), load_on=load_on)
    assert (result["verdict"]["verdict"], result["kept"], result["changed"]) == ("better", True, True), result
    assert current(host) == "tsc"
    assert result["tested"] == ["clocksource.source"]
    assert json.loads(Path(result["reports"][0]).read_text())["wanted"] == {"clocksource.source": ["tsc"]}
    assert result["msg"].startswith("better, kept: ops in 1/s (larger is better) at least +8")
    assert "PROVE  db-1  better, kept" in play.said
    kept = result["ansible_stats"]["data"]["nearmetal"]["hosts"]["db-1"]["prove"]
    same = {name: result[name] for name in ("msg", "record", "changed", "kept", "reboot_required")}
    assert kept == {**same, "verdict": "better", "check_mode": False}
    kinds = [json.loads(line)["kind"] for line in Path(result["record"]).read_text().splitlines()]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert [Path(path).suffix for path in result["reports"]] == [".json", ".md", ".html"]
    assert (Path(result["record"]).stat().st_mode & 0o777) == 0o600
    if load_on == "host":
        assert play.steps.count("measure") == len(play.steps) - 2, "one call of the module for each measurement"


def test_a_setting_that_is_better_alone_is_left_to_tune(host: FakeKernel, play: Play) -> None:
    result = play(command=load(host, 120), only=["clocksource.source"])
    assert (result["verdict"]["verdict"], result["kept"], result["changed"]) == ("better", False, False)
    assert result["msg"].startswith("better, restored (run tune to keep it): ops in 1/s (larger is better) at least +8")
    assert (current(host), json.loads(Path(result["reports"][0]).read_text())["kept"]) == ("xen", False)


def test_another_tuning_takes_the_place_of_the_untuned_host(host: FakeKernel, play: Play) -> None:
    command = f'[ "$(cat {host.root}{CURRENT})" = hpet ] && echo ops 100 1/s larger || echo ops 120 1/s larger'
    result = play(command=command, against={"concerns": {"clocksource": {"source": "hpet"}}})
    assert (result["verdict"]["verdict"], result["kept"], current(host)) == ("better", True, "tsc"), result
    against = 'concerns {"clocksource": {"source": "hpet"}}'
    assert f"  tested: clocksource.source (hpet → tsc); against {against}, not untuned" in play.said
    assert any(line.startswith("db-1  warm-up 1, against: ops 100") for line in play.said)
    assert json.loads(Path(result["reports"][0]).read_text())["against"] == against
    assert "| pair | 1 | 1 | against |" in Path(result["reports"][1]).read_text()


def test_each_concern_is_compared_with_the_rest_and_the_whole_is_kept(tmp_path: Path, play: Play) -> None:
    play._fake = host = fresh(tmp_path / "big", "nitro_big")
    found = f"grep -qx 1 {host.root}{SWAPPINESS} && echo ops 120 1/s larger || echo ops 100 1/s larger"
    result = play(command=found, tune=BOTH, each=True, abandon_after=0)
    assert (result["verdict"]["verdict"], result["kept"]) == ("better", True), result
    parts = {part["concern"]: part["verdict"] for part in result["verdict"]["parts"]}
    assert parts == {"memory": "better", "block_storage": "same"}
    assert any(line.startswith("  with memory: better than without it: at least +") for line in play.said)
    assert any("memory, pair 1 of at most 40, without memory: ops 100" in line for line in play.said)
    assert (swappiness(host), nomerges(host)) == ("1", {"2"})


def test_a_host_that_was_tuned_before_is_reported_as_tuned(call: Call, host: FakeKernel, play: Play) -> None:
    call(tune.main, host, **OPTIONS["tune"])
    result = play(command=load(host, 80))
    assert result["msg"].startswith(
        "worse, restored to the tuning from before the run (nearmetal.ec2.restore removes it): ops"
    )
    assert (current(host), result["changed"]) == ("tsc", False)


@pytest.mark.parametrize(("tuned", "verdict"), [(80, "worse"), (100, "same")])
def test_a_tuning_that_is_not_better_is_taken_back(tuned: int, verdict: str, host: FakeKernel, play: Play) -> None:
    result = play(command=load(host, tuned))
    assert (result["verdict"]["verdict"], result["kept"], result["changed"]) == (verdict, False, False)
    assert current(host) == "xen"
    assert not (Path(host.root) / "var/lib/nearmetal").exists()


def test_a_host_that_already_has_the_wanted_values_is_no_failure(host: FakeKernel, play: Play) -> None:
    result = play(command="true", tune={"concerns": {"clocksource": {"source": "xen"}}})
    assert (result.get("failed", False), result["changed"], result["kept"]) == (False, False, False)
    assert result["msg"].startswith("nothing differs: untuned and tuned don't differ on this host")
    assert play.steps == ["begin"]
    assert host.written == []


def test_a_host_is_left_alone_where_no_record_can_be_written(host: FakeKernel, play: Play, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("no folder\n")
    result = play(command=load(host, 120))
    assert "can't be written: " in result["msg"]
    assert (host.written, play.steps) == ([], [])


def test_no_log_shows_nothing_of_a_command(host: FakeKernel, play: Play) -> None:
    play.no_log = True
    result = play(command=f"{load(host, 120)}; : hunter2")
    assert (result["kept"], play.said) == (True, [])
    assert result["reports"] == []
    files = [path for path in Path(result["record"]).parent.iterdir() if b"hunter2" in path.read_bytes()]
    assert files == [Path(result["record"])]


def test_no_log_writes_no_error_of_a_load(host: FakeKernel, play: Play) -> None:
    play.no_log = True
    result = play(command="echo password=hunter2 >&2; exit 1")
    assert [path.suffix for path in Path(result["record"]).parent.iterdir()] == [".jsonl"]
    assert play.said == []


def test_a_server_that_is_down_behind_a_pipe_is_not_timed(host: FakeKernel, play: Play) -> None:
    result = play(command="echo connection refused >&2 | true")
    assert (result["verdict"]["verdict"], play.steps.count("measure"), current(host)) == ("unclear", 1, "xen")
    assert "the command printed no figure: set prove_timed" in result["msg"]
    assert result["failed"], "a run that compared nothing is no success"


def test_ctrl_c_takes_the_host_back_and_the_run_can_go_on(host: FakeKernel, play: Play) -> None:
    def press(number: int) -> None:
        if number == 12:
            signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    play.before_step = press
    result = play(command=load(host, 120), programs=["redis-server"])
    assert result["failed"]
    assert (
        "the run was interrupted by SIGINT: the host is as it was before; to resume, set prove_resume: "
        in result["msg"]
    )
    assert signal.getsignal(signal.SIGINT) is handler
    assert play.steps[-1] == "back"
    assert current(host) == "xen"
    record = result["msg"].rpartition(" ")[2]
    other = play(resume=record, command="exit 1", programs=["memcached"])
    assert (other["verdict"]["verdict"], other["record"]) == ("better", record), "by the command of the record"
    assert other["verdict"]["seed"] == 4711
    assert play.arguments["programs"] == ["redis-server"]


def test_a_run_with_other_values_of_the_same_settings_does_not_go_on(host: FakeKernel, play: Play) -> None:
    interrupted = {"failed": True, "msg": "connection reset"}
    play.before_step = lambda number: interrupted if number == 12 else None
    record = play(command=load(host, 120))["msg"].rpartition(" ")[2]
    other = play(resume=record, tune={"concerns": {"clocksource": {"source": "hpet"}}})
    assert other["msg"].startswith(
        "resume names a run that compared other values of these settings (clocksource.source tuned was tsc and is hpet)"
    )
    assert current(host) == "xen"


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        (CURRENT, "hpet", "clocksource.source untuned was xen and is hpet"),
        ("/proc/sys/kernel/osrelease", "6.12.0-1-cloud-amd64", "kernel was {} and is 6.12.0-1-cloud-amd64"),
    ],
)
def test_a_run_does_not_go_on_from_another_untuned_value_or_kernel(
    path: str, text: str, words: str, host: FakeKernel, play: Play
) -> None:
    play.before_step = lambda number: {"failed": True, "msg": "connection reset"} if number == 12 else None
    record = play(command=load(host, 120))["msg"].rpartition(" ")[2]
    play.before_step = lambda _number: None
    place = Path(host.root + path)
    before = place.read_text().strip()
    place.write_text(f"{text}\n")
    other = play(resume=record)
    assert other["failed"]
    assert other["msg"].startswith(
        f"resume names a run on this host as it was then: {words.format(before)}; start a new run"
    )
    assert place.read_text().strip() == text


def test_a_lost_host_is_reported_as_taking_itself_back(host: FakeKernel, play: Play) -> None:
    play.before_step = lambda number: play.lose() if number == 9 else None
    result = play(command=load(host, 120))
    play.cleanup()  # Ansible's own, after each action
    assert result["msg"] == (
        "no route to host; the host could not be restored (no route to host); its timer restores it within 900 s"
    )


def test_a_host_that_was_never_reached_is_not_said_to_be_switched(host: FakeKernel, play: Play) -> None:
    play.before_step = lambda _number: play.lose()
    result = play(command=load(host, 120))
    assert result["msg"] == "no route to host; if the run had begun on the host, its timer restores it within 900 s"
    assert (result["unreachable"], "failed" in result) == (True, False), "the run ends with 4, as docs/audit.md has it"
    assert host.written == []


def test_a_host_that_ended_its_experiment_is_left_alone(host: FakeKernel, play: Play) -> None:
    def fire(number: int) -> None:
        if number == 9:
            assert command(["expire", "prove"], host) == 0

    play.before_step = fire
    result = play(command=load(host, 120))
    assert result["msg"].startswith("the experiment ended on the host: its timer or a person took it back")
    assert "; to resume, set prove_resume: " in result["msg"]
    assert current(host) == "xen"


def test_a_host_that_reboots_in_between_ends_the_run_and_the_run_can_go_on(host: FakeKernel, play: Play) -> None:
    def reboot(number: int) -> None:
        if number == 14:
            host.reboot("99999999-0000-0000-0000-000000000000")

    play.before_step = reboot
    result = play(command=load(host, 120))
    assert result["msg"].startswith("the experiment ended on the host: ")
    assert "or it was rebooted" in result["msg"]
    assert (current(host), (Path(host.root) / "run/nearmetal/prove.json").exists()) == ("xen", False)
    play.before_step = lambda _number: None
    resumed = play(resume=result["msg"].rpartition(" ")[2])
    assert (resumed["verdict"]["verdict"], current(host)) == ("better", "tsc")
    assert resumed["verdict"]["repeated"] in ({}, {"reboot": 1})


def test_ctrl_c_comes_too_late_while_the_tuning_is_kept(host: FakeKernel, play: Play) -> None:
    play.before_step = lambda _number: signal.raise_signal(signal.SIGINT) if play.steps[-1] == "keep" else None
    result = play(command=load(host, 120))
    assert (result.get("failed", False), result["kept"], current(host)) == (False, True, "tsc")


def test_a_tuning_that_may_or_may_not_have_been_kept_is_reported(host: FakeKernel, play: Play) -> None:
    def lost(_number: int) -> Optional[Dict[str, Any]]:
        if play.steps[-1] != "keep":
            return None
        play._call(prove.main, host, **{**play.arguments, "step": "keep"})
        return {"unreachable": True, "msg": "connection reset"}

    play.before_step = lost
    result = play(command=load(host, 120))
    assert result["msg"] == "connection reset; the host may be tuned already: run an audit to see"
    assert current(host) == "tsc"


def test_both_outcomes_are_reported_for_a_host_lost_while_the_tuning_is_kept(host: FakeKernel, play: Play) -> None:
    unreachable = {"unreachable": True, "msg": "connection reset"}
    play.before_step = lambda _number: unreachable if "keep" in play.steps else None
    result = play(command=load(host, 120))
    assert result["msg"] == (
        "connection reset; the host could not be restored (connection reset); it is tuned unless its timer restores it"
        " within 900 s: run an audit to see"
    )


FINE: Dict[str, Any] = {"load": {"code": 0, "output": "ops 1 1/s larger", "end": ""}, "switch_seconds": 0.1}


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        (1, {}),
        (1, {"tested": 5, "untested": [], "left_out": [], "states": "0" * 64}),
        (1, {"tested": ["a.b"], "untested": {"c.d": 1}, "left_out": [], "states": "0" * 64}),
        (1, {"tested": ["a.b"], "untested": [], "left_out": [], "states": 5}),
        (2, {**FINE, "before": 5}),
        (2, {**FINE, "after": ["boot_id", "host_seconds"]}),
        (2, {**FINE, "switch_seconds": 10**400}),
        (2, {**FINE, "switch_seconds": float("nan")}),
        (2, {**FINE, "switch_seconds": -1}),
    ],
)
def test_a_malformed_answer_ends_the_run_in_one_sentence(
    number: int, answer: Dict[str, Any], host: FakeKernel, play: Play
) -> None:
    def strange(at: int) -> Optional[Dict[str, Any]]:
        if at != number:
            return None
        play._call(prove.main, host, **play.arguments)
        return {"answer": answer}

    play.before_step = strange
    result = play(command="true")
    assert result["msg"].startswith("the host's answer "), result
    assert ": the host is as it was before" in result["msg"]
    assert current(host) == "xen"


def test_a_reason_with_unprintable_characters_is_recorded(host: FakeKernel, play: Play) -> None:
    def strange(at: int) -> Optional[Dict[str, Any]]:
        if at != 1:
            return None
        play._call(prove.main, host, **play.arguments)
        return {"answer": {"tested": ["clocksource.source"], "untested": [reason], "left_out": [], "states": "0" * 64}}

    reason = "c.d:\u00a0waits\x1b[31m" + "x" * 5000
    play.before_step = strange
    result = play(command=load(host, 120))
    assert result.get("verdict", {}).get("verdict") == "better", result
    assert result["untested"][0].startswith("c.d: waitsxxx")
    assert len(result["untested"][0]) == 1000


def test_a_ready_benchmark_is_measured_in_place_of_a_command(host: FakeKernel, play: Play) -> None:
    play.before_step = lambda number: {"failed": True, "msg": "connection reset"} if number == 3 else None
    result = play(benchmark="clock", seconds=0.1)
    record = result["msg"].rpartition(" ")[2]
    start, measurement = map(json.loads, Path(record).read_text().splitlines())
    assert start["load"] == 'nearmetal benchmark clock {"seconds": 0.1}'
    assert measurement["error"] == ""
    (metric,) = measurement["metrics"]
    assert (metric["name"], metric["unit"], metric["better"]) == ("read", "ns", "smaller")
    play.before_step = lambda number: {"failed": True, "msg": "connection reset"} if number == 3 else None
    play.steps.clear()
    play(resume=record)
    assert len(Path(record).read_text().splitlines()) == 3, "it went on with the benchmark of the record"


def test_a_value_set_by_somebody_meanwhile_voids_a_measurement(host: FakeKernel, play: Play) -> None:
    path = f"{host.root}{CURRENT}"
    result = play(command=f"echo hpet > {path}; echo ops 100 1/s larger")
    assert result["verdict"]["verdict"] == "not_quiet"
    assert "knobs that another program set back" in " ".join(result["verdict"]["reasons"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"command": None}, "prove.command or prove.benchmark is required, and not both: the load of one measurement "),
        ({"benchmark": "clock"}, "prove.command or prove.benchmark is required, and not both: the load of one "),
        ({"command": None, "benchmark": "clok"}, "prove.benchmark can't be 'clok'; choose one of clock"),
        ({"command": None, "benchmark": "clock", "timed": True}, "prove.benchmark clock has figures of its own: "),
        ({"command": None, "benchmark": "clock", "load_on": "controller"}, "prove.benchmark clock with the part "),
        ({"command": None, "benchmark": "network", "benchmark_options": {"part": "server"}}, "prove.benchmark network"),
        (
            {"command": None, "benchmark": "network", "benchmark_options": {"part": "client", "server": "10.0.0.1"}},
            "prove.benchmark network with the part client can't run on 'host': a benchmark runs on the host ",
        ),
        (
            {"command": None, "benchmark": "clock", "benchmark_options": {"reads": 5}},
            "benchmark.options of clock.reads isn't an option; ",
        ),
        ({"pairs": 3}, "prove.pairs must be a whole number from 6 to 200, not 3"),
        ({"pairs": "many"}, "prove.pairs must be a whole number, not 'many'"),
        ({"margin": "2%"}, "prove.margin must be a number, such as 2.5, not '2%'"),
        ({"margin": float("nan")}, "prove.margin must be a number, such as 2.5, not nan"),
        ({"settle": -1}, "prove.settle must be a number from 0 to 600, not -1.0"),
        ({"keep": "always"}, "prove.keep can't be 'always'; choose one of better, not_worse"),
        ({"load_on": "client-9"}, "prove.load_on (prove_on in the role) is 'client-9', which isn't in the inv"),
        ({"load_on": "db-1"}, "prove.load_on (prove_on in the role) is 'db-1', the host under test itself: set"),
        ({"primary": "a b"}, "prove.primary must be the name of a metric, not 'a b': a letter"),
        ({"abandon_after": 59}, "prove.abandon_after is 59; a measurement of 1 s may take 63 s"),
        ({"abandon_after": 100, "seconds": 30}, "prove.abandon_after is 100; a measurement of 30 s may take 150 s"),
        ({"seed": -1}, "prove.seed must be a whole number from 0 to 4294967295, not -1"),
        ({"only": ["clock"]}, "prove.only has 'clock'; its concerns are "),
        ({"tune": {"workload": ["webb"]}}, "workload 'webb' is unknown"),
        ({"tune": {"wokload": ["web"]}}, "prove.tune.wokload isn't an option"),
        ({"against": {"wokload": ["web"]}}, "prove.against.wokload isn't an option"),
        ({"against": {"workload": ["webb"]}}, "workload 'webb' is unknown"),
        ({"resume": "/nowhere.jsonl"}, "resume names /nowhere.jsonl, which can't be read: No such file or directory"),
        ({"hurry": True}, "prove.hurry isn't an option"),
        ({"command": "  "}, "prove.command must be a command for /bin/sh, not '  '"),
        ({"command": "a\0b"}, "prove.command must be text without control characters, not 'a\\x00b'"),
        ({"health": "\n"}, "prove.health must be a command for /bin/sh, not '\\n'"),
        ({"programs": ["/usr/bin/redis-server"]}, "prove.programs has '/usr/bin/redis-server'; it must be names as "),
        ({"programs": ["valkey-benchmark"]}, "of at most 15 bytes and without their folder: name it 'valkey-benchmar'"),
        ({"programs": ["redis-server", ""]}, "prove.programs has ''; it must be names as in /proc/PID/comm, of "),
        ({"benchmark_options": {"seconds": 3}}, "prove.benchmark_options has 'seconds', but no benchmark is named: "),
    ],
)
def test_bad_input_is_refused_before_anything_is_switched(
    options: Dict[str, Any], sentence: str, host: FakeKernel, play: Play
) -> None:
    result = play(**{"command": "true", **options})
    assert result["failed"]
    assert sentence in result["msg"]
    assert host.written == []
    assert host.commands == []
