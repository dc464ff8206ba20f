# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks that change hosts: a single host first, then a tenth of the fleet at a time, and none without a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
import yaml

from tests.support.fleet import GOOD_CLOCK, ROOT, Fleet, result_with
from tests.support.report.judged import states, well
from tests.support.simulated import simulate

GOOD = {"module_result": result_with(GOOD_CLOCK)}


def reached(fleet: Fleet, hosts: int, dies: int, playbook: str = "tune", **variables: Any) -> List[int]:
    """The hosts that a run of so many reached, if one of them dies."""
    fleet.inventory({f"h{number:02}": {**GOOD, "fate": "dies" if number == dies else ""} for number in range(hosts)})
    well(fleet.run("-e", json.dumps(variables), playbook=f"nearmetal.ec2.{playbook}"))
    return [int(name[1:]) for name, state in states(fleet.report()).items() if state != "silent"]


@pytest.mark.parametrize("playbook", ["tune", "web"])
def test_the_first_batch_is_one_host_and_the_next_a_tenth(fleet: Fleet, playbook: str) -> None:
    assert reached(fleet, 20, 0, playbook) == [0]
    assert reached(fleet, 20, 1, playbook) == [0, 1, 2]
    assert reached(fleet, 20, 4, playbook) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("hosts", [1, 2, 9])
def test_a_small_fleet_is_tuned_host_by_host(fleet: Fleet, hosts: int) -> None:
    assert reached(fleet, hosts, -1) == list(range(hosts))
    assert reached(fleet, hosts, 0) == [0]


@pytest.mark.parametrize(
    ("serial", "first"), [("5", 5), ("25%", 5), ([3, "50%"], 3), ("100%", 20), ("3,50%", 3), ("[4, '50%']", 4)]
)
def test_other_batches_are_taken_from_the_command_line(fleet: Fleet, serial: Any, first: int) -> None:
    assert reached(fleet, 20, 0, tune_serial=serial) == list(range(first))


@pytest.mark.parametrize(
    "serial", ["abc", [1, "ten"], "1,ten", "5x%", -3, 1.5, True, [], "101%", 0, "0%", [1, 0], "", None]
)
@pytest.mark.parametrize("playbook", ["tune", "restore"])
def test_what_is_no_size_of_a_batch_is_said_in_a_sentence(fleet: Fleet, playbook: str, serial: Any) -> None:
    fleet.inventory({"h1": GOOD})
    done = fleet.run("-e", json.dumps({"tune_serial": serial}), playbook=f"nearmetal.ec2.{playbook}")
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert (
        "is no size of a batch: give a number of hosts, a share such as 10%, or several such as 1,10%; 100% is all"
        in output
    )
    assert "Traceback" not in output
    assert "TASK" not in output


def test_every_playbook_that_stops_at_a_failure_has_these_batches() -> None:
    plays: Dict[str, Any] = {
        f"{path.name} {play['name']}": play.get("serial")
        for path in (ROOT / "playbooks").glob("*.yml")
        for play in yaml.safe_load(path.read_text())
        if play.get("max_fail_percentage") == 0
    }
    assert len(plays) > 10
    assert set(plays.values()) == {"{{ tune_serial | default([1, '10%']) | nearmetal.ec2.batches }}"}


def test_a_host_whose_report_could_not_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    hosts = {"all": {"hosts": {"web-01": simulate(tmp_path / "web-01", "xen_hvm")}}}
    (tmp_path / "hosts.json").write_text(json.dumps(hosts))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.json", "nearmetal.ec2.tune"],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible/collections"),
            "ANSIBLE_STDOUT_CALLBACK": "nearmetal.ec2.fleet",
            "NEARMETAL_REPORT_DIRECTORY": "hosts.json",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "report_directory: can't write in " in done.stdout
    assert "hosts.json: File exists; name another directory" in done.stdout
    assert not (tmp_path / "web-01/root/var/lib/nearmetal").exists()
