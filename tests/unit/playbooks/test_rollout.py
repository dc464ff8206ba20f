# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `rollout` on simulated hosts whose service is as quick as the file of each host says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest

from tests.support.simulated import ROOT, simulate

TUNED = "root/var/lib/nearmetal/journal.json"
NAMES = [f"h{number:02}" for number in range(10)]


class Ran(NamedTuple):
    """One run of the playbook."""

    code: int
    output: str
    tuned: List[str]  # the hosts that are tuned after it
    record: Path

    def lines(self, kind: str) -> List[Dict[str, Any]]:
        """The lines of a kind in the record."""
        lines = [json.loads(line) for line in self.record.read_text().splitlines()]
        return [line for line in lines if line["kind"] == kind]


class Fleet:
    """Ten hosts; the metric of a host is 1000 and a little, times `tuned` percent when it is tuned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: Dict[str, Dict[str, Any]] = {}
        for name in NAMES:
            (folder / name).mkdir()
            self.hosts[name] = simulate(folder / name, "xen_hvm")

    def command(self, percent: int) -> str:
        """What a host's service does per second."""
        noise = "$(od -An -N1 -tu1 /dev/urandom)"
        return f"p=100; test -e {self.folder}/{{host}}/{TUNED} && p={percent}; echo $((p * 10 + {noise} % 10))"

    def run(self, percent: int = 100, *words: str, **variables: Any) -> Ran:
        """Roll out over the fleet."""
        with self.start(percent, *words, **variables) as running:
            output = running.stdout.read()
        return self.ran(running.returncode, output)

    def start(self, percent: int = 100, *words: str, **variables: Any) -> "subprocess.Popen[str]":
        """Begin to roll out over the fleet, in a process group of its own."""
        (self.folder / "hosts.json").write_text(json.dumps({"all": {"hosts": self.hosts}}))
        (self.folder / "ansible.cfg").write_text("[defaults]\n")
        given = {
            "rollout_metrics": [{"name": "requests", "better": "larger", "command": self.command(percent)}],
            "rollout_batches": [1, 5, "100%"],
            "rollout_interval": 0.2,
            "rollout_before": 0.6,
            "rollout_watch": 0.6,
            "rollout_watch_at_most": 1,
            "rollout_seed": 7,
            "tune_concerns": {"clocksource": {"source": "tsc"}},
            **variables,
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment.update(
            ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".ansible/collections"),
            ANSIBLE_CONFIG=str(self.folder / "ansible.cfg"),
            ANSIBLE_HOME=str(self.folder / "home"),
            NEARMETAL_REPORT_DIRECTORY=str(self.folder / "reports"),
            COLUMNS="200",
        )
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        inventory, playbook = str(self.folder / "hosts.json"), "nearmetal.ec2.rollout"
        return subprocess.Popen(
            [program, "-i", inventory, playbook, "-e", json.dumps(given), *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ran(self, code: int, output: str) -> Ran:
        """What a run has left."""
        tuned = [name for name in NAMES if (self.folder / name / TUNED).exists()]
        records = sorted((self.folder / "reports/rollout").glob("*.jsonl"))
        return Ran(code, output, tuned, records[-1] if records else Path())


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Ten hosts that nobody has tuned."""
    return Fleet(tmp_path)


FREEZE = """
- name: Freeze
  ansible.builtin.copy: {dest: "%s", content: "release day", mode: "0600"}
  delegate_to: localhost
"""
HOOK = """
- name: Leave a mark
  ansible.builtin.file: {path: "%s/{{ inventory_hostname }}/%s", state: touch, mode: "0600"}
  delegate_to: localhost
"""


def test_a_harmless_tuning_reaches_all_batch_by_batch(fleet: Fleet) -> None:
    hooks = {name: fleet.folder / f"{name}.yml" for name in ("before_host", "after_host")}
    for name, path in hooks.items():
        path.write_text(HOOK % (fleet.folder, name))
    ran = fleet.run(**{f"rollout_{name}": str(path) for name, path in hooks.items()})
    assert all((fleet.folder / host / name).exists() for host in NAMES for name in hooks), ran.output
    assert ran.code == 0, ran.output
    assert ran.tuned == NAMES
    assert [(line["number"], line["decision"]) for line in ran.lines("decision")] == [(n, "go_on") for n in (1, 2, 3)]
    assert ran.lines("end")[0]["outcome"] == "done"
    assert "ROLLOUT  done: 10 of 10 hosts tuned" in ran.output
    assert "isn't an option" not in ran.output
    assert ran.lines("start")[0]["hosts"] != NAMES  # the coin's order, not that of the inventory


def test_a_batch_that_suffers_is_taken_back_before_the_play_ends(fleet: Fleet) -> None:
    ran = fleet.run(80)
    assert ran.code == 2
    first = ran.lines("start")[0]["hosts"][0]
    assert ran.tuned == [first]
    assert ran.lines("decision")[-1]["decision"] == "back"
    assert set(ran.lines("restored")[0]["hosts"].values()) == {""}
    assert "requests became worse" in ran.output
    assert "ROLLOUT  taken back: 1 of 10 hosts tuned" in ran.output


def test_a_host_whose_service_fails_when_it_is_tuned_is_taken_back_and_goes_no_further(fleet: Fleet) -> None:
    healthy = "test ! -e $NEARMETAL_SIMULATED/var/lib/nearmetal/journal.json"
    ran = fleet.run(rollout_health=healthy)
    assert (ran.code, ran.tuned) == (2, [])
    assert len(ran.lines("batch")) == 1
    assert "the health command ended with code 1" in ran.lines("decision")[0]["reasons"][0]


def test_a_freeze_file_holds_before_the_next_batch(fleet: Fleet) -> None:
    freeze, hook = fleet.folder / "freeze", fleet.folder / "hook.yml"
    hook.write_text(FREEZE % freeze)
    held = fleet.run(rollout_freeze=str(freeze), rollout_after_host=str(hook))
    assert (held.code, len(held.tuned)) == (2, 1), held.output
    assert "batch 2 of 3 doesn't begin" in held.output
    assert "freeze exists: release day; remove it to go on" in held.output
    assert held.lines("end")[0]["outcome"] == "held"


def test_a_controller_that_is_killed_while_it_watches_goes_on_from_the_record(fleet: Fleet) -> None:
    with fleet.start() as running:
        seen = []
        for line in running.stdout:
            seen.append(line)
            if "batch 2 of 3, 5 of 10 hosts tuned, look 2" in line:
                os.killpg(running.pid, signal.SIGKILL)
                break
    killed = fleet.ran(running.returncode, "".join(seen))
    assert (killed.code, len(killed.tuned)) == (-signal.SIGKILL, 5), killed.output
    assert [line["number"] for line in killed.lines("decision")] == [1]
    again = fleet.run(rollout_resume=str(killed.record))
    assert (again.code, again.tuned) == (0, NAMES), again.output
    assert [(line["number"], line["decision"]) for line in again.lines("decision")] == [(n, "go_on") for n in (1, 2, 3)]
    assert [line["number"] for line in again.lines("batch")] == [1, 2, 3]


def test_check_mode_shows_the_batches_and_writes_nothing(fleet: Fleet) -> None:
    ran = fleet.run(100, "--check")
    assert (ran.code, ran.tuned, ran.record) == (0, [], Path())
    assert "10 hosts in 1 stratum, batches of 1, 4, 5" in ran.output


def test_a_limit_without_the_controller_is_refused_before_anything_is_tuned(fleet: Fleet) -> None:
    ran = fleet.run(100, "--limit", "h0*")
    assert ran.code == 2
    assert ran.tuned == []
    assert "-e target=" in ran.output
