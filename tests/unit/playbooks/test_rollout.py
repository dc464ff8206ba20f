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
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.draw import draw

from tests.support.simulated import ROOT, simulate

TUNED = "root/var/lib/nearmetal/journal.json"
LEASE = "root/var/lib/nearmetal/rollout.json"
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
        self.config = ""  # further lines of ansible.cfg
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
        (self.folder / "ansible.cfg").write_text(f"[defaults]\n{self.config}")
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
            ANSIBLE_SHOW_CUSTOM_STATS="true",
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

    def order(self) -> List[str]:
        """The order in which the hosts are drawn."""
        return draw(7, dict.fromkeys(NAMES, ""))

    def lease(self, name: str) -> None:
        """Let another rollout have a host."""
        path = self.folder / name / LEASE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"run": "other", "abandon_after": 0}))

    def leases(self) -> List[str]:
        """The hosts that a rollout has."""
        return [name for name in NAMES if (self.folder / name / LEASE).exists()]

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


def test_a_harmless_tuning_reaches_all_batch_by_batch_and_group_by_group(fleet: Fleet) -> None:
    after = fleet.folder / "after_host.yml"
    after.write_text(HOOK % (fleet.folder, "after_host"))
    log = fleet.folder / "log"
    hooks = {"before": f"echo {{host}} {{address}} >> {log}", "after": str(after)}
    given = {f"rollout_{moment}_host": hook for moment, hook in hooks.items()}
    ran = fleet.run(rollout_most_unavailable="50%", **given)
    assert ran.code == 0, ran.output
    assert ran.tuned == NAMES
    assert all((fleet.folder / host / "after_host").exists() for host in NAMES)
    order = ran.lines("start")[0]["hosts"]
    assert sorted(log.read_text().splitlines()) == [f"{name} {name}" for name in NAMES]
    assert ran.output.count("TASK [nearmetal.ec2.rollout : Take the host for this rollout") == 1 + 2 + 3  # groups
    assert order != NAMES  # the coin's order, not that of the inventory
    assert [(line["number"], line["decision"]) for line in ran.lines("decision")] == [(n, "go_on") for n in (1, 2, 3)]
    assert ran.lines("end")[0]["outcome"] == "done"
    assert "ROLLOUT  done: 10 of 10 hosts tuned" in ran.output
    assert "isn't an option" not in ran.output
    assert not fleet.leases(), "they were told that they stay as they are"


def test_what_suffers_is_taken_back_before_the_play_ends(fleet: Fleet) -> None:
    ran = fleet.run(80, rollout_on_back="all")
    assert (ran.code, ran.tuned) == (2, []), ran.output
    assert [line["decision"] for line in ran.lines("decision")] == ["go_on", "back"]
    assert set(ran.lines("restored")[0]["hosts"].values()) == {""}
    assert "requests became worse" in ran.output
    assert "ROLLOUT  taken back: 0 of 10 hosts tuned" in ran.output
    assert "TASK [nearmetal.ec2.rollout : Fail, because not all batches are done]" in ran.output
    assert "rollout taken back: requests became worse" in ran.output.partition("Fail, because not all")[2]
    assert '"outcome": "taken_back"' in ran.output.partition("CUSTOM STATS")[2]
    assert not fleet.leases()


def test_after_the_first_failure_no_further_host_is_taken_out_of_service(fleet: Fleet) -> None:
    first = fleet.order()[0]
    log = fleet.folder / "log"
    fleet.lease(first)
    ran = fleet.run(
        rollout_batches=[5],
        rollout_before_host=f"echo {{host}} >> {log}; test $(wc -l < {log}) -lt 2",
    )
    assert (ran.code, ran.tuned) == (2, []), ran.output
    fine, failed = log.read_text().split()  # one host after the other, and none after the one that failed
    assert f"{first} is left out: another rollout has this host, other" in ran.output
    (reason,) = ran.lines("decision")[0]["reasons"]
    assert reason.startswith(f"{failed}: Run a command on the controller: ")
    assert "non-zero return code" in reason  # Ansible's words, more of them since 2.21
    assert set(ran.lines("restored")[0]["hosts"]) == {fine, failed}
    assert fleet.leases() == [first]


def test_a_freeze_file_holds_before_the_next_batch(fleet: Fleet) -> None:
    freeze, hook = fleet.folder / "freeze", fleet.folder / "hook.yml"
    hook.write_text(FREEZE % freeze)
    held = fleet.run(rollout_freeze=str(freeze), rollout_after_host=str(hook))
    assert (held.code, len(held.tuned)) == (2, 1), held.output
    assert "batch 2 of 3 doesn't begin" in held.output
    assert "freeze exists: release day; remove it to go on" in held.output
    assert held.lines("end")[0]["outcome"] == "held"
    assert not fleet.leases()


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
    fleet.config = "stdout_callback = nearmetal.ec2.fleet\n"
    fleet.hosts["h01"]["tune_concerns"] = "{{ facts_of_the_host }}"
    ran = fleet.run(100, "--check", tune_serial=3, rollout_health="test -e /nothing/here")
    assert (ran.code, ran.tuned, ran.record) == (0, [], Path())
    assert "these hosts in these batches: add -e rollout_seed=7" in ran.output
    assert f"ROLLOUT  {fleet.order()[0]} isn't healthy now: the health command ended with code 1" in ran.output
    assert "tune_serial has no effect in a rollout" in ran.output
    assert "10 hosts in 1 stratum, batches of 1, 4, 5" in ran.output
    assert f"requests now: {fleet.order()[0]} 100" in ran.output
    assert "what each host would get: ansible-playbook nearmetal.ec2.tune --check" in ran.output
    assert "CHECK OF" not in ran.output
    assert "Reports: " not in ran.output, "the report of an audit stays"


def test_mistakes_in_what_comes_later_are_said_before_anything_is_tuned(fleet: Fleet) -> None:
    fleet.hosts["h03"]["tune_health_on"] = "moon"
    ran = fleet.run(rollout_metrics=[{"name": "r", "better": "bigger"}], tune_exclude=["smt.thread"])
    assert (ran.code, ran.tuned, ran.record) == (2, [], Path())
    for said in ("3 mistakes", "rollout_metrics, entry 1 (r): better can't be", "tune_exclude[0]: smt has no knob"):
        assert said in ran.output
    assert "h03: value of tune_health_on must be one of" in ran.output


def test_a_limit_without_the_controller_is_refused_before_anything_is_tuned(fleet: Fleet) -> None:
    ran = fleet.run(100, "--limit", "h0*")
    assert ran.code == 2
    assert ran.tuned == []
    assert "-e target=" in ran.output
