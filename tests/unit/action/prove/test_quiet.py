# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host on which other programs run: the run waits for quiet, and tolerates those that always run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record_lines import read
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import MEASURE, Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.fake_kernel import FakeKernel
from tests.support.prove.plays import FINE_LOAD, Play, load
from tests.support.prove.proofs import measured, noisy, run, written

BOOT = {"boot_id": "5c1b9d0e", "cpu_steal": 0.0, "throttled": 0, "swapped": 0, "allowances": {}}
WORDS = "other processes that used more than 5 % of the CPUs (45.0% of the CPUs' time)"


def disturbed(foreign: float) -> Dict[str, Any]:
    """A host's answer to a measurement of 10 s on 2 CPUs, of which other programs used so many seconds."""
    before = {**BOOT, "host_seconds": 1e9, "cpu_total": 0.0, "cpu_foreign": 0.0}
    after = {**BOOT, "host_seconds": 1e9 + 10, "cpu_total": 20.0, "cpu_foreign": foreign}
    others = [{"name": "java", "seconds": foreign}]
    return {"answer": {"load": FINE_LOAD, "before": before, "after": after, "taken_back": [], "others": others}}


@pytest.mark.parametrize(("wait", "looks"), [(300, 2), (0, 0)])
def test_a_run_waits_for_quiet_before_it_repeats(wait: int, looks: int, host: FakeKernel, play: Play) -> None:
    commands: List[Tuple[str, bool]] = []

    def step(number: int) -> Optional[Dict[str, Any]]:
        if play.arguments["step"] == "measure":
            commands.append((play.arguments["command"], play.arguments["stays"]))
        return disturbed(9.0) if number in (2, 3) else None

    play.before_step = step
    result = play(command=load(host, 120), wait=wait, pairs=6)
    assert [command for command in commands if command[0] == "sleep 1"] == [("sleep 1", True)] * looks
    waits = [line for line in play.said if "waits up to" in line]
    assert waits == [f"db-1  waits up to 5 min for quiet: {WORDS}"] * bool(wait)
    assert any("most by java: if it serves the load, name it in prove_programs, and if" in line for line in play.said)
    measurements = read(Path(result["record"]).read_bytes()).measurements
    assert sum(bool(load.after and load.after.cpu_foreign == 9.0) for load in measurements) == (1 if wait else 2)


def test_a_program_that_is_tolerated_voids_nothing_and_serves_nothing(host: FakeKernel, play: Play) -> None:
    result = play(command=load(host, 120), programs=["redis-server"], tolerate=["java"])
    assert (play.arguments["tolerate"], play.arguments["programs"]) == (["java"], ["redis-server"])
    assert read(Path(result["record"]).read_bytes()).start.tolerate == ("java",)
    assert "- tolerated: java" in Path(result["reports"][1]).read_text()
    wrong = play(command="true", tolerate=["/usr/bin/java"])
    assert wrong["msg"].startswith("prove.tolerate has '/usr/bin/java'; it must be names as in /proc/PID/comm")


def test_equal_figures_do_not_rise() -> None:
    def coarse(step: Step) -> "Tuple[Metric, ...]":
        value = (100.0, 110.0, 110.0)[min(step.pair, 3) - 1] if step.phase == "warm_up" else 110.0
        return (Metric("requests", value, "1/s"),)

    record = run(coarse)
    assert sum(load.phase == "warm_up" for load in record.measurements) == 3
    assert verdict(record).verdict == "same"


def test_a_record_that_warmed_up_longer_than_today_is_read() -> None:
    begun = run(noisy(0.0, 0.0), most=3)
    longer = begun._replace(
        measurements=(
            *begun.measurements,
            measured(
                Step(MEASURE, "warm_up", 4, 1, "untuned", "untuned"), 3, (Metric("requests", 1000.0, "requests/s"),)
            ),
        )
    )
    whole = run(noisy(0.05, 0.02), record=longer)
    assert read(written(whole)) == whole
