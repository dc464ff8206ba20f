# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `judge` says in lines what it found, and fails unless a report agrees with its record."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest

from tests.support.fleet import Fleet
from tests.support.report.judged import well
from tests.unit.prove.test_judge import base

__all__ = ["base"]


@pytest.mark.parametrize("words", [(), ("-e", "judge_record=nothere.jsonl")])
def test_without_a_record_one_line_says_what_to_name(fleet: Fleet, words: Sequence[str]) -> None:
    run = fleet.run(*words, playbook="nearmetal.ec2.judge")
    assert run.returncode == 2
    assert "name a record: -e judge_record=nearmetal-report/prove/HOST-TIME-SEED.jsonl\n" in well(run)
    assert "ERROR" not in run.stdout + run.stderr


@pytest.mark.parametrize(("report", "status"), [("there", 0), ("absent", 2), ("changed", 2)])
def test_only_a_report_that_agrees_is_a_success_and_nothing_is_printed_as_json(
    fleet: Fleet, base: str, report: str, status: int
) -> None:
    if report == "absent":
        Path(f"{base}.json").unlink()
    if report == "changed":
        Path(f"{base}.json").write_text("{}")
    run = fleet.run("-e", f"judge_record={base}.jsonl", playbook="nearmetal.ec2.judge")
    shown = well(run)
    words = {
        "there": "record and report agree",
        "absent": "there is no report beside the record",
        "changed": "isn't one",
    }
    assert run.returncode == status
    assert words[report] in shown
    assert "SHA-256 of the record: " in shown
    assert "{" not in shown
