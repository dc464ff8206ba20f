# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `benchmark` on a simulated host, and that no role reads a variable without a default."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.simulated import ROOT, simulate

ROLES = sorted(path.parent.parent.name for path in (ROOT / "roles").glob("*/tasks/main.yml"))


@pytest.mark.parametrize(("name", "said"), [("clock", ""), ("", "name is required"), ("clok", "must be one of")])
def test_the_first_command_of_the_page(name: str, said: str, tmp_path: Path) -> None:
    hosts = {"all": {"hosts": {"web-01": simulate(tmp_path / "web-01", "xen_hvm")}}}
    (tmp_path / "hosts.json").write_text(json.dumps(hosts))
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    words = ["-i", "hosts.json", "nearmetal.ec2.benchmark", "--check", "-e", "target=web-01"]
    done = subprocess.run(
        [program, *words, *(["-e", f"benchmark_name={name}"] if name else [])],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible/collections"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert "undefined" not in done.stdout
    assert said in done.stdout, done.stdout
    assert (done.returncode == 0) is (name == "clock"), done.stdout


@pytest.mark.parametrize("role", ROLES)
def test_each_variable_that_a_generated_role_passes_has_a_default(role: str) -> None:
    text = (ROOT / f"roles/{role}/tasks/main.yml").read_text("utf-8")
    defaults = yaml.safe_load((ROOT / f"roles/{role}/defaults/main.yml").read_text("utf-8")) or {}
    plain = re.findall(rf'^    \w+: "\{{\{{ ({role}_\w+) \}}\}}"$', text, re.M)
    assert not set(plain) - set(defaults)
