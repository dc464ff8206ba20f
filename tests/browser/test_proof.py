# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a run of prove in a real browser: what it shows, on any screen, on paper, and of hostile texts."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import host_map, page, sentences
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove.page import heat_map

from tests.support.prove.proofs import run, shared, start
from tests.support.report.browser import Browser

NOW = 1_795_000_000.0
HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(2)>"


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
    ending = sentences.Ending(True, ["clocksource.source"], [text.get("untested", "hugepages.thp: needs a reboot")])
    path = folder / "run.html"
    path.write_text(page.render(record, found, ending), "utf-8")
    browser.view(width, 900)
    browser.open_whole(path)
    return {metric.name: metric for metric in found.metrics}


def hosts() -> List[host_map.Host]:
    """Hosts with each kind of end, and with figures that differ in direction and size."""
    found: List[host_map.Host] = []
    for name, effects in (
        ("redis-1", (0.06, -0.04)),
        ("redis-2.eu-central-1.compute.internal", (0.31, -0.25)),
        ("redis-3", (-0.08, 0.06)),
        ("redis-4", (-0.3, 0.0)),
        ("redis-5", (0.0, 0.0)),
    ):
        noise = 0.004 if name == "redis-5" else 0.02

        def figures(step: Step, name: str = name, effects: Any = effects, noise: float = noise) -> Tuple[Metric, ...]:
            generator, tuned = random.Random(f"{name} {step}"), step.switch_to == "tuned"
            get, p99 = (
                value * (1 + (0.0 if step.phase == "warm_up" else generator.gauss(0, noise))) * (1 + effect * tuned)
                for value, effect in zip((81000, 3.2), effects)
            )
            return (Metric("get", get, "requests/s"), Metric("p99", p99, "ms", "smaller"))

        result = verdict(run(figures, record=start(seed=11, host=name)))
        reports = [f"/srv/report/prove/{name}-20261123T184500Z-11{end}" for end in (".json", ".md", ".html")]
        found += filter(
            None, [host_map.host_of(name, {"verdict": result.as_dict(), "kept": result.keep, "reports": reports})]
        )
    restless = {"verdict": {**verdict(record_of()).as_dict(), "verdict": "not_quiet"}}
    found += filter(None, [host_map.host_of("redis-6", restless)])
    found += filter(None, [host_map.host_of("redis-7", {"msg": f"no route to host {HOSTILE}"}, "unreachable")])
    return found


def opened_map(browser: Browser, folder: Path, width: int = 1280) -> None:
    browser.view(width, 900)
    path = Path(heat_map.write(str(folder), hosts(), NOW))
    assert (path.stat().st_mode & 0o777, path.parent.name) == (0o600, "prove")
    browser.open_whole(path)


def test_the_map_has_a_cell_with_a_sign_for_each_figure_of_each_host(browser: Browser, tmp_path: Path) -> None:
    opened_map(browser, tmp_path)
    rows = """[...document.querySelectorAll('tbody tr')].map((row) => [row.querySelector('th').innerText,
      [...row.querySelectorAll('td .mark')].map((mark) => mark.innerText).join('')])"""
    assert dict(browser.run(rows)) == {
        "redis-1": "▲▲▲",
        "redis-2.eu-central-1.compute.internal": "▲▲▲",
        "redis-3": "▼▼▼",  # a latency that rises
        "redis-4": "▼▼?",
        "redis-5": "==?",
        "redis-6": "???",  # pairs that don't count decide nothing
        "redis-7": "✗––",
    }
    text = browser.run("document.body.innerText")
    for expected in ("2 better, 2 worse, 1 same, 1 not quiet, 1 unreachable", "no route to host </style>"):
        assert expected in text
    link = "document.querySelector('tbody a').getAttribute('href')"
    assert browser.run(link) == "redis-1-20261123T184500Z-11.html"
    assert browser.run("document.querySelectorAll('script, img').length") == 0


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_the_map_fits_any_screen_and_names_each_figure_on_it(browser: Browser, tmp_path: Path, width: int) -> None:
    opened_map(browser, tmp_path, width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    heads = "getComputedStyle(document.querySelector('thead')).display"
    label = "getComputedStyle(document.querySelector('td[data-figure]'), '::before').content"
    assert (browser.run(heads) == "none") == (browser.run(label) == '"get"') == (width == 360)
    assert b"%PDF" in browser.pdf()[:8]


@pytest.mark.parametrize("dark", [False, True])
def test_each_text_of_the_map_can_be_read_on_its_color(browser: Browser, tmp_path: Path, dark: bool) -> None:
    opened_map(browser, tmp_path)
    browser.view(1280, 900, dark)
    contrast = """(() => {
      const light = (color) => color.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255)
        .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
      return Math.min(...[...document.querySelectorAll('td[class*="-"]')].map((cell) => {
        const style = getComputedStyle(cell), under = style.backgroundColor;
        const back = under === 'rgba(0, 0, 0, 0)' ? getComputedStyle(document.body).backgroundColor : under;
        const [low, high] = [light(style.color), light(back)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
      }));
    })()"""
    assert browser.run(contrast) >= 4.5


def test_the_marks_of_a_list_are_on_its_card(browser: Browser, tmp_path: Path) -> None:
    begun = start(each=True)
    tested = begun._replace(start=begun.start._replace(tested=("clocksource.source", "hugepages.thp")))
    opened(browser, run(shared({"clocksource": 0.05, "hugepages": 0.0}), record=tested), tmp_path)
    assert browser.run("parseFloat(getComputedStyle(document.querySelector('ul.card')).paddingLeft)") > 30


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


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("factor", [1.12, 0.88, 30, 1e200])
def test_each_label_is_whole_with_its_sign(browser: Browser, tmp_path: Path, factor: float, width: int) -> None:
    begun = start(seed=4711, host="redis-1")
    record = run(
        lambda step: (Metric("get", factor**0.5 if step.switch_to == "tuned" else factor**-0.5),), record=begun
    )
    opened(browser, record, tmp_path, width)
    left = "Math.min(...[...document.querySelectorAll('svg.plot text')].map((e) => e.getBBox().x))"
    assert browser.run(left) >= 0


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_it_fits_any_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    opened(browser, record_of(), tmp_path, width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    small = "Math.min(...[...document.querySelectorAll('svg.plot text')].map((e) => e.getBoundingClientRect().height))"
    assert browser.run(small) >= 11
    heads = "[...document.querySelectorAll('.figures td')].map((e) => getComputedStyle(e, '::before').content)"
    assert (browser.run(heads)[:2] == ['"change "', '"interval "']) == (width == 360)


def test_on_paper_and_to_a_screen_reader_it_says_the_same(browser: Browser, tmp_path: Path) -> None:
    opened(browser, record_of(), tmp_path)
    pages = re.findall(rb"/Type */Page\b", browser.pdf())
    assert len(pages) <= 2, "two pictures are side by side"
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
