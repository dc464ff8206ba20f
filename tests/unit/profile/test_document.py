# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report has the advice of each host's last profile below the ninth heading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import html, markdown
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._profile.document import content, last
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import document
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Report

from tests.support.fleet import SLOW_CLOCK, result_with
from tests.support.report import reports

NOW = 1_795_000_000.0  # 18 November 2026
SAYS = "programs read the <clock> (12.0% of the samples)"
ADVICE = {"name": "clock_reads", "says": SAYS, "knob": "clocksource.source"}
SAID = f"profile of 18 Nov 2026: {SAYS} (clocksource.source)"


def wrote(folder: Path, name: str, host: str = "db-1", at: float = NOW, *advice: Any) -> Path:
    (folder / "profile").mkdir(exist_ok=True)
    path = folder / f"profile/{name}.json"
    path.write_text(content(host, {"samples": 5880, "advice": list(advice), "changed": False}, at), "utf-8")
    return path


def report_of(folder: Path, now: float = NOW) -> Report:
    collected = Collector()
    for name in ("db-1", "db-2"):
        collected.add(name, result_with(SLOW_CLOCK))
    return collected.report(reports.RUN, profiles=last(str(folder), collected.names(), now))


def test_the_last_profile_of_a_host_is_below_the_ninth_heading(tmp_path: Path) -> None:
    wrote(tmp_path, "db-1-20261118T100000Z", "db-1", NOW)
    wrote(tmp_path, "db-1-20261118T110000Z", "db-1", NOW, ADVICE)
    report = report_of(tmp_path)
    [found] = [found for found in report.hosts[0].findings if found.concern == "profile"]
    assert (found.name, found.status, found.reason) == ("profile.clock_reads", "advice", SAID)
    assert not any(found.concern == "profile" for found in report.hosts[1].findings)
    headings = document.document(report)["headings"]
    assert headings[8] == {"number": 9, "title": "Profile your application", "concerns": ["profile"]}
    assert "### Profile your application" in markdown.render(report)
    assert "read the <clock>" not in html.render(report).replace("\\u003c", "&lt;")


def test_a_profile_without_advice_says_so(tmp_path: Path) -> None:
    wrote(tmp_path, "db-1-20261118T100000Z")
    [found] = [found for found in report_of(tmp_path).hosts[0].findings if found.concern == "profile"]
    assert (found.status, found.reason) == (
        "ok",
        "profile of 18 Nov 2026: 5,880 samples, of which no setting would change much",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": "else"},
        {"version": 2},
        {"host": "db-2"},
        {"recorded": "soon"},
        {"recorded": 1e300},
        {"result": {"samples": "many"}},
    ],
)
def test_what_nearmetal_did_not_write_is_ignored(tmp_path: Path, changes: Any) -> None:
    path = wrote(tmp_path, "db-1-20261118T100000Z", "db-1", NOW, ADVICE)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    assert last(str(tmp_path), ["db-1"], NOW) == {}


def test_an_old_profile_is_of_another_load(tmp_path: Path) -> None:
    wrote(tmp_path, "db-1-20261118T100000Z", "db-1", NOW, ADVICE)
    assert last(str(tmp_path), ["db-1"], NOW + 29 * 86400)
    assert last(str(tmp_path), ["db-1"], NOW + 31 * 86400) == {}
    assert last(str(tmp_path / "nowhere"), ["db-1"], NOW) == {}
