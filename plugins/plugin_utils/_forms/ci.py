# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CI servers read: report.sarif (2.1.0) and report.junit.xml. PRIVATE to the collection.

In SARIF a finding keeps its identity from run to run. In JUnit each host is a suite and each finding a test case.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict
from urllib.parse import quote
from xml.etree import ElementTree

from .._report import model, summary
from .._report.headings import BY_NAME, FAILED
from .._report.model import HostReport, Report, ReportedFinding
from .sources import PAGES, links

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {FAILED: "error", "would_change": "warning", "needs_reboot": "warning", "needs_restart": "warning"}
PASSED = ("ok", "changed")
FAILING = ("would_change", "needs_reboot", "needs_restart")  # in JUnit without audit_fail_on, but for mere upkeep


def sarif(report: Report) -> str:
    found = [(host, row, message_of(row)) for host in report.hosts for row in host.rows if BY_NAME[row.status].open]
    said = [(host, summary.trouble(host)) for host in report.hosts if host.state != model.SKIPPED]
    troubles = [(host, ReportedFinding("host", "report", FAILED, why), why) for host, why in said if why]
    found = troubles + found
    rules = {finding.name: _rule(finding) for _host, finding, _words in found}
    driver = {"name": "nearmetal.ec2", "informationUri": f"{PAGES}README.md", "rules": list(rules.values())}
    invocation = {
        "executionSuccessful": not troubles,
        "startTimeUtc": report.run.started,
        "endTimeUtc": report.run.finished,
        "toolExecutionNotifications": [
            {"level": "error", "message": {"text": f"{host.name}: {trouble}"}} for host, _finding, trouble in troubles
        ],
    }
    run = {
        "tool": {"driver": {**driver, "version": report.run.collection or "unknown"}},
        "automationDetails": {"id": f"nearmetal.ec2/{report.run.mode}/"},
        "invocations": [invocation],
        "results": [_result(*entry) for entry in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=1) + "\n"


def message_of(finding: ReportedFinding) -> str:
    """Its status, the change and the reason in a line."""
    return ": ".join(
        filter(None, (BY_NAME[finding.status].words, summary.change_of(finding._asdict()), finding.reason))
    )


def _rule(finding: ReportedFinding) -> Dict[str, Any]:
    page = f"{PAGES}docs/{'audit' if finding.concern == 'host' else finding.concern}.md"
    source = next((address for _name, address in links(finding.reference) if address), page)
    return {"id": finding.name, "shortDescription": {"text": finding.name}, "helpUri": source}


def _result(host: HostReport, finding: ReportedFinding, said: str) -> Dict[str, Any]:
    """A finding. Its place is a path of no file, because GitHub shows no result without one."""
    place = {"artifactLocation": {"uri": f"hosts/{quote(host.name, safe='')}"}, "region": {"startLine": 1}}
    logical = {"name": host.name, "fullyQualifiedName": f"{host.name}/{finding.key}", "kind": "resource"}
    return {
        "ruleId": finding.name,
        "level": _LEVELS.get(finding.status, "note"),
        "message": {"text": f"{host.name}: {said}"},
        "locations": [{"physicalLocation": place, "logicalLocations": [logical]}],
        "partialFingerprints": {"nearmetal/v1": hashlib.sha256(f"{host.name}\n{finding.key}".encode()).hexdigest()},
        "properties": {"status": finding.status, "host": host.name, "key": finding.key},
    }


def junit(report: Report) -> str:
    named = report.gate.statuses if report.gate else ()
    suites = [_suite(host, named, report.run.started) for host in report.hosts]
    top = ElementTree.Element("testsuites", name=f"nearmetal.ec2 {report.run.mode}", time=f"{report.run.seconds:.3f}")
    for count in ("tests", "failures", "errors"):
        top.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    top.extend(suites)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True).replace("><testsuite ", ">\n<testsuite ")


def _suite(host: HostReport, named: "tuple[str, ...]", started: str) -> ElementTree.Element:
    """The findings of a host; a host without a complete report has a case that says so."""
    suite = ElementTree.Element(
        "testsuite", name=host.name, hostname=host.name, timestamp=started.rstrip("Z"), time="0"
    )
    trouble = summary.trouble(host)
    if trouble:
        _case(suite, "host", "report", "skipped" if host.state == model.SKIPPED else "error", host.state, trouble)
    for finding in host.rows:
        fails = finding.status in named if named else finding.status in FAILING and not finding.upkeep
        kind = "failure" if fails else "" if finding.status in PASSED else "skipped"
        kind = "error" if finding.status == FAILED else kind
        _case(suite, finding.concern, finding.key, kind, finding.status, message_of(finding))
    for count, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(1 for _found in suite.iter(kind))))
    return suite


def _case(suite: ElementTree.Element, concern: str, name: str, kind: str, status: str, said: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=f"{suite.get('name')}.{concern}", name=name, time="0")
    if kind:
        outcome = ElementTree.SubElement(case, kind, message=said)
        if kind != "skipped":
            outcome.set("type", status)
