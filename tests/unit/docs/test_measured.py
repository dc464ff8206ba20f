# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each measured gain that a finding has stands in docs/measured.md, with the lines that prove printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils import _measured
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._measured import FIGURES, Figure, gain_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.modules import block_storage, tune

from tests.support.fresh_host import fresh
from tests.support.prove.experiments import Call

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/measured.md").read_text("utf-8")


OTHER = (ROOT / "docs/network_irq.md").read_text("utf-8")
# It tests prove itself: nothing was changed that the load could notice.
ABOUT_PROVE = ("Is the verdict right if nothing changes?", "What the coin doesn't protect from")


def row(figure: Figure) -> str:
    """The line of the page's table."""
    return f"| `{figure.knob}` | {figure.before} → {figure.after} | {figure.words} | {figure.day}, {figure.machine} |"


def printed() -> List[str]:
    """The lines of all runs that the page shows, with intervals."""
    blocks = re.findall(r"^```text\n(PROVE  .*?)^```$", PAGE, re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if "evidence" in line]


def test_the_page_and_the_code_have_the_same_gains() -> None:
    assert re.findall(r"^\| `[a-z_.]+` \| .*$", PAGE, re.M) == [row(figure) for figure in FIGURES]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: str(figure.knob))
def test_a_gain_has_the_figure_and_the_interval_of_a_run_that_the_page_shows(figure: Figure) -> None:
    (interval,) = re.findall(r"\([+−]?[0-9.]+ to [+−]?[0-9.]+\)", figure.words)
    (change,) = re.findall(r"([0-9.]+)(?: %|(?= \())", figure.words)
    lines = [*printed(), *OTHER.splitlines()]
    assert any(f"{change} % {interval}" in line or f"{change} {interval}" in line for line in lines), figure.words


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: str(figure.knob))
def test_a_figure_whose_whole_interval_is_below_once_is_a_loss(figure: Figure) -> None:
    bounds = re.search(r"\(([0-9.]+) to ([0-9.]+)\) times", figure.words)
    assert figure.loses == bool(bounds and float(bounds[2]) < 1)
    assert not (figure.loses and (figure.gains or figure.trade))


@pytest.mark.parametrize(
    "section", re.split(r"^## ", PAGE, flags=re.M)[1:], ids=lambda section: section.splitlines()[0]
)
def test_a_finding_carries_each_verdict_of_the_page(section: str) -> None:
    for verdict, shown in re.findall(r"^PROVE  \S+  (\w+), \w+\n(.*?)^```$", section, re.M | re.S):
        intervals = re.findall(r"\([+−][0-9.]+ to [+−][0-9.]+\)", shown)
        carried = [figure for figure in FIGURES if any(interval in figure.words for interval in intervals)]
        assert carried or section.startswith(ABOUT_PROVE), f"no finding carries this verdict, {verdict}:\n{shown}"


def test_what_rps_cost_is_carried_too() -> None:
    (times,) = re.findall(r"^\| one queue with RPS \| [0-9,]+ \| (.*) \|$", OTHER, re.M)
    off, on = {"rx-0": "", "rx-1": ""}, {"rx-0": "1-3", "rx-1": ""}
    assert times in gain_of("network_irq.rps", off, on)
    assert gain_of("network_irq.rps", on, off) == ""


def test_a_setting_that_nobody_measured_alone_has_what_its_whole_workload_brought(call: Call, tmp_path: Path) -> None:
    host = fresh(tmp_path, "nitro_big")
    result = call(tune.main, host, check=True, workload=["in_memory_database"])
    gains = {finding["knob"]: finding["gain"] for finding in result["findings"] if finding["status"] == "would_change"}
    assert "(−2.2 to +2.1)" in gains["slow_start_after_idle"]
    assert gains["overcommit"] == "", "it is a limit, which that load didn't reach"
    web = call(tune.main, host, check=True, workload=["web"])["findings"]
    assert {finding["gain"] for finding in web if finding["knob"] == "slow_start_after_idle"} == {""}


def test_gains_are_of_known_settings_and_of_that_change_alone() -> None:
    for figure in FIGURES:
        if figure.knob in WORKLOADS:
            continue
        concern, _dot, knob = figure.knob.partition(".")
        assert knob in {declared.name for declared in CONCERNS[concern].knobs if declared.lever}
        if figure.gains:
            assert CONCERNS[concern].unfelt(knob) == "", "what a load can't show, no finding quotes"
        assert gain_of(figure.knob, figure.before, figure.after) == figure.gain
        assert gain_of(figure.knob, figure.after, figure.before) == "", "the way back is no gain"
    assert len({figure[:3] for figure in FIGURES}) == len(FIGURES)
    assert gain_of("clocksource.source", "xen", "tsc") == ""


def test_the_finding_of_disks_that_all_change_alike_has_the_gain(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = fresh(tmp_path, "nitro_big")
    figure = Figure("block_storage.read_ahead_kb", "128", "4096", "a stream was faster", "1 Dec 2026", "a machine")
    monkeypatch.setattr(_measured, "FIGURES", (figure,))
    for goal, gain in ((4096, figure.gain), (64, "")):
        wanted = {"read_ahead_kb": goal, "method": "runtime"}
        findings = call(block_storage.main, host, check=True, **wanted)["findings"]
        (found,) = (finding["gain"] for finding in findings if finding["knob"] == "read_ahead_kb")
        assert found == gain


def test_no_concern_has_a_measured_gain_of_its_own() -> None:
    concerns = ROOT / "plugins/module_utils/_concerns"
    assert [path.name for path in concerns.rglob("*.py") if "measured on a" in path.read_text("utf-8")] == []
