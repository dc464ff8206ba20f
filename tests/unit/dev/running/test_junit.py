# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counts that close `make test-all` come from JUnit files and can't be better than those."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dev import suites, test
from dev.running import junit
from dev.scenario import Steps

CASES = [
    junit.Case("s", "good", "passed", 0.5),
    junit.Case("s", "bad", "failed", text="one\x1btwo"),
    junit.Case("s", "out", "skipped"),
]


def done(suite: str, passed: int, lane: str = "") -> test.Done:
    job = suites.Job(suite, f"{suite}-{lane}", [], lane=lane)
    return test.Done(job, [junit.Case(suite, str(number), "passed") for number in range(passed)], 1.0)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    junit.write(tmp_path / "s.xml", "s", CASES)
    found = junit.read(tmp_path / "s.xml")
    assert [(case.name, case.outcome) for case in found] == [
        ("s::good", "passed"),
        ("s::bad", "failed"),
        ("s::out", "skipped"),
    ]


@pytest.mark.parametrize("content", [None, "", "<testsuites><testcase"])
def test_an_absent_or_broken_file_is_a_failure(tmp_path: Path, content: "str | None") -> None:
    if content is not None:
        (tmp_path / "s.xml").write_text(content, encoding="utf-8")
    assert [case.outcome for case in junit.read(tmp_path / "s.xml")] == ["failed"]


def test_a_skipped_test_is_not_good() -> None:
    job = suites.Job("target", "target-3.8", [])
    assert not test.Done(job, [CASES[0], CASES[2]], 1.0).good


def test_every_lane_must_reach_the_minimum() -> None:
    results = [done("target", 9, "3.8"), done("target", 10, "3.9")]
    assert test.shortfalls(results, {"target": {"minimum": 10}}, ["target"]) == ["target 3.8: 9 ran, at least 10 must"]


def test_a_failed_test_is_not_counted_again_as_a_missing_one() -> None:
    job = suites.Job("gates", "gates", [])
    assert test.shortfalls([test.Done(job, CASES[:2], 1.0)], {"gates": {"minimum": 2}}, ["gates"]) == []


@pytest.mark.parametrize("tool", ["dev.generate", "dev.lock", "dev.setup", "dev.test", "tests.support.workload_rules"])
def test_a_tool_asked_for_help_explains_itself_and_does_nothing_else(tool: str) -> None:
    words = [sys.executable, "-m", tool, "--help"]
    done = subprocess.run(words, cwd=suites.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"usage: python -m {tool} [-h]")


def test_a_suite_that_did_not_run_falls_short() -> None:
    assert test.shortfalls([], {"lab": {"minimum": 1}}, ["lab"]) == ["lab: nothing ran, at least 1 must"]


def test_a_suite_without_numbers_falls_short() -> None:
    assert test.shortfalls([done("lab", 3)], {}, ["lab"]) == ["lab: no numbers in tests/suites.toml"]


def test_molecules_steps_become_cases(tmp_path: Path) -> None:
    steps = Steps("molecule-default", tmp_path / "checks.xml")
    steps.read("INFO     [default > converge] Executing\n")
    steps.read("\x1b[34mINFO\x1b[0m     [default > converge] Executed: Successful\n")
    junit.write(tmp_path / "checks.xml", "pytest", CASES[:2])
    steps.read("INFO     [default > verify] Executed: Failed\n")
    steps.read("WARNING  [default > verify] Executed: Missing playbook (Remove from test_sequence to suppress)\n")
    assert [(case.name, case.outcome) for case in steps.cases] == [
        ("converge", "passed"),
        ("verify", "failed"),
        ("verify: pytest::good", "passed"),
        ("verify: pytest::bad", "failed"),
        ("verify 2", "failed"),
    ]
