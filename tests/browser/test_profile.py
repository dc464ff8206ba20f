# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a profile in a real browser: to look at, to search, by keyboard, and of hostile names."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.folding import Folder, Tree
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._profile import page
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._profile.difference import Frame

from tests.support.report.browser import Browser

NOW = 1_795_000_000.0
RECORDED = Path(__file__).parents[1] / "unit/profile/recorded/redis_dd_python-cpu-clock-perf-6.1-linux-6.18.txt"
HOSTILE = "</script><img src=x onerror=alert(2)>"
RESULT: Dict[str, Any] = {
    "samples": 30,
    "idle": 12,
    "frequency": 99,
    "event": "cpu-clock",
    "kernel": "6.1.0-18-amd64",
    "version": "perf version 6.1.187",
    "top": [{"name": f"main{HOSTILE}", "own": 0.41, "share": 0.5}],
    "counters": {"context_switches": 51781, "busiest_cpu": {"cpu": 1}},
    "notes": [f"no CPU counters here {HOSTILE}"],
}


def recorded() -> Tree:
    folder = Folder()
    folder.add(RECORDED.read_text("utf-8").splitlines(keepends=True))
    return folder.tree()


def many(stacks: int) -> Tree:
    """So many distinct stacks, twelve functions deep."""
    generator, names = random.Random(7), [f"function_{number}" for number in range(5000)]
    depth, name, own = [0], [0], [0]
    for stack in range(stacks):
        kept = 0 if stack == 0 else 10 - min(9, int(generator.expovariate(0.8)))
        for level in range(kept + 1, 12):
            depth.append(level)
            name.append(generator.randrange(5000) if level > 4 else level)
            own.append(0)
        own[-1] = 1 + generator.randrange(9)
    return Tree(names, depth, name, own)


def opened(browser: Browser, folder: Path, tree: Tree, width: int = 1280) -> None:
    path = folder / "profile.html"
    path.write_text(page.render("redis-1", {"profile": [tree]}, RESULT, NOW), "utf-8")
    browser.view(width, 900)
    browser.open_whole(path)


def compared(browser: Browser, folder: Path) -> None:
    """A page of two states, of which a function takes more, another less, and a third nothing any more."""
    untuned = Tree(["db", "same", "read_hpet_[k]", "look_up"], [0, 1, 1, 1], [0, 1, 2, 3], [0, 50, 40, 10])
    tuned = Tree(["db", "same", "look_up"], [0, 1, 1], [0, 1, 2], [0, 50, 50])
    rows = [("read_hpet_[k]", 0.4, 0.0, 900.0, -1), ("look_up", 0.1, 0.5, 9e9, 1), ("same", 0.5, 0.5, 1.0, 0)]
    found = [Frame(*row) for row in rows]
    path = folder / "profile.html"
    path.write_text(page.render("redis-1", {"untuned": [untuned], "tuned": [tuned]}, RESULT, NOW, found), "utf-8")
    browser.view(1280, 900)
    browser.open_whole(path)


def test_a_difference_colors_and_marks_only_what_moved(browser: Browser, tmp_path: Path) -> None:
    compared(browser, tmp_path)
    shown = """[...document.querySelectorAll('#icicle g')].map((group) =>
      [group.textContent, group.querySelector('rect').className.baseVal])"""
    difference = browser.run(shown)
    browser.run("document.querySelector('input[value=\"0\"]').click()")
    assert ["same", "u"] in browser.run(shown)
    assert "2 functions of 3 with a share above 0.5 % have another share" in browser.run("document.body.innerText")
    browser.run("document.querySelector('input[value=\"1\"]').click()")
    assert not any("read_hpet" in text for text, _look in browser.run(shown)), "tuned it takes nothing"
    browser.run("document.querySelector('input[value=\"2\"]').click()")
    assert browser.run(shown) == difference, "it is what the page shows first"
    found = {tuple(pair) for pair in difference}
    assert found == {
        ("all", "p"),
        ("db", "still"),
        ("same", "still"),
        ("▼ read_hpet_[k]", "less"),
        ("▲ look_up", "more"),
    }
    browser.run("document.getElementById('icicle').focus()")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    assert says(browser) == "same; untuned 50.0 %, tuned 50.0 %; no evidence that its share differs"


def frames(browser: Browser) -> int:
    return int(browser.run("document.querySelectorAll('#icicle g').length"))


def says(browser: Browser) -> str:
    return str(browser.run("document.getElementById('says').textContent"))


def search(browser: Browser, text: str) -> str:
    script = f"""(() => {{
      const field = document.getElementById('search');
      field.value = {text!r};
      field.dispatchEvent(new Event('input'));
      return document.getElementById('found').textContent;
    }})()"""
    return str(browser.run(script))


def test_a_function_is_as_wide_as_its_share(browser: Browser, tmp_path: Path) -> None:
    tree = recorded()
    opened(browser, tmp_path, tree)
    widths = """(() => {
      const wide = (group) => +group.querySelector('rect').getAttribute('width');
      const groups = [...document.querySelectorAll('#icicle g')];
      return Object.fromEntries(groups.map((group) => [group.place, wide(group) / wide(groups[0])]));
    })()"""
    drawn = {int(place): share for place, share in browser.run(widths).items()}
    whole = sum(tree.own)
    ends = [
        next((end for end in range(place + 1, len(tree.own)) if tree.depth[end] <= depth), len(tree.own))
        for place, depth in enumerate(tree.depth)
    ]
    totals = [sum(tree.own[place:end]) for place, end in enumerate(ends)]
    assert drawn.pop(-1) == 1
    assert all(abs(share - totals[place] / whole) < 0.001 for place, share in drawn.items())
    assert {place for place, total in enumerate(totals) if total / whole > 0.01} <= set(drawn)


def test_it_is_read_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, recorded())
    browser.run("document.getElementById('icicle').focus()")
    before = frames(browser)
    browser.key("ArrowDown")
    assert says(browser) == "redis-server; 33.3 % of all samples"
    browser.key("ArrowDown")
    deeper = says(browser)
    assert deeper != "redis-server; 33.3 % of all samples"
    browser.key("ArrowUp")
    browser.key("Enter")
    assert says(browser) == "redis-server; 33.3 % of all samples; 100.0 % of what is magnified"
    assert frames(browser) != before
    wide = "['.current rect', 'rect'].map((box) => +document.querySelector('#icicle ' + box).getAttribute('width'))"
    assert len(set(browser.run(wide))) == 1, "it has the whole width"
    browser.key("Escape")
    assert (frames(browser), says(browser)) == (before, "all; 100.0 % of all samples")


def test_a_search_says_the_share_and_marks_what_it_found(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, recorded())
    assert search(browser, "REDIS-SERVER") == "1 function, in 33.3 % of the samples"
    assert browser.run("[...document.querySelectorAll('.hit')].map((group) => group.textContent)") == ["redis-server"]
    assert search(browser, "") == ""
    assert browser.run("document.querySelectorAll('.hit, .dim').length") == 0


def test_names_are_never_markup(browser: Browser, tmp_path: Path) -> None:
    tree = recorded()
    opened(browser, tmp_path, tree._replace(names=[f"{HOSTILE}{name}" for name in tree.names]))
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert HOSTILE in browser.run("document.querySelector('.figures').textContent")
    browser.run("document.getElementById('icicle').focus()")
    browser.key("ArrowDown")
    assert says(browser).startswith(f"{HOSTILE}redis-server; ")


def test_a_hundred_thousand_stacks_open_and_magnify_at_once(browser: Browser, tmp_path: Path) -> None:
    tree = many(100_000)
    assert sum(1 for _line in tree.lines()) == 100_000
    browser.call("Performance.enable", timeDomain="threadTicks")
    opened(browser, tmp_path, tree)
    assert 500 < frames(browser) < 20_000, "what is narrower than a pixel isn't drawn"
    opening = spent(browser)
    assert opening < 1
    clicked = "document.querySelectorAll('#icicle g')[20].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    browser.run(f"{clicked}, document.getElementById('icicle').getBBox().width")
    assert spent(browser) - opening < 1
    assert search(browser, "function_4999").startswith("1 function, in ")


def spent(browser: Browser) -> float:
    """Seconds of CPU time that the page has taken, whatever else the machine does."""
    metrics = browser.call("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


@pytest.mark.parametrize("width", [390, 1400])
def test_it_fits_a_screen_and_paper(browser: Browser, tmp_path: Path, width: int) -> None:
    opened(browser, tmp_path, recorded(), width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert b"%PDF" in browser.pdf()[:8]


def test_each_name_can_be_read_on_its_color(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, recorded())
    for dark in (False, True):
        browser.view(1280, 900, dark)
        colors = """[...new Set([...document.querySelectorAll('#icicle text')].map((text) =>
          [getComputedStyle(text).fill, getComputedStyle(text.previousSibling).fill].join('/')))]"""
        for pair in browser.run(colors):
            dark_part, light_part = sorted(_light(color) for color in pair.split("/"))
            assert (light_part + 0.05) / (dark_part + 0.05) >= 4.5, pair


def _light(color: str) -> float:
    parts = [int(part) / 255 for part in color.strip("rgb()").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
