# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client host in a real play: Ansible reaches it with its own variables, not with those of the host under test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.fake_kernel import CLOCK
from tests.support.simulated import simulate

PROJECT = Path(__file__).resolve().parents[4]


def test_the_load_runs_where_the_inventory_says_and_an_unreachable_client_is_named_first(tmp_path: Path) -> None:
    hosts = {name: simulate(tmp_path / name, "xen_hvm") for name in ("db-1", "db-2", "client-1")}
    hosts["client-2"] = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    for number in (1, 2):
        hosts[f"db-{number}"]["prove_on"] = f"client-{number}"
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    # The variable is set in the Python of a simulated host, so a load that fails can say where it ran.
    options = {
        "prove_command": 'echo "ran below $NEARMETAL_SIMULATED as ${NEARMETAL_BECAME:-a user}" >&2; exit 3',
        "prove_settle": 0,
        "prove_seconds": 1,
        "prove_abandon_after": 0,
        "tune_concerns": {"clocksource": {"source": "tsc"}},
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(PROJECT / ".ansible/collections")
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.json", "nearmetal.ec2.prove"]
    done = subprocess.run(
        [*command, "-e", json.dumps(options), "--limit", "db-*"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    said = " ".join(done.stdout.replace("\\", "").split())
    assert f"the command ended with code 3: ran below {tmp_path}/client-1/root as a user" in said, done.stdout
    assert "the load can't run on client-2 (" in said, done.stdout
    for name in ("db-1", "db-2"):
        root = tmp_path / name / "root"
        assert (root / f"{CLOCK}/current_clocksource".lstrip("/")).read_text().strip() == "xen"
        assert not (root / "run/nearmetal/prove.json").exists()
    assert not (tmp_path / "client-1/root/run/nearmetal").exists()
