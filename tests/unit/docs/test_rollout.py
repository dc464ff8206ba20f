# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/rollout.md: its files are written, and its commands run in order, on simulated hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Dict, List

import pytest

from tests.support.simulated import simulate

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "rollout.md").read_text("utf-8")
FILE = re.compile(r"^`([\w/.]+)`(?:(?!\n\n).)*?:\n\n```\w+\n(.*?)```", re.DOTALL | re.MULTILINE)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)
KINDS = {"cache-01": "nitro", "cache-02": "xen_hvm", "web-01": "graviton", "web-02": "nitro", "web-03": "xen_hvm"}
SOMAXCONN = "proc/sys/net/core/somaxconn"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """The repository of the page; an inventory beside the page's says how its hosts are simulated."""
    for name, text in FILE.findall(PAGE):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    hosts: Dict[str, object] = {}
    for name, kind in KINDS.items():
        hosts[name] = simulate(tmp_path / name, kind)
    (tmp_path / "inventory/zz.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    health = tmp_path / "bin/systemctl"
    health.parent.mkdir()
    health.write_text("#!/bin/sh\nexit 0\n")
    health.chmod(0o755)
    return tmp_path


def run(fleet: Path, command: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT / ".ansible/collections")
    environment["PATH"] = f"{fleet}/bin:{environment['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=fleet,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def somaxconn(fleet: Path) -> List[str]:
    return [(fleet / name / "root" / SOMAXCONN).read_text().strip() for name in KINDS]


def workloads(fleet: Path) -> List[str]:
    report = json.loads((fleet / "nearmetal-report/report.json").read_text())
    return [host["workload"] for host in report["hosts"]]


def test_the_page_from_its_first_file_to_its_last_command(fleet: Path) -> None:
    audit, canary, batches, drift, back = COMMANDS.findall(PAGE)
    before = somaxconn(fleet)
    done = run(fleet, audit)
    assert done.returncode == 0, done.stdout + done.stderr
    assert workloads(fleet) == ["cache", "cache", "web", "web", "web"]
    assert somaxconn(fleet) == before
    done = run(fleet, canary)
    assert done.returncode == 0, done.stdout + done.stderr
    assert somaxconn(fleet)[2:] == ["16384", *before[3:]]
    assert run(fleet, drift).returncode == 2, "the others have something to change"
    done = run(fleet, batches)
    assert done.returncode == 0, done.stdout + done.stderr
    assert somaxconn(fleet)[2:] == ["16384"] * 3
    done = run(fleet, drift)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(fleet, back)
    assert done.returncode == 0, done.stdout + done.stderr
    assert somaxconn(fleet) == [*before[:2], *["16384"] * 3]


def test_group_vars_beside_the_playbook_are_not_seen_by_a_playbook_of_the_collection(fleet: Path) -> None:
    (fleet / "inventory/group_vars").rename(fleet / "group_vars")
    (fleet / "imports.yml").write_text("- import_playbook: nearmetal.ec2.audit\n")
    (fleet / "role.yml").write_text("- hosts: all\n  gather_facts: false\n  roles: [nearmetal.ec2.audit]\n")
    for playbook, seen in (("imports.yml", "base"), ("role.yml", "web")):
        done = run(fleet, f"ansible-playbook {playbook} --limit web-01")
        assert done.returncode == 0, done.stdout + done.stderr
        assert workloads(fleet) == [seen]
