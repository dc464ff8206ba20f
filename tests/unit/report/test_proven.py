# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last verdict of prove in a report: beside its settings, as data, and as lines for Prometheus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional

import jsonschema
import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import html, markdown, prometheus
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import document as proof_document
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import sentences
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import document, proven
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Report

from tests.support.fleet import SLOW_CLOCK, Fleet, finding, result_with
from tests.support.prove.proofs import noisy, run, start
from tests.support.report import reports
from tests.support.report.judged import well

VALUES = {"clocksource.source": ["tsc"], "numa.zone_reclaim_mode": ["0", "1"]}
SAID = "proven on 21 Sep 2026: get at least +"


def wrote(folder: Path, effect: float, when: str, host: str = "db-1", **changed: Any) -> Path:
    """The report of a run of prove."""
    (folder / "prove").mkdir(exist_ok=True)
    record = run(noisy(effect, 0.02, name="get"), record=start(host=host))
    found, ending = (
        verdict(record),
        sentences.Ending(True, ["clocksource.source", "numa.zone_reclaim_mode"], wanted=VALUES),
    )
    content = {**proof_document.content(record, found, ending), **changed}
    path = folder / f"prove/{host}-{when}-1.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def report_of(folder: Path) -> Report:
    collected = Collector()
    reported = result_with(
        SLOW_CLOCK,
        finding("numa", "ok", "zone_reclaim_mode", wanted="0"),
        finding("hugepages", "ok", "thp", gain="AWS"),
    )
    for name in ("db-1", "db-2"):
        collected.add(name, reported)
    return collected.report(reports.RUN, proofs=proven.last(str(folder), collected.names()))


def test_the_last_verdict_is_beside_each_setting_that_took_part(tmp_path: Path) -> None:
    wrote(tmp_path, -0.08, "20260920T100000Z")
    wrote(tmp_path, 0.08, "20260921T100000Z")
    report = report_of(tmp_path)
    gains = {(host.name, found.concern): found.gain for host in report.hosts for found in host.findings}
    assert gains["db-1", "clocksource"].startswith(SAID)
    assert gains["db-1", "clocksource"].endswith("), with 1 other setting, under the load of that run")
    assert gains["db-1", "numa"] == gains["db-1", "clocksource"]
    assert gains["db-1", "hugepages"] == "AWS"
    assert gains["db-2", "clocksource"] == SLOW_CLOCK["gain"]
    assert SAID in html.render(report)
    assert SAID in markdown.render(report).replace("\\", "")


@pytest.mark.parametrize("wanted", ["hpet", None])
def test_a_value_that_was_never_measured_is_not_proven(wanted: Optional[str], tmp_path: Path) -> None:
    wrote(tmp_path, 0.08, "20260921T100000Z")
    collected = Collector()
    collected.add("db-1", result_with({**SLOW_CLOCK, "wanted": wanted}))
    report = collected.report(reports.RUN, proofs=proven.last(str(tmp_path), collected.names()))
    gain = report.hosts[0].findings[0].gain
    assert gain.endswith(
        ", with 1 other setting, with a value other than the one wanted now, under the load of that run"
    ), gain


@pytest.mark.parametrize(("reboot", "gain"), [(False, "AWS"), (True, SAID)])
def test_what_the_load_of_an_earlier_version_could_not_show_is_not_proven(
    reboot: bool, gain: str, tmp_path: Path
) -> None:
    of_thp = {"tested": ["clocksource.source", "hugepages.thp"], "wanted": {"hugepages.thp": [None]}}
    settings = {**start(host="db-1").start.settings._asdict(), "reboot": reboot}
    wrote(tmp_path, 0.08, "20260921T100000Z", settings=settings, **of_thp)
    gains = {found.concern: found.gain for host in report_of(tmp_path).hosts[:1] for found in host.findings}
    assert gains["hugepages"].startswith(gain)
    assert gains["clocksource"].startswith(SAID)


def test_it_is_data_too(tmp_path: Path) -> None:
    wrote(tmp_path, 0.08, "20260921T100000Z")
    report = report_of(tmp_path)
    hosts: Dict[str, Optional[Dict[str, Any]]] = {
        host["name"]: host["proven"] for host in json.loads(document.dump(report))["hosts"]
    }
    assert hosts["db-2"] is None
    proof = hosts["db-1"]
    assert proof is not None
    assert (proof["verdict"], proof["kept"], proof["metric"]) == ("better", True, "get")
    assert proof["low"] < proof["change"] < proof["high"]
    lines = prometheus.render(report).splitlines()
    assert 'nearmetal_prove_verdict{host="db-1",verdict="better"} 1' in lines
    (change,) = [line for line in lines if line.startswith("nearmetal_prove_change_percent{")]
    assert change == f'nearmetal_prove_change_percent{{host="db-1",metric="get"}} {proof["change"]}'
    assert not any("db-2" in line for line in lines if "prove" in line)
    schema = json.loads((Path(document.__file__).parent / "report.schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(document.dump(report)), schema)


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 3},
        {"schema": "other"},
        {"verdict": 5},
        {"verdict": {"verdict": "great"}},
        {"ended": "now"},
        {"ended": 1e300},
        {"load": None},
        {"tested": 7},
        {"wanted": 7},
        {"wanted": {"clocksource.source": 7}},
    ],
)
def test_a_file_that_is_no_report_is_ignored(changed: Dict[str, Any], tmp_path: Path) -> None:
    wrote(tmp_path, 0.08, "20260921T100000Z", **changed)
    assert proven.last(str(tmp_path), ["db-1"]) == {}


@pytest.mark.parametrize("figure", ["change", "low", "high", "evidence"])
@pytest.mark.parametrize("damaged", ["1e999", "NaN"])
def test_a_figure_that_is_no_number_does_not_spoil_the_reports_of_other_hosts(
    figure: str, damaged: str, tmp_path: Path
) -> None:
    path = wrote(tmp_path, 0.08, "20260921T100000Z")
    content = json.loads(path.read_text("utf-8"))
    content["verdict"]["metrics"][0][figure] = "damaged"
    path.write_text(json.dumps(content).replace('"damaged"', damaged), "utf-8")
    report = report_of(tmp_path)
    assert [host["proven"] for host in json.loads(document.dump(report))["hosts"]] == [None, None]


def test_a_host_whose_name_looks_the_same_in_a_file_is_another(tmp_path: Path) -> None:
    wrote(tmp_path, 0.08, "20260921T100000Z", host="db_1")
    assert list(proven.last(str(tmp_path), ["db/1", "db_1"])) == ["db_1"]


def test_a_damaged_report_leaves_the_previous_verdict(tmp_path: Path) -> None:
    wrote(tmp_path, -0.08, "20260920T100000Z")
    wrote(tmp_path, 0.08, "20260921T100000Z").write_text("{", "utf-8")
    assert proven.last(str(tmp_path), ["db-1", "db-2"])["db-1"].says().startswith("prove found worse on ")
    assert proven.last(str(tmp_path / "nowhere"), ["db-1"]) == {}


def test_the_last_verdict_is_that_of_the_run_that_ended_last(tmp_path: Path) -> None:
    wrote(tmp_path, -0.08, "20260920T100000Z", ended=1_790_009_999.0)
    wrote(tmp_path, 0.08, "20260921T100000Z", ended=1_790_000_000.0)
    assert proven.last(str(tmp_path), ["db-1"])["db-1"].verdict == "worse"


@pytest.mark.parametrize("record", [start(host="db-1"), run(noisy(0.08, 0.02), most=5, host="db-1")])
def test_a_run_without_pairs_has_no_figure(record: Record, tmp_path: Path) -> None:
    found = verdict(record)._replace(verdict="not_quiet")
    (tmp_path / "prove").mkdir()
    content = proof_document.content(record, found, sentences.Ending(False, ["clocksource.source"]))
    (tmp_path / "prove/db-1-20260921T100000Z-1.json").write_text(json.dumps(content))
    proof = proven.last(str(tmp_path), ["db-1"])["db-1"]
    assert proof.says() == "prove found not quiet on 21 Sep 2026"
    text = prometheus.render(report_of(tmp_path))
    assert not [name for name in ("change_percent", "prove_evidence") if name in text]
    content["verdict"]["verdict"] = "unclear"  # as where the load fails from the beginning
    (tmp_path / "prove/db-1-20260921T100000Z-1.json").write_text(json.dumps(content))
    assert proven.last(str(tmp_path), ["db-1"]) == {}


def test_an_audit_reports_it(fleet: Fleet) -> None:
    fleet.inventory({"db-1": {"module_result": result_with(SLOW_CLOCK)}})
    fleet.reports.mkdir()
    wrote(fleet.reports, 0.08, "20260921T100000Z")
    run = fleet.run()
    assert SAID in well(run)
    assert fleet.report()["hosts"][0]["proven"]["verdict"] == "better"


def test_an_audit_without_our_callback_reports_it_too(fleet: Fleet) -> None:
    fleet.inventory({"db-1": {"module_result": result_with(SLOW_CLOCK)}})
    fleet.reports.mkdir()
    wrote(fleet.reports, 0.08, "20260921T100000Z")
    well(fleet.run(callback="ansible.builtin.default"))
    assert fleet.report()["hosts"][0]["proven"]["verdict"] == "better"
