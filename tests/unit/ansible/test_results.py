# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What AWX keeps of a run as artifacts: of plays on simulated hosts, run by ansible-runner as AWX does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Mapping

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible.results import with_artifact

from tests.support.simulated import simulate

TUNE = ("-e", '{"tune_concerns": {"clocksource": {"source": "tsc", "persist": false}}}')


def artifacts(folder: Path, playbook: str, *words: str) -> Dict[str, Any]:
    """What ansible-runner hands to AWX at the end of a run."""
    folder.mkdir(exist_ok=True)
    command = ["ansible-runner", "run", str(folder), "--ident", playbook, "-p", f"nearmetal.ec2.{playbook}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_STDOUT", "NEARMETAL_"))}
    done = subprocess.run(
        [*command, "-q", "--inventory", str(folder / "hosts.json"), "--cmdline", " ".join(map(repr, words))],
        cwd=folder,
        env=clean,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    events = (folder / "artifacts" / playbook / "job_events").glob("*.json")
    ends = [json.loads(path.read_text()) for path in events if '"playbook_on_stats"' in path.read_text()]
    shown = (folder / "artifacts" / playbook / "stdout").read_text()
    assert done.returncode == 0, shown + done.stderr
    assert len(ends) == 1
    found: Dict[str, Any] = ends[0]["event_data"]["artifact_data"]
    return found


def test_awx_keeps_what_a_run_did_to_each_host(tmp_path: Path) -> None:
    hosts = {name: simulate(tmp_path / name, "xen_hvm") for name in ("db-1", "db-2")}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    kept = artifacts(tmp_path, "tune", *TUNE)["nearmetal"]["hosts"]
    assert sorted(kept) == ["db-1", "db-2"]
    line = kept["db-2"]["tune"].pop("msg")
    assert line.startswith("clocksource: xen → tsc, no reboot")
    values = {"check_mode": False, "changed": True, "reboot_required": False}
    assert kept["db-2"] == {"tune": {**values, "workload": ["base"]}}
    line = "clocksource: tsc → xen, no reboot"
    assert artifacts(tmp_path, "restore")["nearmetal"]["hosts"]["db-1"] == {"restore": {**values, "msg": line}}


def test_an_audit_adds_its_verdict_to_what_each_host_reported(tmp_path: Path) -> None:
    hosts = {"db-1": simulate(tmp_path / "db-1", "xen_hvm")}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    kept = artifacts(tmp_path, "audit", *TUNE)["nearmetal"]
    assert kept["verdict"] == "1 setting on this host can be tuned better."
    assert kept["totals"]["findings"]["would_change"] == 1
    assert kept["hosts"]["db-1"]["tune"]["check_mode"] is True


def of(result: Mapping[str, Any], **task: Any) -> Any:
    """The artifacts of a task with this result; None if it has none."""
    plain = {"action": "tune", "no_log": False, "async_val": 0, "check_mode": False, **task}
    return with_artifact({"msg": "done", **result}, SimpleNamespace(**plain), "db-1").get("ansible_stats")


def test_a_task_that_is_secret_or_failed_or_not_over_has_no_artifact() -> None:
    assert of({})
    for result, task in (({}, {"no_log": True}), ({"failed": True}, {}), ({}, {"async_val": 60}), ({"msg": ""}, {})):
        assert of(result, **task) is None


def test_a_host_can_hand_the_next_job_neither_a_template_nor_much_text() -> None:
    hostile = {"msg": "{{ lookup('pipe', 'id') }}\x1b[2J {% if 1 %}", "workload": ["{{{x}}}", "web" * 9999]}
    kept = of({**hostile, "changed": "{{ 1 }}", "actions": ["x"] * 9999})["data"]["nearmetal"]["hosts"]["db-1"]["tune"]
    assert kept["msg"] == "{ { lookup('pipe', 'id') }} { % if 1 %}"
    assert kept["workload"][0] == "{ { {x}}}"
    assert "changed" not in kept
    assert len(json.dumps(kept)) < 2500
