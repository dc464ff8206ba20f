# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays and tasks of other collections beside ours: which of their results are in the report."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, Fleet, result_with
from tests.support.report.judged import checked, states, well


def played(fleet: Fleet, text: str) -> "subprocess.CompletedProcess[str]":
    """Run a user's own playbook with this text."""
    (fleet.folder / "site.yml").write_text(text)
    run = fleet.run(playbook="site.yml")
    well(run)
    return run


RESCUED = """
- hosts: all
  gather_facts: false
  tasks:
    - block:
        - {task}
      rescue:
        - ansible.builtin.debug: {{msg: went on}}
    - nearmetal.ec2.tune:
      check_mode: true
      when: module_result.findings | length > 0
"""


@pytest.mark.parametrize("task", ["ansible.builtin.fail: {msg: mine}", "nearmetal.ec2.tune: {workload: base}"])
def test_a_rescued_host_did_not_fail(fleet: Fleet, task: str) -> None:
    ill = result_with(errors={"smt": "busy"}, msg="smt: busy")
    fleet.inventory(
        {
            "h1": {"module_result": ill, "fate": "fails"}
            if "tune" in task
            else {"module_result": result_with(SLOW_CLOCK)}
        }
    )
    assert played(fleet, RESCUED.format(task=task)).returncode == 0
    (host,) = checked(fleet)["hosts"]
    assert (host["state"], host["message"]) == ("reported", ill["msg"] if "tune" in task else "as reported")
    assert host["errors"] == ({"smt": "busy"} if "tune" in task else {})
    assert 'nearmetal_host_reported{host="h1"} 1' in (fleet.reports / "report.prom").read_text()


def test_a_module_that_died_reports_nothing_even_if_it_is_rescued(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"fate": "dies", "module_result": {"findings": []}}})
    assert played(fleet, RESCUED.format(task="nearmetal.ec2.tune:")).returncode == 0
    assert states(checked(fleet)) == {"h1": "failed"}


@pytest.mark.parametrize(
    ("task", "variables"),
    [
        ("ansible.builtin.fail: {msg: mine}", {}),
        ("ansible.builtin.ping:", {"ansible_host": "127.0.0.1", "ansible_port": 1}),
    ],
)
def test_a_failure_in_a_play_of_others_is_not_reported(fleet: Fleet, task: str, variables: "dict[str, object]") -> None:
    fleet.inventory(
        {
            "h0": {"module_result": result_with(GOOD_CLOCK)},
            "h1": {"module_result": result_with(GOOD_CLOCK), **variables},
            "h2": variables,
        }
    )
    text = "- import_playbook: nearmetal.ec2.audit\n  vars: {target: 'h0,h1'}\n"
    run = played(fleet, f"{text}- hosts: h1,h2\n  gather_facts: false\n  tasks:\n    - {task}\n")
    assert run.returncode in (2, 4)
    assert states(checked(fleet)) == {"h0": "reported", "h1": "reported"}
    assert "h2" in run.stdout


def test_a_failed_loop_of_a_role_of_nearmetal_is_reported(fleet: Fleet) -> None:
    fleet.inventory(
        {
            "h1": {"module_result": {"failed": True, "msg": "broken arguments"}},
            "h2": {"module_result": result_with(GOOD_CLOCK)},
        }
    )
    text = "- hosts: all\n  gather_facts: false\n  tasks:\n    - nearmetal.ec2.tune:\n      loop: [1, 2]\n"
    assert played(fleet, text).returncode == 2
    assert states(checked(fleet)) == {"h1": "failed", "h2": "reported"}
    assert checked(fleet)["hosts"][0]["message"] == "broken arguments"


INCLUDED = """
- hosts: all
  gather_facts: {gathers}
  tasks:
    - ansible.builtin.fail: {{msg: before}}
      when: inventory_hostname == 'h3'
    - ansible.builtin.{include}
"""
HOW = ("include_role: {name: nearmetal.ec2.audit}", "include_tasks: tasks.yml")


@pytest.mark.parametrize("include", HOW)
def test_hosts_that_were_lost_before_an_include_are_in_the_report(fleet: Fleet, include: str) -> None:
    fleet.inventory({f"h{number}": {"module_result": result_with(GOOD_CLOCK)} for number in (1, 2, 3)})
    (fleet.folder / "tasks.yml").write_text("- nearmetal.ec2.tune:\n  check_mode: true\n")
    assert played(fleet, INCLUDED.format(include=include, gathers=False)).returncode == 2
    report = checked(fleet)
    assert report["run"]["mode"] == "audit"
    assert states(report) == {"h1": "reported", "h2": "reported", "h3": "failed"}
    assert report["hosts"][2]["message"] == "ansible.builtin.fail: before"


def test_hosts_that_are_all_lost_before_an_include_are_the_report(fleet: Fleet) -> None:
    fleet.inventory({f"h{number}": {"ansible_host": "127.0.0.1", "ansible_port": 1} for number in (1, 2)})
    assert played(fleet, INCLUDED.format(include=HOW[0], gathers=True)).returncode == 4
    assert states(checked(fleet)) == {"h1": "unreachable", "h2": "unreachable"}


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
@pytest.mark.parametrize(("variables", "note"), [("", ""), ("  vars: {target: db1}\n", " (with the variables of")])
def test_the_commands_of_an_imported_audit_are_whole_unless_the_import_sets_variables(
    fleet: Fleet, callback: str, variables: str, note: str
) -> None:
    fleet.inventory({"db1": {"module_result": result_with(SLOW_CLOCK)}})
    (fleet.folder / "site.yml").write_text(f"- import_playbook: nearmetal.ec2.audit\n{variables}")
    well(fleet.run(playbook=str(fleet.folder / "site.yml"), callback=callback))
    fix = checked(fleet)["top"][0]["fix"]
    command = "ansible-playbook nearmetal.ec2.tune -i hosts.json --limit db1 -e tune_only=clocksource.source"
    assert fix == command + (f"{note} site.yml)" if note else "")
