# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict computed again from a record: by whom has neither the host nor trust in the report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nearmetal.ec2.plugins.filter.judge import judge
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import End, Place, with_entry
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record_lines import line_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import document, log, results, sentences
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove.host_answers import Begun

from dev import ROOT
from tests.support.prove.proofs import noisy, run, start, written

BEGUN = start(seed=5)
RUN = run(
    noisy(0.08, 0.02),
    record=BEGUN._replace(
        start=BEGUN.start._replace(
            tested=("memory.swappiness",),
            places=(Place("memory.swappiness", "", 60, 1),),
            machine={"kernel": "6.1.0-31-cloud-amd64", "instance_type": "m5.large"},
        )
    ),
)
RECORD = with_entry(RUN, End("kept", "better", 1_790_001_000.0))
Change = Callable[[List[bytes]], List[bytes]]


@pytest.fixture
def base(tmp_path: Path) -> str:
    """A record with its reports, as a run leaves them."""
    base = str(tmp_path / "db-1-20260921T100000Z-5")
    Path(f"{base}.jsonl").write_bytes(written(RECORD))
    found = verdict(RECORD)
    compared = Begun(["memory.swappiness"], {}, [], [], "", False)
    document.write(base, RECORD, found, results.ending(log.Log(f"{base}.jsonl", RECORD), compared, False, [], []))
    return base


def said(base: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command, on a machine that has only this collection."""
    name = "ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove.judge"
    return subprocess.run(
        [sys.executable, "-m", name, f"{base}.jsonl", *arguments],
        check=False,
        env={"PYTHONPATH": str(ROOT / ".ansible/collections")},
        capture_output=True,
        text=True,
    )


def spoil(path: str, **changes: Any) -> None:
    report: Dict[str, Any] = json.loads(Path(path).read_text("utf-8"))
    Path(path).write_text(json.dumps({**report, **changes}), "utf-8")


def test_a_report_and_its_record_agree(base: str) -> None:
    shown = said(base)
    assert (shown.returncode, shown.stderr) == (0, "")
    first, second, digest = shown.stdout.splitlines()
    assert first.startswith("better, kept: requests in requests/s (larger is better) at least +")
    assert second == "  record and report agree"
    report = json.loads(Path(f"{base}.json").read_text("utf-8"))
    assert digest == f"  SHA-256 of the record: {report['sha256']}"
    for suffix in (".md", ".html"):
        assert report["sha256"] in Path(f"{base}{suffix}").read_text("utf-8")
    judged = judge(f"{base}.jsonl")
    assert "\n  ".join(judged["lines"]) == shown.stdout.rstrip()
    assert json.loads(said(base, "--json").stdout) == judged
    assert (judged["agrees"], judged["verdict"], judged["problems"]) == (True, "better", [])


def test_a_report_says_on_what_was_measured_and_both_values(base: str) -> None:
    report = json.loads(Path(f"{base}.json").read_text("utf-8"))
    assert report["places"] == [{"setting": "memory.swappiness", "where": "", "untuned": 60, "tuned": 1}]
    assert report["machine"]["kernel"] == "6.1.0-31-cloud-amd64"
    levels = {level["state"]: level for level in report["levels"]}
    assert 950 < levels["untuned"]["lower"] < levels["untuned"]["median"] < levels["untuned"]["upper"] < 1030
    assert 1060 < levels["tuned"]["median"] < 1110
    page = Path(f"{base}.html").read_text("utf-8")
    for words in ("instance type m5.large", ">60<", "A/A pair 3: "):
        assert words in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[:-1], "the record has no end: the run was interrupted, or it was shortened"),
        (
            lambda lines: [*lines[:-4], lines[-1]],
            "the record ends before its own rules let a run end: it was shortened",
        ),
        (lambda lines: [*lines[:-4], lines[-1]], "the record was shortened: it has "),
        (lambda lines: [*lines[:7], *lines[8:]], "no verdict follows from the record: line "),
        (lambda lines: [*lines[:-1], lines[-1].rstrip()], "the last line of the record is cut off"),
        (
            lambda lines: [*lines[:9], lines[9].replace(b'"value":', b'"value":1'), *lines[10:]],
            "the record or the report was changed: the report has another digest of the record",
        ),
        (
            lambda lines: [*lines[:-1], lines[-1].replace(b"better", b"same")],
            "its last line says same, and better follows from its measurements",
        ),
        (lambda lines: [lines[0], b"{}\n"], "no verdict follows from the record: line 2 "),
        (lambda _lines: [b"{}\n"], ".jsonl is no record of prove, whose first line is the start of a run: name one, "),
    ],
)
def test_what_was_done_to_a_record_is_said(change: Change, words: str, base: str) -> None:
    lines = Path(f"{base}.jsonl").read_bytes().splitlines(keepends=True)
    Path(f"{base}.jsonl").write_bytes(b"".join(change(lines)))
    shown = said(base)
    assert shown.returncode == 1
    assert words in shown.stdout
    assert "agree\n" not in shown.stdout
    assert "start a new run" not in shown.stdout


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kept": False}, "the report says otherwise than the record: kept"),
        ({"verdict": {"verdict": "same"}}, "the report says same, and the record better"),
        ({"places": []}, "the report says otherwise than the record: places"),
        ({"measurements": []}, "the record was added to: it has "),
        ({"version": 3}, "the report isnt one of prove that this version knows"),
    ],
)
def test_what_was_done_to_a_report_is_said(changes: Dict[str, Any], words: str, base: str) -> None:
    spoil(f"{base}.json", **changes)
    judged = judge(f"{base}.jsonl")
    assert not judged["agrees"]
    assert words in " ".join(judged["lines"]).replace("'", "")


def test_a_report_of_version_1_is_compared_as_far_as_it_goes(base: str) -> None:
    report = json.loads(Path(f"{base}.json").read_text("utf-8"))
    for name in ("sha256", "machine", "places", "levels", "programs", "tolerate", "health"):
        del report[name]
    Path(f"{base}.json").write_text(json.dumps({**report, "version": 1}), "utf-8")
    assert "record and report agree" in " ".join(judge(f"{base}.jsonl")["lines"])


def test_without_a_report_the_record_speaks_for_itself(base: str) -> None:
    Path(f"{base}.json").unlink()
    judged = judge(f"{base}.jsonl")
    assert (judged["agrees"], judged["report"]) == (True, "")
    assert "only a digest noted elsewhere can show that it is whole" in " ".join(judged["lines"])
    assert said(base).returncode == 3
    with pytest.raises(AnsibleFilterError, match=r"can.t be read: .*No such file"):
        judge(f"{base}.jsonl", f"{base}.json")
    with pytest.raises(AnsibleFilterError, match=r"can.t be read: .*No such file"):
        judge(f"{base}.json")
    for text in ('{"finished": 1}\n' * 1000, "x" * 10000):
        with pytest.raises(AnsibleFilterError, match=r"^judge: the path of a record is wanted, and not what is in it$"):
            judge(text)


def test_a_record_that_does_not_say_on_what_it_measured_is_judged(base: str) -> None:
    first = json.loads(line_of(RECORD.start))
    old = {name: value for name, value in first.items() if name not in ("places", "machine", "tolerate")}
    lines = Path(f"{base}.jsonl").read_bytes().splitlines(keepends=True)
    Path(f"{base}.jsonl").write_bytes(b"".join([json.dumps(old).encode() + b"\n", *lines[1:]]))
    Path(f"{base}.json").unlink()
    assert judge(f"{base}.jsonl")["verdict"] == "better"


def test_the_closing_lines_have_both_values_and_the_levels() -> None:
    lines = sentences.block(RECORD, verdict(RECORD), sentences.Ending(True, RECORD.start.tested))
    assert "  tested: memory.swappiness (60 → 1)" in lines
    (levels,) = [line for line in lines if "medians of the pairs" in line]
    assert levels.startswith("    medians of the pairs, with quartiles: untuned ")
