# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counts that audits keep in the directory `audit_history`."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import document, history
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector

from tests.support.fleet import SLOW_CLOCK, finding, result_with
from tests.support.report import reports


def test_what_is_kept_is_read_again_without_what_is_settled(tmp_path: Path) -> None:
    kept = finding("clocksource", "would_change", "persist")
    collected = Collector()
    collected.add("web-1", result_with(SLOW_CLOCK, kept, finding("numa", "ok"), finding("smt", "refused")))
    collected.unreachable("web-2", "no route")
    report = collected.report(reports.RUN)
    folder = tmp_path / "history"
    path = Path(history.keep(str(folder), report))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (past,) = history.load(str(folder))
    assert past == ("2026-01-31T12:00:00Z", {"web-1": {"would_change": 1, "refused": 1}})
    later = collected.report(replace(reports.RUN, finished="2026-02-01T12:00:00Z"), past=(past,))
    assert document.document(later)["history"] == [
        {"finished": "2026-01-31T12:00:00Z", "hosts": 1, "totals": {"would_change": 1, "refused": 1}}
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "finished": "x"}', "["])
def test_files_that_are_no_audit_are_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "audit-20260131T120000Z.json").write_text(text)
    (tmp_path / "notes.txt").write_text("mine")
    strange = {"h": {"would_change": 3, "invented": 9, "refused": -1}}
    good = {"version": 1, "finished": "2026-02-01T12:00:00Z", "hosts": strange}
    (tmp_path / "audit-20260201T120000Z.json").write_text(json.dumps(good))
    assert history.load(str(tmp_path)) == (("2026-02-01T12:00:00Z", {"h": {"would_change": 3}}),)


def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    assert history.load(str(tmp_path / "absent")) == ()
    (tmp_path / "file").write_text("")
    with pytest.raises(NearmetalError, match=r"audit_history: can't read .*file: Not a directory"):
        history.load(str(tmp_path / "file"))
    with pytest.raises(NearmetalError, match="audit_history: can't write"):
        history.keep(str(tmp_path / "file"), reports.report(result_with(SLOW_CLOCK)))
