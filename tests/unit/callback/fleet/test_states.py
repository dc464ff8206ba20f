# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that failed, were skipped or never began: each is said and counted under its own word, by each callback."""

from __future__ import annotations

import pytest

from tests.support.fleet import GOOD_CLOCK, Fleet, result_with
from tests.support.report.judged import checked, states, well

BOTH = pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
GOOD = {"module_result": result_with(GOOD_CLOCK)}
PLAY = "- hosts: all\n  gather_facts: false\n"
WHEN = "when: inventory_hostname == 'redis-1'"
# How a play leaves a host out: by a condition, or because it ends the host's part.
SKIPS = {
    "role": f"  roles:\n    - role: nearmetal.ec2.audit\n      {WHEN}\n",
    "import": f"  tasks:\n    - ansible.builtin.import_role: {{name: nearmetal.ec2.audit}}\n      {WHEN}\n",
    "include": f"  tasks:\n    - ansible.builtin.include_role: {{name: nearmetal.ec2.audit}}\n      {WHEN}\n",
    "block": "  tasks:\n    - block:\n        - ansible.builtin.include_role: {name: nearmetal.ec2.audit}\n"
    f"      {WHEN}\n",
    "tasks": f"  tasks:\n    - ansible.builtin.include_tasks: audit.yml\n      {WHEN}\n",
    "module": "  tasks:\n    - nearmetal.ec2.tune:\n      check_mode: true\n      register: tune_result\n"
    f"      {WHEN}\n    - nearmetal.ec2.audit_report:\n      run_once: true\n",
    "end_host": "  tasks:\n    - ansible.builtin.meta: end_host\n      when: inventory_hostname != 'redis-1'\n"
    "    - ansible.builtin.include_role: {name: nearmetal.ec2.audit}\n",
}


def played(fleet: Fleet, text: str, callback: str) -> str:
    play = fleet.folder / "site.yml"
    play.write_text(text)
    run = fleet.run(playbook=str(play), callback=callback)
    return well(run)


@BOTH
def test_the_only_host_fails_and_nothing_reads_as_an_all_clear(fleet: Fleet, callback: str) -> None:
    fleet.inventory({"h1": {"fate": "dies"}})
    run = fleet.run("-e", "audit_fail_on=would_change", callback=callback, ANSIBLE_SHOW_CUSTOM_STATS="1")
    assert states(checked(fleet)) == {"h1": "failed"}
    forms = {path.name: path.read_text() for path in fleet.reports.iterdir()}
    for text in (well(run), *forms.values()):
        assert "Nothing is left" not in text
        assert "none found" not in text
    assert '<h2 id="h-verdict">1 host failed.</h2>' in forms["report.html"]
    assert "\n**1 host failed.**\n" in forms["report.md"]
    if callback == "ansible.builtin.default":
        assert "\n1 host failed. Reports: " in run.stdout
        assert '"verdict": "1 host failed."' in run.stdout.split("CUSTOM STATS:", 1)[1].replace("\n", " ")


@BOTH
@pytest.mark.parametrize("way", SKIPS.keys() - {"end_host"})
def test_a_host_that_the_play_leaves_out_is_said_to_be_skipped(fleet: Fleet, way: str, callback: str) -> None:
    fleet.inventory({"redis-1": GOOD, "web-1": GOOD})
    (fleet.folder / "audit.yml").write_text("- ansible.builtin.import_role: {name: nearmetal.ec2.audit}\n")
    shown = played(fleet, PLAY + SKIPS[way], callback)
    assert states(checked(fleet)) == {"redis-1": "reported", "web-1": "skipped"}
    lead = "Nothing is left to change on 1 host in the 1 of 13 concerns that were looked at; 1 host was skipped."
    assert lead in " ".join(shown.split())
    assert "no result" not in shown
    assert 'nearmetal_host_reported{host="web-1"}' not in (fleet.reports / "report.prom").read_text()


@BOTH
@pytest.mark.parametrize("way", ["role", "include", "module"])
def test_a_host_is_skipped_also_where_another_one_fails(fleet: Fleet, way: str, callback: str) -> None:
    fleet.inventory({"redis-1": {"fate": "dies"}, "web-1": GOOD})
    played(fleet, PLAY + SKIPS[way], callback)
    assert states(checked(fleet)) == {"redis-1": "failed", "web-1": "skipped"}


def test_a_host_whose_part_the_play_ends_is_said_to_be_skipped(fleet: Fleet) -> None:
    fleet.inventory({"redis-1": GOOD, "web-1": GOOD})
    shown = played(fleet, PLAY + SKIPS["end_host"], "nearmetal.ec2.fleet")
    assert "– web-1: skipped: the play's conditions leave this host out" in shown


def test_all_hosts_skipped_is_no_all_clear(fleet: Fleet) -> None:
    fleet.inventory({"web-1": GOOD, "web-2": GOOD})
    shown = played(fleet, PLAY + SKIPS["include"], "nearmetal.ec2.fleet")
    assert "AUDIT  2 hosts: 2 skipped" in shown
    assert "– web-1, web-2: skipped: " in shown
    assert "**2 hosts were skipped.**" in (fleet.reports / "report.md").read_text()


def test_a_host_that_a_stopped_run_never_reached_is_not_called_skipped(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"fate": "dies"}, "h2": GOOD})
    roles = "  serial: 1\n  max_fail_percentage: 0\n  roles: [nearmetal.ec2.tune]\n"
    shown = played(fleet, PLAY + roles, "nearmetal.ec2.fleet")
    assert states(checked(fleet)) == {"h1": "failed", "h2": "silent"}
    assert "✗ h2: no result: the run ended before this host reported anything" in shown
    assert "Next: --limit 'all:!h1' goes on without h1, at which the run stopped" in " ".join(shown.split())


def test_a_module_that_died_is_failed_though_the_play_ignores_it(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"fate": "dies"}, "h2": GOOD})
    task = "  tasks:\n    - nearmetal.ec2.tune:\n      check_mode: true\n      ignore_errors: true\n"
    played(fleet, PLAY + task, "nearmetal.ec2.fleet")
    assert states(checked(fleet)) == {"h1": "failed", "h2": "reported"}


@pytest.mark.parametrize("others", ["", "- hosts: all\n  gather_facts: false\n  tasks: [ansible.builtin.debug: ]\n"])
def test_a_run_ends_with_ansible_s_recap_if_a_play_of_somebody_else_is_in_it(fleet: Fleet, others: str) -> None:
    fleet.inventory({"h1": GOOD})
    shown = played(fleet, f"{others}- import_playbook: nearmetal.ec2.audit\n", "nearmetal.ec2.fleet")
    assert ("PLAY RECAP" in shown) == bool(others)
    assert "AUDIT  1 host: 1 reported" in shown
