# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that a report names, as a user pastes them."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.fleet import SLOW_CLOCK, Fleet, result_with
from tests.support.report.judged import checked, well

SLOW = {"module_result": result_with(SLOW_CLOCK)}


@pytest.mark.parametrize(
    ("started", "fix", "only"),
    [
        ("restore --check", "nearmetal.ec2.restore -i hosts.json --limit db1", ""),
        ("restore --check -u me -b", "nearmetal.ec2.restore -i hosts.json -u me -b --limit db1", ""),
        (
            "cache --check --tags tune -e tune_serial=5%",
            "nearmetal.ec2.cache -i hosts.json -e tune_serial=5% --tags tune --limit db1",
            " -e tune_only=clocksource.source",
        ),
    ],
)
def test_the_fix_applies_what_the_audit_previewed(fleet: Fleet, started: str, fix: str, only: str) -> None:
    fleet.inventory({"db1": SLOW})
    playbook, *arguments = started.split()
    shown = well(fleet.run(*arguments, playbook=f"nearmetal.ec2.{playbook}"))
    assert f"To apply the changes: ansible-playbook {fix}\n" in shown
    assert f"CHECK OF {'RESTORE' if playbook == 'restore' else 'TUNE'}  1 host: 1 reported" in shown
    assert checked(fleet)["top"][0]["fix"] == f"ansible-playbook {fix}{only}"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("tune_workload=web,cache tune_strict=yes", "-e tune_workload=web,cache -e tune_strict=yes "),
        (
            '{"tune_concerns": {"smt": {"state": "enabled"}}}',
            """-e '{"tune_concerns": {"smt": {"state": "enabled"}}}' """,
        ),
        ('{"tune_strict": true, "key": "hunter2"}', """-e '{"tune_strict": true}' -e key="${key:?}" """),
        ("tune_health_command='ping -a hunter2'", '-e tune_health_command="${tune_health_command:?}" '),
        ("audit_timeout=60", ""),
        ("@more.yml", "-e @more.yml "),
    ],
)
def test_a_command_repeats_extra_variables_but_no_secret(fleet: Fleet, given: str, shown: str) -> None:
    fleet.inventory({"db1": SLOW})
    (fleet.folder / "more.yml").write_text("token: hunter2\n")
    command = well(fleet.run("-e", given)).partition("To apply the changes: ")[2].splitlines()[0]
    assert command == f"ansible-playbook nearmetal.ec2.tune -i hosts.json {shown}--limit db1"
    assert all("hunter2" not in path.read_text() for path in fleet.reports.iterdir())
    pasted = subprocess.run(f"echo {command}", check=False, shell=True, capture_output=True, text=True)
    assert (pasted.returncode, pasted.stdout) == (2, "") if ":?" in shown else pasted.stdout.endswith(" db1\n")
