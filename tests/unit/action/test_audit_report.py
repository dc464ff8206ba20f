# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What AWX and Ansible's own callback show of an audit, and the data for AWX in docs/awx."""

from __future__ import annotations

import json
import math

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._benchmark import store

from tests.support.fleet import GOOD_CLOCK, ROOT, SLOW_CLOCK, Fleet, result_with
from tests.support.report.benchmarked import fleet_of, steady
from tests.support.report.judged import well

HOSTS = {"a": {"module_result": result_with(SLOW_CLOCK)}, "b": {"module_result": result_with(GOOD_CLOCK)}}
LEAD = "1 setting on 1 of 2 hosts can be tuned better."


def test_without_our_callback_the_verdict_is_a_line_and_an_artifact(fleet: Fleet) -> None:
    fleet.inventory(HOSTS)
    run = fleet.run(callback="ansible.builtin.default", ANSIBLE_SHOW_CUSTOM_STATS="1")
    assert run.returncode == 0, run.stdout
    (line,) = (line for line in run.stdout.splitlines() if f" {LEAD} Not looked at: smt, " in line)
    assert line.startswith("Planned for: base on 2 hosts"), "before what looks like an all-clear"
    look = "ansible-playbook nearmetal.ec2.audit -i hosts.json -e tune_workload=auto -e tune_workload_auto=apply"
    assert f"({look}). Reports: " in line
    stats = run.stdout.split("CUSTOM STATS:", 1)[1]
    assert f'"verdict": "{LEAD}"' in stats.replace("\n", " ")


def test_an_audit_that_fails_on_its_findings_has_reports_and_artifacts_too(fleet: Fleet) -> None:
    fleet.inventory(HOSTS)
    run = fleet.run(
        "-e", "audit_fail_on=would_change", callback="ansible.builtin.default", ANSIBLE_SHOW_CUSTOM_STATS="1"
    )
    assert run.returncode == 2, run.stdout
    assert "audit_fail_on: 1 finding with a status of would_change on a; see report.json" in run.stdout
    assert f'"verdict": "{LEAD}"' in run.stdout.split("CUSTOM STATS:", 1)[1].replace("\n", " ")
    assert fleet.report()["fail_on"]["hosts"] == ["a"]


def test_two_audits_show_a_trend(fleet: Fleet) -> None:
    fleet.inventory(HOSTS)
    for callback in ("nearmetal.ec2.fleet", "ansible.builtin.default"):
        assert fleet.run("-e", "audit_history=kept", callback=callback).returncode == 0
    kept = list((fleet.folder / "kept").iterdir())
    assert {json.loads(path.read_text())["hosts"]["a"]["would_change"] for path in kept} == {1}
    report = json.loads((fleet.reports / "report.json").read_text())
    assert [past["totals"] for past in report["history"]] == [{"would_change": 1}]


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
def test_a_history_that_cannot_be_written_ends_the_run_before_a_host_is_asked(callback: str, fleet: Fleet) -> None:
    fleet.inventory(HOSTS)
    done = fleet.run("-e", "audit_history=/proc/none", callback=callback)
    assert done.returncode == 2
    assert "audit_history: can't write in /proc/none: No such file or directory; name another" in done.stdout
    assert not (fleet.reports / "report.json").exists()


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
def test_an_audit_ranks_a_host_by_what_was_written_down(callback: str, fleet: Fleet) -> None:
    fleet.inventory({"h-1": {"module_result": result_with(SLOW_CLOCK)}})
    for entries in fleet_of(steady(odd=math.log(0.85))).values():
        for written in entries:
            store.append(str(fleet.reports), written)
    well(fleet.run(callback=callback))
    assert [host["host"] for host in fleet.report()["rankings"][0]["hosts"] if host["odd"]] == ["h-3"]


def test_the_survey_asks_for_options_that_the_roles_have() -> None:
    templates = yaml.safe_load((ROOT / "docs/awx/job_templates.yml").read_text("utf-8"))["job_templates"]
    specs = {
        name: value
        for role in ("audit", "tune", "restore")
        for name, value in yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text("utf-8"))[
            "argument_specs"
        ]["main"]["options"].items()
    }
    for template in templates:
        assert (ROOT / template["playbook"]).exists(), template["playbook"]
        for question in template.get("survey_spec", {}).get("spec", ()):
            option = specs[question["variable"]]
            if option["type"] == "bool":
                assert question["choices"] == ["true", "false"]
            elif option.get("choices"):
                assert set(question["choices"]) <= set(option["choices"])
            else:
                # Of a list it is the form with commas; AWX hands over a blank answer too, which the role leaves out.
                assert question["type"] == "text"
                assert option.get("elements", option["type"]) == "str"
                assert "default" not in option
        assert set(template.get("extra_vars", {})) <= set(specs)
