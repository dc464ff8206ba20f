# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a report, and the order of what would help."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import summary, worth
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector

from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, finding, result_with
from tests.support.report import reports

PAGES = finding("hugepages", "would_change", "thp", now="always", wanted="madvise")
RINGS = finding("network_stack", "would_change", "rx", now=512, wanted=1024)
ARGUMENT = finding("smt", "would_change", "threads", now=2, wanted=1)
KEPT = finding("clocksource", "would_change", "persist")


def action(concern: str, knob: str, **more: Any) -> Dict[str, Any]:
    return {"concern": concern, "knob": knob, "what": "w", "before": 1, "after": 2, "scope": "runtime", **more}


def test_the_verdict_counts_settings_and_says_what_they_are_worth_and_risk() -> None:
    risky = result_with(SLOW_CLOCK, PAGES, RINGS, ARGUMENT, KEPT)
    risky["actions"] = [
        action("network_stack", "rx", disruptive=True),
        action("smt", "threads", scope="boot"),
    ]
    report = reports.report({**risky, "workload": ["web"]}, result_with(PAGES), result_with(GOOD_CLOCK))
    found = worth.verdict(report)
    assert found.lead == "5 settings on 2 of 3 hosts can be tuned better."
    assert dict(found.facts) == {
        "Workloads": "base on 2 hosts, web on 1 host",
        "Worth": "1 with a published figure, 4 unmeasured",
        "Risk": "1 may interrupt traffic or work for a moment on 1 host; 1 takes effect after a reboot on 1 host;"
        " 3 without either",
        "Kept over reboots": "by 1 file or unit",
    }


def test_the_verdict_of_hosts_that_need_nothing_or_said_nothing() -> None:
    assert worth.verdict(reports.report(result_with(GOOD_CLOCK))).lead == "Nothing is left to change on 1 host."
    collected = Collector()
    collected.add("a", result_with(GOOD_CLOCK))
    collected.unreachable("b", "no route")
    found = worth.verdict(collected.report(reports.RUN))
    assert found.lead == "Nothing is left to change on 1 host; 1 host did not report."
    assert dict(found.facts) == {"Workloads": "base on 1 host", "Without a full report": "b"}
    assert worth.verdict(Collector().report(reports.RUN)).lead == "The play had no hosts."
    refused = reports.report(result_with(finding("clocksource", "refused")))
    assert worth.verdict(refused).lead == "Nothing is left to change on 1 host; 1 setting was refused."
    two = reports.report(result_with(finding("smt", "refused"), finding("numa", "refused")), result_with(GOOD_CLOCK))
    assert worth.verdict(two).lead == "Nothing is left to change on 2 hosts; 2 settings were refused."
    back = dataclasses.replace(reports.report(result_with()), run=dataclasses.replace(reports.RUN, mode="restore"))
    assert worth.verdict(back).lead == "Nothing is left to give back on 1 host."
    one = worth.verdict(reports.report(result_with(PAGES)))
    assert one.lead == "1 setting on this host can be tuned better."
    assert dict(one.facts)["Risk"] == "none interrupts anything or needs a reboot"


def test_what_helps_most_is_known_to_help_then_costs_least_then_helps_most_hosts() -> None:
    risky = result_with(RINGS, ARGUMENT, SLOW_CLOCK, KEPT)
    risky["actions"] = [action("network_stack", "rx", disruptive=True), action("smt", "threads", scope="boot")]
    tops = summary.top_findings(reports.report(risky, result_with(PAGES, RINGS), result_with(RINGS, ARGUMENT)))
    assert [(top.concern, top.worth, top.risk) for top in tops] == [
        ("clocksource", "published", "free"),
        ("hugepages", "unmeasured", "free"),
        ("smt", "unmeasured", "reboot"),
        ("network_stack", "unmeasured", "interrupts"),
        ("clocksource", "unmeasured", "free"),
    ]
    assert summary.preview(tops[0].fix) == f"{tops[0].fix} --check --diff"
    assert summary.preview("reboot when it suits: h0") == ""
