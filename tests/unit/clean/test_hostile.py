# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compromised host reports anything: no form of the report may do more than show it.

The oracles are independent parsers: CommonMark's, Python's HTML parser, Prometheus's client.
"""

from __future__ import annotations

import json
import math
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import jsonschema
import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import html, markdown, prometheus, terminal
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms.sources import address, sources
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import allowances, document
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Report
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from prometheus_client.parser import text_string_to_metric_families

from tests.support.fleet import GOOD_CLOCK, ROOT, finding, result_with
from tests.support.report import reports

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((ROOT / "plugins/plugin_utils/_report/report.schema.json").read_text())
)
HOSTILE = {
    "end of script": "</script><script>alert(1)</script>",
    "comment": "<!--<script>",
    "image": "<img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" x="',
    "template": "{{ 7 * 7 }}{% raw %}{{ lookup('pipe', 'id') }}",
    "javascript": "[click](javascript:alert(1)) javascript:alert(1)",
    "link": "https://evil.example/x www.evil.example evil@evil.example",
    "reference": "[a]: https://evil.example\n\n![b][a] @everyone #1",
    "cell": "a | b |\n| --- | --- |\n\n# heading\n\n- item",
    "code": "`` ` `whoami` $(id) ``` ~~~",
    "emphasis": "*a* _b_ **c** __d__ ~~e~~ \\*f\\*",
    "entity": "&lt;script&gt; &#60;b&#62;",
    "color": "\x1b[31mred\x1b[0m\x1b[2J\x1b[1;1H",
    "title and link": "\x1b]0;title\x07\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "one byte controls": "\x9b31m\x90q\x07\b\r\x7f",
    "backwards": "\u202egnp.exe\u202c\u2066x\u2069\u200b\ufeff",
    "NUL": "a\0b",
    "separators": "a\u2028b\u2029c\x85d",
    "quotes": "'; DROP TABLE hosts; -- \" \\ \n",
    "long": "x" * 100_000,
    "long escapes": "\x1b[" + "1;" * 50_000,
    "surrogate": "\ud800",
    "formula": '=HYPERLINK("https://evil.example")',
}
ADDRESSES = {address(name) for name in sources()}
FIELDS = ("concern", "knob", "where", "reason", "now", "wanted", "reference", "gain", "owner")


def everywhere(value: Any) -> Report:
    """A report in which every string that a host or an inventory can set is this value."""
    hostile = {**finding("c", "would_change"), **dict.fromkeys(FIELDS, value)}
    action = dict.fromkeys(("concern", "knob", "what", "where", "before", "after", "scope", "reversible"), value)
    result = result_with(
        hostile,
        {**hostile, "status": "refused"},
        actions=[{**action, "wanted_by": value, "disruptive": value}],
        msg=value,
        errors={value: value},
        workload=value,
        platform=dict.fromkeys(("host_class", "instance_type", "kernel", "serial"), value),
        reboot_reasons=[value],
        reboot_required=True,
        topology={
            "sockets": ["0-3", 7],
            "nodes": [{"id": -1, "cpus": value, "memory": True}, "junk"],
            "caches": {"name": value},
            "nics": [{"name": value, "place": value, "driver": value, "node": value}],
        },
        queue_map=[
            {"name": value, "place": value, "node": value, "queues": [{"queue": at, "now": served, "wanted": value}]}
            for at, served in enumerate(({"cpus": value, "rps": value, value: value}, value))
        ],
        allowances=[
            {"interface": value, "seconds": at, "counters": {"pps_allowance_exceeded": at, value: value}}
            for at in (1, 2)
        ],
    )
    collected = Collector()
    collected.add("h1", result)
    collected.groups("h1", [value])
    collected.add("h2", result_with(hostile))
    collected.failed("h2", value)
    collected.unreachable("h3", value)
    collected.add(value, result_with(GOOD_CLOCK))
    earlier = reports.report(result_with({**hostile, "now": "before"})).hosts
    return collected.report(reports.RUN, ["seen"], ["would_change"], ("2026-01-01T00:00:00Z", earlier))


@pytest.fixture(params=HOSTILE)
def report(request: pytest.FixtureRequest) -> Report:
    return everywhere(HOSTILE[request.param])


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value


def test_json(report: Report) -> None:
    text = document.dump(report)
    plain = json.loads(text)
    SCHEMA.validate(plain)
    assert len(text) < 200_000
    for value in strings(plain):
        assert not {unicodedata.category(character) for character in value} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_terminal(report: Report) -> None:
    for line in terminal.render(report, 80):
        assert line.isprintable()


def test_prometheus(report: Report) -> None:
    families = list(text_string_to_metric_families(prometheus.render(report)))
    samples = [sample for family in families for sample in family.samples]
    assert len(samples) > 10
    labels = {label for sample in samples for label in sample.labels}
    host = {"architecture", "class", "host", "state", "type", "workload"}
    assert labels <= {*host, "allowance", "concern", "interface", "knob", "status"}


def test_markdown_shows_the_text_and_nothing_else(report: Report) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(markdown.render(report))
    inline = [child for token in tokens for child in token.children or ()]
    # Emphasis and strong are ours; each is opened around a text that is escaped.
    assert {child.type for child in inline} <= {
        "code_inline",
        "text",
        "text_special",
        "em_open",
        "em_close",
        "strong_open",
        "strong_close",
        "softbreak",
        "link_open",
        "link_close",
    }
    # The only code is a command of ours, and the only links are those to our own sources.
    assert all(child.content.startswith("ansible-playbook ") for child in inline if child.type == "code_inline")
    assert {child.attrs["href"] for child in inline if child.type == "link_open"} <= ADDRESSES
    assert not {token.type for token in tokens} & {"html_block", "fence", "code_block", "bullet_list_open", "hr"}
    titles = {"status", "knob", "now", "wanted", "why", "reference"}
    assert titles <= {token.content for token in tokens if token.type == "inline"}


def test_markdown_tables_keep_their_columns(report: Report) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(markdown.render(report))
    widths: List[List[int]] = []
    for token in tokens:
        if token.type == "table_open":
            widths.append([])
        elif token.type == "tr_open":
            widths[-1].append(0)
        elif token.type in ("td_open", "th_open"):
            widths[-1][-1] += 1
    assert len(widths) >= 4
    assert all(len(set(rows)) == 1 for rows in widths)


class Page(HTMLParser):
    """Every tag with its attributes, and the text of the elements that run."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: List[Tuple[str, Dict[str, str]]] = []
        self.inside: Dict[str, List[str]] = {"script": [], "style": []}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Any]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in self.inside:
            self.inside[self._open].append(data)


def shape(text: str) -> List[Tuple[str, Tuple[str, ...]]]:
    return [(tag, tuple(sorted(attributes))) for tag, attributes in Page(text).tags]


def test_page_has_the_tags_that_it_has_with_harmless_text(report: Report) -> None:
    text = html.render(report)
    harmless = shape(html.render(everywhere("harmless")))
    assert {"wbr", *(tag for tag, _attributes in shape(text))} == {tag for tag, _attributes in harmless}
    assert set(shape(text)) <= set(harmless)
    page = Page(text)
    assert len(page.inside["script"]) == 2
    assert not any(
        name.startswith("on") or (name in ("href", "src", "style") and value not in {"#fleet", *ADDRESSES})
        for _tag, attributes in page.tags
        for name, value in attributes.items()
    )
    data = json.loads(page.inside["script"][0])
    assert len(data["hosts"]) == 4
    assert set(data["sources"].values()) <= ADDRESSES


def test_a_source_is_a_link_and_what_a_host_adds_to_it_is_none() -> None:
    named = everywhere("RFC 6298; https://evil.example; docs/unit.md")
    unit = "https://github.com/nearmetal/ec2/blob/main/docs/unit.md"
    row = next(line for line in markdown.render(named).splitlines() if "RFC 6298" in line and "[docs" in line)
    assert "[RFC 6298](<https://www.rfc-editor.org/rfc/rfc6298>); https:&#47;&#47;evil.example; [docs" in row
    assert f"](<{unit}>)" in row
    data = json.loads(Page(html.render(named)).inside["script"][0])
    assert data["sources"]["docs/unit.md"] == unit
    assert "https://evil.example" not in data["sources"]


def test_page_allows_only_its_own_style_and_script() -> None:
    policy = next(
        attributes["content"]
        for tag, attributes in Page(html.render(everywhere("x"))).tags
        if "http-equiv" in attributes
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 2


def test_identity_of_a_host_stays_on_it() -> None:
    report = reports.report(
        result_with(GOOD_CLOCK, platform={"instance_id": "i-0123456789", "serial": "ec2abc", "kernel": "6"})
    )
    assert report.hosts[0].platform == {"kernel": "6"}


# Values that a clock, a counter or a driver never returns, or only once.
NUMBERS = (-1e308, 1e308, 5e-324, float("inf"), float("nan"), 10**400, -(10**400), 2**63, -5, 0, 10**10, 1.5)
SAMPLES = st.fixed_dictionaries(
    {
        "interface": st.just("ens5"),
        "seconds": st.sampled_from(NUMBERS),
        "packets": st.sampled_from(NUMBERS),
        "counters": st.dictionaries(st.sampled_from(sorted(allowances.LIMITS)), st.sampled_from(NUMBERS)),
    }
)


@given(st.lists(SAMPLES, max_size=3), st.lists(SAMPLES, max_size=3))
def test_no_number_of_a_host_breaks_the_json(before: List[Any], today: List[Any]) -> None:
    earlier = reports.report(result_with(allowances=before)).hosts
    report = reports.report(result_with(allowances=today), earlier=("2026-01-01T00:00:00Z", earlier))
    SCHEMA.validate(json.loads(document.dump(report), parse_constant=_refused))
    for family in text_string_to_metric_families(prometheus.render(report)):
        assert all(math.isfinite(sample.value) for sample in family.samples)


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
def test_facts_with_any_number_make_a_valid_report(seconds: Any, number: Any) -> None:
    sample = {"seconds": seconds, "packets": {"e": number}, "allowances": {"e": {"pps_allowance_exceeded": number}}}
    found = {"ansible_facts": {"nearmetal": {"network": {"sample": sample}}}}
    report = reports.report(result_with(allowances=allowances.read_samples(found, 1769860800.0)))
    SCHEMA.validate(json.loads(document.dump(report), parse_constant=_refused))


def test_an_earlier_report_with_numbers_beyond_json_makes_a_valid_one(tmp_path: Path) -> None:
    reported = result_with(allowances=[{"interface": "ens5", "seconds": 5, "packets": 0, "counters": {}, "more": 7}])
    path = tmp_path / "report.json"
    path.write_text(document.dump(reports.report(reported)).replace('"more": 7', '"more": 1e999'))
    report = reports.report(reported, earlier=document.load(str(path)))
    SCHEMA.validate(json.loads(document.dump(report), parse_constant=_refused))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = (
    "findings",
    "actions",
    "errors",
    "platform",
    "workload",
    "msg",
    "reboot_required",
    "reboot_reasons",
    "allowances",
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JUNK)), st.lists(JUNK, max_size=3))
def test_any_result_makes_a_valid_report(result: Dict[str, Any], findings: List[Any]) -> None:
    entries = [{**finding("c", "ok"), "reason": entry, "now": entry, "where": entry} for entry in findings]
    report = reports.report({**result, "findings": [*entries, *findings]})
    SCHEMA.validate(json.loads(document.dump(report)))
    html.render(report)
    markdown.render(report)
    terminal.render(report)
    list(text_string_to_metric_families(prometheus.render(report)))


def test_an_endless_report_of_a_host_is_cut_and_the_cut_is_reported() -> None:
    endless = result_with(*[finding(f"concern{number}", "ok", reason="r" * 1900) for number in range(5000)])
    report = reports.report(endless, result_with(GOOD_CLOCK))
    assert len(document.dump(report)) < 1_000_000
    assert "more than 256 KiB" in report.hosts[0].notes[0]
    assert report.hosts[1].notes == ()


def test_findings_of_another_form_are_counted() -> None:
    report = reports.report(
        {**result_with(GOOD_CLOCK), "findings": [GOOD_CLOCK, finding("numa", "excellent"), "a text"]}
    )
    assert [finding.concern for finding in report.hosts[0].findings] == ["clocksource"]
    assert "2 findings" in report.hosts[0].notes[0]
