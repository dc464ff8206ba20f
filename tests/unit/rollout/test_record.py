# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a rollout survives the controller, and keeps two rollouts from one host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import record

HOSTS = ["a", "b", "c", "d"]
START: Dict[str, Any] = {"at": 1.0, "options": {}, "hosts": HOSTS, "strata": [0, 0, 0, 0], "ends": [1, 4]}


def begun(folder: Path) -> record.Record:
    """A record whose first batch is tuned."""
    kept = record.begin(str(folder / "rollout" / "x.jsonl"), START)
    kept.add("batch", number=1, begin=0, end=1, last=4, at=2.0)
    kept.add("look", at=3.0, due=3.0, values={"m": [1.0, 2.0, None, 4.0]})
    kept.add("tuning", at=3.5, without=[], vitals={})
    kept.add("tuned", at=4.0, failed={}, without=[])
    kept.add("look", at=5.0, due=5.0, values={"m": [2.0, 2.0, None, 4.0]})
    return kept


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    kept = record.read(begun(tmp_path).path)
    watch = kept.watch(kept.batches[0])
    assert (watch.tuned, watch.before, watch.after[0]["m"][0]) == (1, [{"m": [1.0, 2.0, None, 4.0]}], 2.0)
    assert kept.tuned() == ["a"]
    kept.add("restored", at=6.0, hosts={"a": ""})
    kept.add("end", at=7.0, outcome="taken_back")
    again = record.read(kept.path)
    assert (again.tuned(), again.outcome) == ([], "taken_back")


def test_a_line_that_was_cut_is_left_out_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = begun(tmp_path).path
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[:-20])
    kept = record.read(path)
    assert kept.batches[0].after == []
    kept.add("look", at=5.5, due=5.5, values={"m": [3.0, None, None, None]})
    assert record.read(path).batches[0].after == [{"m": [3.0, None, None, None]}]


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    assert os.stat(begun(tmp_path).path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "x\n", "[]\n", '{"kind":"look"}\n'])
def test_what_is_no_record_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(NearmetalError, match="no record of a rollout"):
        record.read(str(tmp_path / "x"))


def test_a_batch_that_was_held_before_its_tuning_counts_for_nothing(tmp_path: Path) -> None:
    kept = begun(tmp_path)
    kept.add("batch", number=2, begin=1, end=4, last=4, at=6.0)
    kept.add("hold", at=7.0, reasons=["/etc/freeze exists"])
    again = record.read(kept.path)
    assert (again.held, len(again.batches), again.tuned()) == (["/etc/freeze exists"], 1, ["a"])
    kept.add("run", at=8.0, options={})
    assert record.read(kept.path).held == []


def test_a_host_that_was_left_out_isnt_tuned(tmp_path: Path) -> None:
    kept = begun(tmp_path)
    kept.add("batch", number=2, begin=1, end=4, last=4, at=6.0)
    kept.add("tuning", at=7.0, without=["c"], vitals={})
    assert record.read(kept.path).tuned() == ["a", "b", "d"]


def test_a_host_is_in_one_rollout_that_hasnt_ended(tmp_path: Path) -> None:
    kept = begun(tmp_path)
    with pytest.raises(
        NearmetalError, match=r"another rollout has c and hasn't ended: go on with it by -e rollout_res"
    ):
        record.require_alone(str(tmp_path), ["c", "x"])
    record.require_alone(str(tmp_path), ["x"])
    kept.add("end", at=7.0, outcome="done")
    record.require_alone(str(tmp_path), ["c"])
