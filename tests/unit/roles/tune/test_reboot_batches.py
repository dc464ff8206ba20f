# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many hosts the role tune lets reboot at once, by ansible-playbook on hosts that are names only.

ansible.builtin.reboot refuses to reboot the machine that it runs on, so here its
refusal says that the role let the hosts through.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[4]
LET_THROUGH = "Running ansible.builtin.reboot with local connection"


def play(folder: Path, hosts: int, serial: Any, waiting: int, at_once: Any) -> str:
    """The output of a play in which the first `waiting` hosts need a reboot."""
    names = [f"host{number:02}" for number in range(hosts)]
    result = "{{ {'reboot_required': inventory_hostname in waiting, 'reboot_reasons': ['tsc']} }}"
    content = {
        "hosts": "all",
        "connection": "local",
        "gather_facts": False,
        "serial": serial,
        "max_fail_percentage": 0,
        "vars": {
            "waiting": names[:waiting],
            "tune_reboot_at_once": at_once,
            "tune_reboot_timeout": 1,
            "ansible_python_interpreter": sys.executable,
        },
        "tasks": [
            {"name": "Tuned", "ansible.builtin.set_fact": {"tune_result": result}},
            {
                "name": "Reboot",
                "ansible.builtin.include_tasks": str(PROJECT / "roles/tune/tasks/reboot.yml"),
                "when": "tune_result.reboot_required",
            },
        ],
    }
    (folder / "play.yml").write_text(yaml.safe_dump([content], sort_keys=False))
    command = ["ansible-playbook", "-i", ",".join(names) + ",", str(folder / "play.yml")]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("hosts", "serial", "waiting", "at_once", "allowed"),
    [
        (1, "100%", 1, "10%", 1),
        (9, "2", 9, "10%", None),
        (20, "10%", 20, "10%", 2),
        (20, [1, "10%"], 20, "10%", 1),
        (29, [2, "10%"], 29, "10%", 2),
        (20, "50%", 3, "10%", None),
        (20, "50%", 2, "10%", 2),
        (6, "50%", 3, "50%", 3),
        (6, "50%", 3, 2, None),
    ],
)
def test_no_more_than_allowed(
    tmp_path: Path, hosts: int, serial: Any, waiting: int, at_once: Any, allowed: "int | None"
) -> None:
    output = play(tmp_path, hosts, serial, waiting, at_once)
    if allowed is None:
        assert LET_THROUGH not in output
        assert f"would reboot at once, and tune_reboot_at_once: {at_once} allows" in output.replace("\n", " ")
    else:
        assert sum("FAILED! =>" in line and LET_THROUGH in line for line in output.splitlines()) == allowed
