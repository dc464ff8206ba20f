# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.html in a real browser, opened from a file: filters, keyboard, paper, hostile hosts, a large fleet."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Callable

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms.sources import links
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Past, Report

from dev.programs import axe
from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, finding, result_with
from tests.support.report import reports
from tests.support.report.browser import Browser
from tests.support.report.pictured import pictured

Open = Callable[..., Browser]
VISIBLE = "[...document.querySelectorAll('tr.row:not([hidden]) .host span:first-child')].map((e) => e.textContent)"


OTHER = result_with(finding("clocksource", "refused", reason="kubelet"))


def small_fleet() -> Report:
    collected = Collector()
    for name, group, kind, result in (
        ("web-1", "web", "c5.large", result_with(SLOW_CLOCK, finding("numa", "refused", reason="kubelet"))),
        ("web-2", "web", "m4.large", result_with(GOOD_CLOCK, finding("numa", "ok"))),
        ("db-1", "db", "c5.xlarge", result_with(SLOW_CLOCK, finding("numa", "ok"))),
    ):
        collected.groups(name, ["all", group])
        collected.add(name, {**result, "platform": {"instance_type": kind, "host_class": "nitro"}})
    collected.unreachable("db-2", "no route")
    return collected.report(reports.RUN)


def choose(page: Browser, field: str, words: str) -> Any:
    page.run(f"""(() => {{
      const field = document.getElementById("{field}");
      if (field.tagName === "SELECT") field.value = [...field.options].find((o) => o.text === "{words}").value;
      else field.value = "{words}";
      field.dispatchEvent(new Event("input", {{ bubbles: true }}));
    }})()""")
    return page.run(VISIBLE)


def test_filters(open_page: Open) -> None:
    page = open_page(small_fleet())
    assert page.run(VISIBLE) == ["db-1", "web-1", "web-2", "db-2"], "those with work to do first"
    assert choose(page, "f-status", "would change") == ["db-1", "web-1"]
    assert page.run("document.getElementById('shown').textContent") == "2 of 4 hosts"
    assert page.run("document.querySelector('[data-status=would_change]').getAttribute('aria-pressed')") == "true"
    assert choose(page, "f-group", "web") == ["web-1"]
    assert choose(page, "f-concern", "numa") == []
    assert choose(page, "f-status", "refused") == ["web-1"]
    page.run("document.querySelector('#filters [type=reset]').click()")
    assert page.run(f"new Promise((done) => setTimeout(() => done({VISIBLE})))") == ["db-1", "web-1", "web-2", "db-2"]
    assert choose(page, "f-family", "c5") == ["db-1", "web-1"]
    assert choose(page, "f-host", "DB") == ["db-1"]


def test_keyboard_alone(open_page: Open) -> None:
    page = open_page(small_fleet())
    page.run("document.querySelector('.host[tabindex=\"0\"]').focus()")
    for key in ("ArrowDown", "Enter"):
        page.key(key)
    assert page.run("document.activeElement.textContent") == "web-1"
    assert page.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    text = page.run("document.querySelector('.sheet').innerText")
    for part in (
        "TSC as clock source",
        "xen",
        "tsc",
        "vDSO",
        "AWS, 2017",
        "kubelet",
        "would change",
        "no interruption",
    ):
        assert part in text
    page.key("Enter")
    assert page.run("document.querySelectorAll('.sheet').length") == 0
    assert page.run("document.querySelectorAll('.host[tabindex=\"0\"]').length") == 1


def test_what_a_screen_reader_hears(open_page: Open) -> None:
    page = open_page(small_fleet())
    page.call("Accessibility.enable")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    heard = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]}
    for role, name in (
        ("heading", "Audit of 4 hosts"),
        ("button", "web-1"),
        ("columnheader", "type"),
        ("cell", "would change"),
        ("cell", "refused"),
        ("columnheader", "clocksource"),
        ("combobox", "Status"),
        ("searchbox", "Host"),
        ("image", "would change: 2 hosts, ok: 1 host"),
    ):
        assert (role, name) in heard, sorted(heard)
    unnamed = [role for role, name in heard if role in ("button", "combobox", "searchbox", "image") and not name]
    assert unnamed == []


CONTRAST = """(() => {
  const light = (color) => {
    const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const parts = color.match(/[0-9.]+/g).slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = (e) => {
    const own = getComputedStyle(e).backgroundColor;
    return /, 0\\)$/.test(own) ? ground(e.parentElement) : own;
  };
  const worst = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) worst.push(`${e.className || e.tagName} ${ratio.toFixed(2)}`);
  }
  return worst;
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast(open_page: Open, dark: bool) -> None:
    """WCAG AA: 4.5 to 1."""
    statuses = ("would_change", "needs_reboot", "needs_restart", "refused", "unknown", "changed", "unchangeable")
    more = ("advice", "waived", "ok", "not_applicable")
    result = result_with(*[finding(f"c{number}", status) for number, status in enumerate((*statuses, *more))])
    page = open_page(reports.report(result, {**result, "errors": {"numa": "no"}}, result_with(SLOW_CLOCK)), dark)
    page.run("document.querySelector('.host').click()")
    assert page.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert page.run(CONTRAST) == []


@pytest.mark.parametrize(("mode", "title"), [("audit", "Now"), ("tune", "Before")])
def test_what_a_host_had_before_a_tuning_is_not_called_now(open_page: Open, mode: str, title: str) -> None:
    report = reports.report(result_with(SLOW_CLOCK))
    page = open_page(dataclasses.replace(report, run=dataclasses.replace(report.run, mode=mode)))
    # The row of a single host is open.
    assert page.run("document.querySelector('.sheet thead th:nth-child(3)').textContent") == title


@pytest.mark.parametrize("width", [360, 390, 768, 1024, 1400, "paper"])
def test_reasons_have_room_on_any_screen_and_on_paper(open_page: Open, width: Any) -> None:
    page = open_page(small_fleet())
    width, media = (718, "print") if width == "paper" else (width, "")  # A4 with the margins of Chromium
    page.view(width, 800, media=media)
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    page.run("document.querySelectorAll('.host').forEach((button) => button.click())")
    rows = "[...document.querySelectorAll('.sheet tr:not(.settled) td:last-child')]"
    narrowest = page.run(f"Math.min(...{rows}.map((e) => e.clientWidth).filter(Boolean))")
    assert narrowest >= 200
    left = "[...document.querySelectorAll('.sheet tr > %s')].map((e) => e.getBoundingClientRect().left)"
    if width in (360, 390, 768):  # each value begins below its knob
        assert page.run(left % "th[scope=row]") == page.run(left % "[data-title=Now]")
    highest = page.run("Math.max(...[...document.querySelectorAll('.sheet tr')].map((e) => e.clientHeight))")
    assert highest <= 300
    assert page.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [360, 768, 1024, 1400, "paper"])
def test_a_long_name_breaks_between_its_words(open_page: Open, width: Any) -> None:
    knob, where = "slow_start_after_idle", "net.ipv4.tcp_slow_start_after_idle"
    collected = Collector()
    collected.add("a", result_with(finding("network_stack", "would_change", knob, where=where, now=1, wanted=0)))
    page = open_page(collected.report(reports.RUN))
    width, media = (718, "print") if width == "paper" else (width, "")
    page.view(width, 800, media=media)
    lines = page.run("""['.tops .knob', '.sheet th[scope=row] code', '.sheet th[scope=row] .from'].map((name) => {
      const range = document.createRange();
      return [...document.querySelector(name).childNodes].filter((n) => n.data).map((n) =>
        [range.selectNodeContents(n), n.data, range.getClientRects().length].slice(1));
    })""")
    shown = [f"network_stack.{knob}", knob, where]
    assert ["".join(part for part, _lines in name) for name in lines] == shown
    assert {count for name in lines for _part, count in name} == {1}


@pytest.mark.parametrize("width", [360, 1280])
def test_commands_are_folded_and_scroll_by_themselves(open_page: Open, width: int) -> None:
    collected = Collector()
    lines = ["# clocksource.source: faster", f"echo tsc > /sys/{'d' * 300} <b>"]
    collected.add("a", {**result_with(SLOW_CLOCK), "commands": lines})
    collected.add("b", result_with(SLOW_CLOCK))
    page = open_page(collected.report(reports.RUN))
    page.view(width, 800)
    page.run("document.querySelectorAll('.host').forEach((button) => button.click())")
    assert page.run("document.querySelectorAll('details.commands').length") == 1
    assert page.run("document.querySelector('details.commands').open") is False
    page.run("document.querySelector('.commands summary').click()")
    assert page.run("document.querySelector('pre').textContent") == "\n".join(lines)
    assert page.run("document.documentElement.scrollWidth") <= width


def test_on_paper_every_host_is_open(open_page: Open) -> None:
    page = open_page(small_fleet(), True)
    assert page.pdf().startswith(b"%PDF")
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run("document.querySelectorAll('.sheet').length") == 4
    assert page.run("document.documentElement.dataset.theme") == "light"
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run("document.querySelectorAll('.sheet').length") == 0
    assert page.run("document.documentElement.dataset.theme") == "dark"


def test_on_paper_hosts_with_the_same_findings_share_a_sheet(open_page: Open) -> None:
    page = open_page(reports.report(*[result_with(SLOW_CLOCK, platform={"kernel": f"6.{n}"}) for n in range(3)], OTHER))
    page.run("dispatchEvent(new Event('beforeprint'))")
    said = page.run("[...document.querySelectorAll('.sheet')].map((e) => e.textContent)")
    assert [text.endswith("The same findings as h0.") for text in said] == [False, True, True, False]
    assert "6.1" in said[1]
    page.run("dispatchEvent(new Event('afterprint'))")
    page.run("document.querySelectorAll('.host')[1].click()")
    assert "The same findings" not in page.run("document.querySelector('.sheet').textContent")


def test_each_sheet_of_paper_names_the_host_and_the_columns(open_page: Open) -> None:
    """Chromium draws the head of a table again on each sheet, but no button in it."""
    page = open_page(small_fleet())
    page.view(718, 800, media="print")
    page.run("document.querySelectorAll('.host').forEach((button) => button.click())")
    style = "getComputedStyle(document.querySelector('{}'), '{}').{}"
    heads = "[...document.querySelectorAll('thead')].map((head) => getComputedStyle(head).display)"
    assert set(page.run(heads)) == {"table-header-group"}
    assert page.run(style.format(".map > thead .sort", "", "display")) == "none"
    assert page.run(style.format(".map > thead [data-title]", "::after", "content")) == '"host"'
    first = page.run("document.querySelector('.sheet thead th').dataset.host")
    assert first in ("web-1", "web-2", "db-1")
    assert page.run(style.format(".sheet thead th:last-child", "::after", "content")) == f'" ({first})"'


@pytest.mark.parametrize(
    "text",
    [
        "</script><script>window.owned = true</script>",
        "<img src=https://evil.example/x onerror='window.owned = true'>",
        "<svg onload='window.owned = true'>",
        "javascript:window.owned=true",
        "<!--<script>",
        "\"'><a href='javascript:window.owned=true' autofocus onfocus='window.owned = true'>x</a>",
    ],
)
def test_hostile_host_is_only_shown(open_page: Open, text: str) -> None:
    fields = dict.fromkeys(("concern", "knob", "where", "reason", "now", "wanted", "reference", "gain", "owner"), text)
    collected = Collector()
    result = result_with({**finding("c", "would_change"), **fields}, errors={text: text}, reboot_required=True)
    collected.groups(text, [text])
    collected.add(text, {**result, "reboot_reasons": [text], "platform": {"instance_type": text, "kernel": text}})
    collected.failed(text, text)
    collected.add("other", result_with(SLOW_CLOCK))
    page = open_page(collected.report(reports.RUN))
    page.run("document.querySelectorAll('.host').forEach((button) => button.click())")
    assert page.run("window.owned") is None
    assert page.run("document.querySelectorAll('main img, main iframe, main object').length") == 0
    addresses = page.run("[...document.querySelectorAll('main a')].map((link) => link.href)")
    assert set(addresses) <= {url for _name, url in links(SLOW_CLOCK["reference"])}
    assert text in page.run("document.getElementById('map').innerText").replace("\n", " ")
    assert page.complaints == []


def test_a_thousand_hosts_open_and_filter(open_page: Open) -> None:
    """On a quiet machine both take less than a second; the limits leave room for a busy one."""
    page = open_page(reports.fleet(1000))
    assert page.run("document.querySelectorAll('tr.row').length") == 1000
    assert page.run("performance.getEntriesByType('navigation')[0].loadEventEnd") < 2000
    shown = choose(page, "f-group", "redis")
    assert len(shown) == 334
    page.run("window.began = performance.now()")
    assert len(choose(page, "f-host", "99")) > 0
    assert page.run("performance.now() - window.began") < 1000


@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True), (768, False), (1024, True), (1400, False)])
def test_axe_finds_nothing(open_page: Open, width: int, dark: bool) -> None:
    page = open_page(pictured(), dark)
    page.view(width, 900, dark)
    page.run("document.querySelectorAll('.host').forEach((button) => button.click())")
    page.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    page.run(axe.script())
    found = page.run("axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => v.id))")
    assert found == []
    assert page.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [768, 1024, 1400])
def test_each_heading_is_above_its_concerns(open_page: Open, width: int) -> None:
    page = open_page(pictured())
    page.view(width, 800)
    left = "[...document.querySelectorAll('%s')].map((e) => Math.round(e.getBoundingClientRect().left))"
    clock, threads, _memory = page.run(left % ".concern")
    assert page.run(left % ".groups th") == [clock, threads]


def test_what_only_keeps_values_is_folded_and_what_is_open_comes_first(open_page: Open) -> None:
    page = open_page(pictured())
    headings = "[...document.querySelectorAll('.sheet .heading th')].map((e) => e.firstChild.textContent)"
    assert page.run(headings) == ["clocksource", "smt", "numa"]
    assert page.run("document.getElementById('filters').hidden"), "there is nothing to choose among one host"
    assert page.run("document.querySelector('.upkeep').open") is False
    assert page.run("document.querySelector('.upkeep summary').textContent") == "Kept over reboots by 1 file or unit"


def test_hosts_are_sorted_by_any_column(open_page: Open) -> None:
    collected = Collector()
    for name, kind, changes in (("a", "m5.large", 1), ("b", "c5.large", 12), ("c", "m4.large", 2)):
        found = [finding("numa", "would_change", f"knob{number}", now=1, wanted=2) for number in range(changes)]
        collected.add(name, {**result_with(*found), "platform": {"instance_type": kind}})
    page = open_page(collected.report(reports.RUN))
    press = "[...document.querySelectorAll('.sort')].find((e) => e.textContent === '%s').click()"
    for title, first, again in (
        ("type", ["b", "c", "a"], ["a", "c", "b"]),
        ("to change", ["a", "c", "b"], ["b", "c", "a"]),
    ):
        for expected in (first, again):
            page.run(press % title)
            assert page.run(VISIBLE) == expected
    assert page.run("document.querySelector('[aria-sort=descending]').textContent") == "to change"


def test_a_trend_has_a_line_per_status_and_a_gap_where_a_host_was_absent(open_page: Open) -> None:
    past = tuple(
        Past(f"2026-01-2{day}T12:00:00Z", {"web-1": {"would_change": day}} if day != 3 else {}) for day in (2, 3, 4)
    )
    page = open_page(pictured(past=past))
    assert page.run("document.querySelector('#trend').hidden") is False
    said = page.run("[...document.querySelectorAll('.sheet .trend')].map((e) => e.innerText.split('\\n').join(' '))")
    assert [" ".join(line.split()) for line in said] == ["● would change 2 → 1", "! refused 0 → 1"]
    assert page.run("document.querySelector('.sheet .spark path').getAttribute('d').match(/M/g).length") == 2


def test_a_host_without_a_report_has_nothing_to_change_and_takes_nothing_from_the_trend(open_page: Open) -> None:
    collected = reports.collector({name: result_with(SLOW_CLOCK) for name in ("a", "b", "c")})
    collected.failed("b", "Restart the database: no such unit")
    collected.expect(["d"])
    collected.skipped(["d"])
    past = Past("2026-01-22T12:00:00Z", {"a": {"would_change": 2}, "b": {"would_change": 5}})
    page = open_page(collected.report(reports.RUN, past=(past,)))
    rows = "[...document.querySelectorAll('tr.row')].map((e) => [...e.querySelectorAll('.c-changes, td[colspan]')]"
    shown = page.run(rows + ".map((e) => e.textContent).filter(Boolean))")
    assert shown == [
        *(["1"], ["1"]),
        *(["failed"], ["skipped: the play's conditions leave this host out"]),
    ]
    why = page.run("[...document.querySelectorAll('tr.row > .why')].map((e) => e.textContent)")
    assert why[0] == "failed: Restart the database: no such unit", "in its row, not behind a click"
    said = page.run("document.querySelector('#trends').innerText")
    assert " ".join(said.split()) == "● would change 7 → 7", "2 → 1 on a, 5 on b, and c is new"
    page.run("document.querySelectorAll('.host').forEach((button) => button.click())")
    assert page.run("[...document.querySelectorAll('.sheet > .trouble')].length") == 1


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def test_paper_holds_25_hosts_on_14_pages_and_one_on_two(open_page: Open) -> None:
    page = open_page(reports.fleet(25))
    assert pages(page.pdf()) <= 14
    page = open_page(pictured())
    assert pages(page.pdf()) <= 2


def test_nine_headings_are_nine_and_a_long_table_keeps_its_head_in_sight(open_page: Open) -> None:
    page = open_page(reports.report(*[result_with(GOOD_CLOCK, finding("future", "ok"))] * 60))
    assert page.run("document.querySelectorAll('.tiles > li').length") == 9
    page.view(1400, 800)
    page.run("document.querySelector('.row:last-child .host').scrollIntoView({block: 'end'})")
    top = "document.querySelector('.map > thead').getBoundingClientRect().top"
    assert page.run(f"{top} >= 0 && {top} < 400")


def test_no_hosts(open_page: Open) -> None:
    page = open_page(Collector().report(reports.RUN))
    assert "The play had no hosts." in page.run("document.body.innerText")
