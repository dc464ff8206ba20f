# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of an audit: the statuses that fail the run, and the earlier report for comparison."""

from __future__ import annotations

from typing import Any, Dict

import pytest

from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, Fleet, finding, result_with
from tests.support.report.judged import checked, states, well

BAD = {"module_result": result_with(SLOW_CLOCK, finding("numa", "refused", "balancing", reason="pinned by kubelet"))}
GOOD = {"module_result": result_with(GOOD_CLOCK, finding("numa", "ok", "balancing"))}


def test_fail_on(fleet: Fleet) -> None:
    fleet.inventory({"db1": BAD, "db2": GOOD})
    run = fleet.run("-e", '{"audit_fail_on": ["would_change", "refused"]}')
    assert run.returncode == 2
    assert "audit_fail_on: 2 findings on db1" in well(run)
    assert checked(fleet)["fail_on"] == {"statuses": ["would_change", "refused"], "hosts": ["db1"], "findings": 2}


def test_fail_on_passes_a_good_fleet(fleet: Fleet) -> None:
    fleet.inventory({"db2": GOOD})
    run = fleet.run("-e", '{"audit_fail_on": ["would_change"]}')
    assert run.returncode == 0
    assert checked(fleet)["fail_on"] == {"statuses": ["would_change"], "hosts": [], "findings": 0}


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
def test_fail_on_counts_the_limits_of_ec2(fleet: Fleet, callback: str) -> None:
    over = {"allowances": {"ens5": {"pps_allowance_exceeded": 4211}}, "packets": {"ens5": 12_000_000}}
    fleet.inventory(
        {"h1": {"module_result": result_with(GOOD_CLOCK), **over}, "h2": {"module_result": result_with(GOOD_CLOCK)}}
    )
    run = fleet.run("--tags", "all,limits", "-e", '{"audit_fail_on": ["advice"]}', callback=callback)
    assert checked(fleet)["fail_on"] == {"statuses": ["advice"], "hosts": ["h1"], "findings": 1}
    assert run.returncode == 2, run.stdout


def test_fail_on_unknown_status(fleet: Fleet) -> None:
    fleet.inventory({"db2": GOOD})
    run = fleet.run("-e", '{"audit_fail_on": ["changes"]}')
    assert run.returncode == 2
    assert "would_change" in well(run)
    assert "changes" in run.stdout


def test_fail_on_that_is_no_list(fleet: Fleet) -> None:
    fleet.inventory({"a": GOOD, "b": {**GOOD, "audit_fail_on": {"would_change": True}}})
    run = fleet.run()
    assert run.returncode == 2
    assert "audit_fail_on: a list of statuses is wanted" in well(run)


def test_baseline_that_is_no_report(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"module_result": result_with(GOOD_CLOCK)}})
    (fleet.folder / "other.json").write_text("{}")
    run = fleet.run("-e", "audit_baseline=other.json")
    assert run.returncode == 2
    assert "other.json is not a report of version 1" in well(run)
    assert "No report written: no host was planned" in run.stdout
    assert not fleet.reports.exists()


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
def test_fail_on_of_any_host_counts_for_all(fleet: Fleet, callback: str) -> None:
    fleet.inventory(
        {"a": BAD, "b": {**GOOD, "audit_fail_on": ["refused"]}, "c": {**GOOD, "audit_fail_on": "failed,ok"}}
    )
    run = fleet.run(callback=callback)
    assert checked(fleet)["fail_on"] == {
        "statuses": ["refused", "failed", "ok"],
        "hosts": ["a", "b", "c"],
        "findings": 5,
    }
    assert run.returncode == 2, run.stdout


def test_fail_on_of_a_host_that_is_not_audited_does_not_count(fleet: Fleet) -> None:
    fleet.inventory({"a": BAD, "b": {**GOOD, "audit_fail_on": ["refused"]}})
    assert fleet.run("--limit", "a").returncode == 0
    assert checked(fleet)["fail_on"] is None


def test_fail_on_of_the_command_line_replaces_those_of_the_hosts(fleet: Fleet) -> None:
    fleet.inventory({"a": BAD, "b": {**GOOD, "audit_fail_on": ["refused"]}})
    assert fleet.run("-e", '{"audit_fail_on": []}').returncode == 0
    assert checked(fleet)["fail_on"] is None


def test_a_mistake_leaves_the_last_report_as_it_is(fleet: Fleet) -> None:
    fleet.inventory({"a": GOOD, "b": GOOD})
    well(fleet.run())
    last = (fleet.reports / "report.json").read_bytes()
    assert "absent.json" in well(fleet.run("-e", "audit_baseline=absent.json"))
    assert (fleet.reports / "report.json").read_bytes() == last


MISTAKEN = {"module_result": {"failed": True, "mistake": True, "msg": "tune_only[0]: concern 'smtt' is unknown"}}


@pytest.mark.parametrize(
    ("hosts", "option", "callback"),
    [
        ({"a": MISTAKEN, "b": MISTAKEN}, "audit_timeout=60", "nearmetal.ec2.fleet"),
        ({"a": MISTAKEN, "b": MISTAKEN}, "audit_timeout=60", "ansible.builtin.default"),
        ({"a": GOOD}, "audit_fail_on=changes", "nearmetal.ec2.fleet"),
    ],
)
def test_a_mistake_in_options_leaves_the_last_report_too(
    hosts: Dict[str, Any], option: str, callback: str, fleet: Fleet
) -> None:
    fleet.inventory({"a": GOOD})
    well(fleet.run())
    last = (fleet.reports / "report.json").read_bytes()
    fleet.inventory({**hosts, "gone": {**GOOD, "fate": "unreachable"}})
    run = fleet.run("-e", option, callback=callback)
    assert run.returncode in (2, 4)
    assert "No report written: no host was planned" in run.stdout
    assert (fleet.reports / "report.json").read_bytes() == last
    assert not (fleet.reports / "last_good").exists()


def test_a_mistake_of_some_hosts_is_in_the_report_of_the_others(fleet: Fleet) -> None:
    fleet.inventory({"a": GOOD, "b": MISTAKEN})
    run = fleet.run()
    assert run.returncode == 2
    assert "✗ b: failed: tune_only[0]: concern 'smtt' is unknown" in well(run)
    assert states(checked(fleet)) == {"a": "reported", "b": "failed"}


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
def test_a_misspelt_variable_is_named_and_the_audit_goes_on(fleet: Fleet, callback: str) -> None:
    fleet.inventory({"a": GOOD})
    run = fleet.run("-e", "audit_base_line=last.json", callback=callback)
    assert run.returncode == 0
    said = " ".join((run.stdout + run.stderr).split())
    assert "the variable audit_base_line isn't an option and has no effect: is audit_baseline meant?" in said
    assert said.count("audit_base_line") == 1


def test_a_misspelt_limit_ends_an_audit_before_a_host_is_asked(fleet: Fleet) -> None:
    fleet.inventory({"a": GOOD, "b": GOOD})
    said = well(fleet.run("-e", "audit_failon=refused"))
    assert "the variable audit_failon isn't an option: is audit_fail_on meant?" in said
    assert "No report written: no host was planned" in said


def test_baseline_of_any_host_counts_for_all(fleet: Fleet) -> None:
    fleet.inventory({"a": GOOD, "b": {**GOOD, "audit_baseline": "old.json"}})
    well(fleet.run("-e", "audit_baseline="))
    (fleet.reports / "report.json").rename(fleet.folder / "old.json")
    assert fleet.run().returncode == 0
    assert checked(fleet)["drift"]["changes"] == []


def test_baselines_that_differ_are_refused(fleet: Fleet) -> None:
    fleet.inventory({"a": {**GOOD, "audit_baseline": "web.json"}, "b": {**BAD, "audit_baseline": "db.json"}, "c": GOOD})
    run = fleet.run()
    assert run.returncode == 2
    sentence = (
        "audit_baseline: a run is compared with one report, but a has web.json and b has db.json: name one with -e"
    )
    assert sentence in " ".join(well(run).split())
    assert not fleet.reports.exists()
