# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module's result says to whoever runs it with another callback than the collection's own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.simulated import simulate

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - nearmetal.ec2.{module}: {options}
      register: done
    - ansible.builtin.debug:
        msg: "{{{{ 'one difference' if done.diff is mapping else 'a list' }}}}"
"""


def shown(folder: Path, module: str, options: str, *arguments: str) -> str:
    hosts = {"all": {"hosts": {"db-1": simulate(folder / "host", "xen_hvm")}}}
    (folder / "hosts.json").write_text(json.dumps(hosts))
    (folder / "site.yml").write_text(PLAY.format(module=module, options=options))
    done = subprocess.run(
        ["ansible-playbook", "-i", "hosts.json", "site.yml", "--check", *arguments],
        cwd=folder,
        env={**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default", "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("module", "options"), [("tune", "{workload: [web]}"), ("network_stack", "{slow_start_after_idle: disabled}")]
)
def test_a_difference_of_any_callback_names_its_host_and_its_file(module: str, options: str, tmp_path: Path) -> None:
    lines = shown(tmp_path, module, options, "--diff")
    file = "db-1, /etc/sysctl.d/99-nearmetal-network_stack.conf"
    assert "--- before: db-1, settings\n+++ after: db-1, settings\n" in lines
    assert f"--- before: {file}\n+++ after: {file}\n" in lines
    assert "\n+net.ipv4.tcp_slow_start_after_idle = 0\n" in lines
    assert '"wanted"' not in lines
    assert "a list" in lines


def test_without_diff_the_result_keeps_its_one_difference(tmp_path: Path) -> None:
    assert "one difference" in shown(tmp_path, "clocksource", "{}")


def test_a_python_that_cannot_load_its_simulated_host_runs_nothing(tmp_path: Path) -> None:
    python = simulate(tmp_path, "xen_hvm")["ansible_python_interpreter"]
    command = [python, "-I", "-S", "-c", "print('ran')"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "ran\n"
    script = Path(python)
    script.write_text(script.read_text("utf-8").replace("NEARMETAL_SIMULATED=", "NEARMETAL_NOT_SIMULATED="), "utf-8")
    broken = subprocess.run(command, capture_output=True, text=True, check=False)
    assert broken.returncode != 0
    assert broken.stdout == ""
    assert "without its simulated host this Python would tune this machine: KeyError" in broken.stderr
