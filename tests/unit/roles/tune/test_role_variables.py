# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that the role tune passes to the module.

Templates are resolved, text of a host stays text, and what a survey of AWX leaves blank counts as absent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.simulated import simulate

PROJECT = Path(__file__).resolve().parents[4]
# Text of a host never becomes a template, whichever variable it is in.
PLAY: list[dict[str, Any]] = [
    {
        "hosts": "all",
        "gather_facts": False,
        "vars": {
            "chosen": "jvm",
            "unwanted": "hugepages.thp_defrag",
            "tune_workload": "{{ chosen }}",
            "tune_concerns": {"hugepages": {"thp": "{{ 'al' ~ 'ways' }}", "thp_defrag": "never"}},
            "tune_exclude": ["{{ unwanted }}"],
            "tune_strict": "{{ omit }}",
            "tune_prune": "yes",
            "tune_only": "",
            "tune_metrics_directory": None,
        },
        "roles": ["nearmetal.ec2.tune"],
        "tasks": [
            {
                "ansible.builtin.assert": {
                    "that": [
                        "tune_result.workload == ['jvm']",
                        "hugepages | selectattr('knob', 'eq', 'thp') | map(attribute='wanted') | list == ['always']",
                        "hugepages | selectattr('knob', 'eq', 'thp_defrag') | list == []",
                    ]
                },
                "vars": {"hugepages": "{{ tune_result.findings | selectattr('concern', 'eq', 'hugepages') | list }}"},
            },
            {
                "ansible.builtin.command": {"cmd": "printf %s {{ braces }}"},
                "vars": {"braces": "{{ ('{' * 2 ~ ' chosen ' ~ '}' * 2) | quote }}"},
                "check_mode": False,
                "changed_when": False,
                "register": "said",
            },
            {
                "ansible.builtin.include_role": {"name": "nearmetal.ec2.tune"},
                "vars": {"tune_workload": "{{ said.stdout }}", "tune_only": None, "tune_metrics_directory": ""},
            },
        ],
    }
]


def test_templated_variables_reach_the_module_and_text_of_a_host_stays_text(tmp_path: Path) -> None:
    hosts = {"all": {"hosts": {"h": simulate(tmp_path / "h", "nitro")}}}
    (tmp_path / "hosts.json").write_text(json.dumps(hosts))
    (tmp_path / "play.json").write_text(json.dumps(PLAY))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.json", "play.json", "--check"],
        cwd=tmp_path,
        env={**environment, "ANSIBLE_COLLECTIONS_PATH": str(PROJECT / ".ansible/collections")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "All assertions passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 2
    assert "workload '{{ chosen }}' is unknown" in done.stdout + done.stderr
