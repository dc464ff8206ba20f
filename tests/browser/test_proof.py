# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a run of prove in a real browser: what it shows, on any screen, on paper, and of hostile texts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.record import Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._proof import page, words

from tests.support.browser import Browser
from tests.support.proofs import run, start

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as chromium:
        yield chromium


def load(step: Step) -> Tuple[Metric, ...]:
    """Throughput that rises by 6 %, and a latency that falls by 4 %."""
    generator, tuned = random.Random(f"page {step}"), step.switch_to == "tuned"
    noise = [0.0 if step.phase == "warm_up" else generator.gauss(0, 0.02) for _metric in range(2)]
    return (
        Metric("get", 81000 * (1 + noise[0]) * (1.06 if tuned else 1), "requests/s"),
        Metric("p99", 3.2 * (1 + noise[1]) * (0.96 if tuned else 1), "ms", "smaller"),
    )


def record_of(**settings: Any) -> Record:
    record = start(seed=4711, host="redis-1", **settings)
    return run(load, record=record._replace(start=record.start._replace(load="redis-benchmark -t get", load_on="host")))


def opened(browser: Browser, record: Record, folder: Path, width: int = 1280, **text: str) -> Dict[str, Any]:
    found = verdict(record)
    ending = words.Ending(True, ["clocksource.source"], [text.get("untested", "hugepages.thp: needs a reboot")])
    path = folder / "run.html"
    path.write_text(page.render(record, found, ending), "utf-8")
    browser.view(width, 900)
    browser.complaints.clear()
    browser.requests.clear()
    browser.open(path)
    assert browser.complaints == []
    assert set(browser.requests) == {path.as_uri()}
    return {metric.name: metric for metric in found.metrics}


def test_each_pair_is_a_dot_whose_shape_says_its_order(browser: Browser, tmp_path: Path) -> None:
    record = record_of()
    opened(browser, record, tmp_path)
    attempts = [measurement for measurement in record.measurements if measurement.phase == "pair"]
    second = sum(measurement.state == "tuned" for measurement in attempts[1::2])
    assert browser.run("document.querySelectorAll('svg.plot').length") == 2
    shapes = "[...document.querySelectorAll('svg.plot')].map((e) => [...e.querySelectorAll('{}')].length)"
    assert browser.run(shapes.format("path.second")) == [second] * 2
    assert browser.run(shapes.format("circle.first")) == [len(attempts) // 2 - second] * 2
    assert browser.run(shapes.format("polygon.band")) == [1, 1]
    assert browser.run(shapes.format("line.margin")) == [2, 2]
    # A rise is drawn above the zero line, also for a latency, where it is worse.
    high = """[...document.querySelectorAll('svg.plot')].map((plot) => {
      const zero = +plot.querySelector('.zero').getAttribute('y1');
      return [...plot.querySelectorAll('title')].every((title) => {
        const box = title.parentNode.getBBox(), above = box.y + box.height / 2 < zero;
        return title.textContent.includes(': 0.0') || title.textContent.includes(': +') === above;
      });
    })"""
    assert browser.run(high) == [True, True]


@pytest.mark.parametrize("factor", [30, 1e200])
def test_a_label_of_a_large_change_is_whole(browser: Browser, tmp_path: Path, factor: float) -> None:
    begun = start(seed=4711, host="redis-1")
    record = run(
        lambda step: (Metric("get", factor**0.5 if step.switch_to == "tuned" else factor**-0.5),), record=begun
    )
    opened(browser, record, tmp_path)
    left = "Math.min(...[...document.querySelectorAll('svg.plot text')].map((e) => e.getBBox().x))"
    assert browser.run(left) >= 0


@pytest.mark.parametrize("width", [360, 1400])
def test_it_fits_any_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    opened(browser, record_of(), tmp_path, width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    small = "Math.min(...[...document.querySelectorAll('svg.plot text')].map((e) => e.getBoundingClientRect().height))"
    assert browser.run(small) >= 9


def test_on_paper_and_to_a_screen_reader_it_says_the_same(browser: Browser, tmp_path: Path) -> None:
    opened(browser, record_of(), tmp_path)
    assert b"%PDF" in browser.pdf()[:8]
    label = browser.run("document.querySelector('svg.plot').getAttribute('aria-label')")
    assert label.startswith("get, change in percent of each of ")
    text = browser.run("document.body.innerText")
    for expected in (
        "better, kept",
        "evidence",
        "20:1 is needed",
        "tuned first",
        "tuned second",
        "margin of 2 %",
        "seed 4711",
    ):
        assert expected in text


def test_text_of_a_load_or_a_host_is_never_markup(browser: Browser, tmp_path: Path) -> None:
    record = record_of()
    record = record._replace(start=record.start._replace(host=HOSTILE, load=HOSTILE))
    opened(browser, record, tmp_path, untested=f"a.b: {HOSTILE}")
    assert browser.run("document.querySelectorAll('script, img').length") == 0
    assert HOSTILE in browser.run("document.body.innerText")


def test_a_run_without_pairs_has_no_picture_and_says_why(browser: Browser, tmp_path: Path) -> None:
    record = record_of()
    failed = record.measurements[0]._replace(metrics=(), error="the command ended with code 1: no server")
    opened(browser, record._replace(measurements=(failed,)), tmp_path)
    assert browser.run("document.querySelectorAll('svg').length") == 0
    assert "no server" in browser.run("document.body.innerText")
