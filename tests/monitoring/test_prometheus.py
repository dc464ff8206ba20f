# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/monitoring with Prometheus' own tools: the alerts, and the queries of the dashboard on our metrics."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.metrics.export import render
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import prometheus as form
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Report

from dev import ROOT
from dev.programs import prometheus
from tests.support.fleet import SLOW_CLOCK, finding, result_with
from tests.support.report import reports

FOLDER = ROOT / "docs" / "monitoring"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
REVIEW = finding("kernel_check", "advice", "review_after")
AT = 1769860800  # 31 January 2026, 12:00 UTC, when the run of the reports ended


def report() -> Report:
    """Hosts with all that the metrics can say."""
    samples = [
        {"interface": "ens5", "at": at, "seconds": at, "counters": {"pps_allowance_exceeded": at * 10}}
        for at in (1, 11)
    ]
    result = {**result_with(SLOW_CLOCK, REVIEW), "workload": ["web"], "allowances": samples}
    found = reports.collector({"web-1": result, "web-2": result})
    found.unreachable("web-3", "no route")
    built = found.report(reports.RUN)
    proof = {
        "ended": AT,
        "verdict": "better",
        "metric": "p99",
        "change": -3.0,
        "low": -4.0,
        "high": -2.0,
        "evidence": 40,
    }
    return replace(built, hosts=tuple(replace(host, proven=proof) for host in built.hosts))


def of_the_unit() -> str:
    """What a host exports of itself."""
    found = {"concerns": [], "drift": ["clocksource.source"], "needs_reboot": [], "failed": [], "damaged": []}
    allowances = {"ens5": {"pps_allowance_exceeded": 7, "conntrack_allowance_available": 900}}
    return render(found, allowances, exported=AT, planned=AT)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of Prometheus with two hours of our metrics, a value each minute."""
    folder = tmp_path_factory.mktemp("prometheus")
    lines: Dict[str, List[str]] = {}
    name = ""
    for line in (form.render(report()) + of_the_unit()).splitlines():
        if line.startswith("# TYPE"):
            name = line.split()[2]
            # OpenMetrics names a counter without what its samples end with.
            lines[name] = [line.replace("_total counter", " counter")]
        elif not line.startswith("#"):
            lines[name] += [f"{line} {AT + minute * 60}" for minute in range(0, 120, 5)]
    text = "\n".join(line for found in lines.values() for line in found) + "\n# EOF\n"
    (folder / "metrics").write_text(text)
    subprocess.run(
        [prometheus.tool("promtool"), "tsdb", "create-blocks-from", "openmetrics", "metrics", "data"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[str]:
    """The address of a Prometheus on that database."""
    (data / "prometheus.yml").write_text("{}")
    with prometheus.Server(data) as address:
        yield address


def test_the_page_names_each_metric_and_no_other() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w…]+)`", row)}
    exported = re.findall(r"^# TYPE (\w+)", form.render(report()) + of_the_unit(), re.MULTILINE)
    unnamed = [name for name in exported if not any(names(pattern, name) for pattern in named)]
    assert (unnamed, [pattern for pattern in named if not any(names(pattern, name) for name in exported)]) == ([], [])


def names(pattern: str, name: str) -> bool:
    """Whether a name of the page, in which … stands for any words, is this metric's."""
    return re.fullmatch(pattern.replace("…", r"\w+"), name) is not None


def answers(server: str, query: str) -> List[Dict[str, Any]]:
    command = [prometheus.tool("promtool"), "query", "instant", "--format=json", f"--time={AT + 6000}", server, query]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (query, done.stderr)
    found: List[Dict[str, Any]] = json.loads(done.stdout)
    return found


def chosen(query: str) -> str:
    """The query as Grafana sends it when all types and workloads are chosen."""
    return re.sub(r"\$(?:type|workload)", ".*", query)


def test_promtool_takes_the_alerts() -> None:
    done = subprocess.run(
        [prometheus.tool("promtool"), "check", "rules", str(FOLDER / "alerts.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(RULES)} rules found" in done.stdout


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_each_panel_of_the_dashboard_shows_something(server: str, panel: Dict[str, Any]) -> None:
    for target in panel["targets"]:
        assert answers(server, chosen(target["expr"])), target["expr"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_asks_what_prometheus_understands_and_names_known_metrics(server: str, rule: Dict[str, Any]) -> None:
    answers(server, rule["expr"])
    written = set(re.findall(r"^# TYPE (\S+)", form.render(report()) + of_the_unit(), re.M)) | {"nearmetal_review_due"}
    assert set(re.findall(r"nearmetal_\w+", rule["expr"])) <= written


def test_alerts_that_hold_are_raised(server: str) -> None:
    raised = {rule["alert"]: answers(server, rule["expr"]) for rule in RULES}
    assert [sample["metric"]["host"] for sample in raised["NearmetalHostDidNotReport"]] == ["web-3"]
    assert {sample["metric"]["allowance"] for sample in raised["NearmetalLimitOfEC2IsHit"]} == {
        "pps_allowance_exceeded"
    }
    assert raised["NearmetalHostDrifted"]
    assert raised["NearmetalUnitIsSilent"]
    assert raised["NearmetalUnitFails"] == []
    assert raised["NearmetalAuditIsOld"] == []
    assert raised["NearmetalSettingsDrifted"] == []


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    places = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & places, f"{panel['title']} lies on another panel"
        places |= cells
        assert panel["datasource"]["uid"] == "${datasource}"
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(DASHBOARD["panels"])))
    assert used <= variables
