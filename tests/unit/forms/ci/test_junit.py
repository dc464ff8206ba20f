# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.junit.xml, as the servers of CI read it, and as dev/running/junit.py reads the project's own."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import ci
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Report

from dev.running.junit import read
from tests.support.fleet import finding, result_with
from tests.support.report import reports

RESULT = result_with(
    finding("clocksource", "would_change", now="xen", wanted="tsc"),
    finding("smt", "ok"),
    finding("numa", "refused"),
    finding("network_stack", "advice", knob="rx_ring", where="ens5 <&'\">"),
    errors={"hugepages": "no memory"},
)
COUNTS = ("tests", "failures", "errors", "skipped")


def parsed(report: Report) -> ElementTree.Element:
    return ElementTree.fromstring(ci.junit(report).encode())


def outcomes(report: Report) -> "dict[str, str]":
    """The name of each case → what it counts as."""
    return {case.get("name", ""): case[0].tag if len(case) else "passed" for case in parsed(report).iter("testcase")}


def test_each_finding_is_a_case_of_its_host() -> None:
    assert outcomes(reports.report(RESULT)) == {
        "hugepages": "error",
        "clocksource.source": "failure",
        "smt.source": "passed",
        "numa.source": "skipped",
        "network_stack.rx_ring ens5 <&'\">": "skipped",
    }
    (failure,) = parsed(reports.report(RESULT)).iter("failure")
    assert failure.get("message") == "would change: xen → tsc: clocksource is would_change"


def test_what_audit_fail_on_names_fails() -> None:
    found = outcomes(reports.report(RESULT, fail_on=["refused"]))
    assert (found["numa.source"], found["clocksource.source"]) == ("failure", "skipped")


def test_what_only_keeps_values_fails_where_audit_fail_on_says_so_and_nowhere_else() -> None:
    kept = result_with(finding("clocksource", "would_change", "persist"), finding("unit", "would_change", "agent"))
    assert set(outcomes(reports.report(kept)).values()) == {"skipped"}
    gated = reports.report(kept, fail_on=["would_change"])
    assert gated.gate is not None
    assert gated.gate.findings == 2
    assert set(outcomes(gated).values()) == {"failure"}


def test_the_counts_of_suites_and_of_the_whole_are_those_of_the_cases(tmp_path: Path) -> None:
    report = reports.fleet(40)
    top = parsed(report)
    for suite in top:
        kinds = ("testcase", "failure", "error", "skipped")
        assert [suite.get(count) for count in COUNTS] == [str(len(list(suite.iter(kind)))) for kind in kinds]
    for count in COUNTS[:3]:
        assert int(top.get(count, "")) == sum(int(suite.get(count, "")) for suite in top)
    assert [suite.get("name") for suite in top] == [host.name for host in report.hosts]
    (error,) = top.iter("error")
    assert error.get("message") == "unreachable: Connection timed out"
    file = tmp_path / "report.junit.xml"
    file.write_text(ci.junit(report))
    assert len(read(file)) == len(list(top.iter("testcase")))
