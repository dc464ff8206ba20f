# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.sarif, against models made from the official schema, which refuse unknown keys and values."""

from __future__ import annotations

import json
from typing import Any, Dict

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import ci
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from tests.support.fleet import finding, result_with
from tests.support.report import reports


def written(*results: Dict[str, Any]) -> Dict[str, Any]:
    """The one run of the file, after a check of the whole."""
    text = ci.sarif(reports.report(*results))
    Sarif.model_validate_json(text)
    (run,) = json.loads(text)["runs"]
    assert isinstance(run, dict)
    return run


def test_a_fleet_with_unreachable_hosts_follows_the_schema() -> None:
    text = ci.sarif(reports.fleet(40))
    Sarif.model_validate_json(text)
    (run,) = json.loads(text)["runs"]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"], "a host that could not be asked is no success"
    (notice,) = invocation["toolExecutionNotifications"]
    assert notice["message"]["text"] == "web-0030.example.com: unreachable: Connection timed out"
    (dead,) = (result for result in run["results"] if result["ruleId"] == "host.report")
    assert (dead["level"], dead["message"], dead["properties"]["host"]) == (
        "error",
        notice["message"],
        "web-0030.example.com",
    ), "a reader that shows results alone shows the host too"


def test_only_what_is_open_is_a_result() -> None:
    run = written(
        result_with(
            finding("clocksource", "would_change", now="xen", wanted="tsc"),
            finding("smt", "ok"),
            finding("numa", "refused"),
            errors={"hugepages": "no memory"},
        )
    )
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert levels == {"hugepages": "error", "clocksource.source": "warning", "numa.source": "note"}
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(levels)
    texts = [result["message"]["text"] for result in run["results"]]
    assert "h0: would change: xen → tsc: clocksource is would_change" in texts


def test_a_finding_is_the_same_in_another_run_with_another_value_and_status() -> None:
    def identities(status: str, now: int) -> Any:
        result = result_with(finding("network_stack", status, knob="rx_ring", where="ens5", now=now))
        return [(entry["partialFingerprints"], entry["locations"]) for entry in written(result)["results"]]

    assert identities("would_change", 512) == identities("refused", 1024)
    two = written(*(result_with(finding("smt", "refused", where="ens5")) for _host in range(2)))["results"]
    assert two[0]["partialFingerprints"] != two[1]["partialFingerprints"], "of two hosts"


def test_a_name_of_a_host_is_a_path_in_any_case() -> None:
    report = reports.collector({"a/../b c": result_with(finding("smt", "refused"))}).report(reports.RUN)
    (result,) = json.loads(ci.sarif(report))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "hosts/a%2F..%2Fb%20c"
