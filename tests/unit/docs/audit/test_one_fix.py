# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fix that a report shows for one finding, run as it is shown: it changes that knob and no other."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import List, Tuple

import pytest

from tests.support.report import shown
from tests.support.simulated import simulate

CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
WANTED = {"clocksource": {"source": "tsc"}, "hugepages": {"thp": "never"}}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the inventory of one host, of which two knobs are to change."""
    (tmp_path / "hosts.json").write_text(
        json.dumps({"all": {"hosts": {"db-1": {**simulate(tmp_path / "db-1", "xen_hvm"), "tune_concerns": WANTED}}}})
    )
    return tmp_path


def run(place: Path, command: str) -> None:
    done = shown.run(place, *shlex.split(command))
    assert done.returncode == 0, done.stdout + done.stderr


def actions(place: Path) -> List[Tuple[str, str]]:
    report = json.loads((place / "nearmetal-report/report.json").read_text())
    return [(action["concern"], action["knob"]) for host in report["hosts"] for action in host["actions"]]


def values(place: Path) -> Tuple[str, str]:
    root = place / "db-1/root"
    return (root / CLOCK).read_text().strip(), (root / PAGES).read_text().strip()


def test_the_fix_of_a_finding_shows_and_changes_that_knob_alone(place: Path) -> None:
    before = values(place)
    run(place, "ansible-playbook nearmetal.ec2.audit -i hosts.json")
    page = (place / "nearmetal-report/report.html").read_text()
    codes = re.findall(r"<code>(.*?)</code>", page)
    commands = [html.unescape(re.sub(r"<[^>]+>", "", code)) for code in codes]
    look, fix = (command for command in commands if "tune_only=clocksource.source" in command)
    assert look == f"{fix} --check --diff"
    run(place, look)
    assert {concern for concern, _knob in actions(place)} <= {"clocksource", "unit"}
    assert ("clocksource", "source") in actions(place)
    assert values(place) == before
    run(place, fix)
    assert before[0] != "tsc"
    assert values(place) == ("tsc", before[1])
