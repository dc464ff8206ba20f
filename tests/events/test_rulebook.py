# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/rulebooks/events.yml, run by ansible-rulebook: which events start which playbook on which hosts.

The two event sources, of the collection ansible.eda, are stand-ins that hand over the events of a test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from dev import ROOT
from dev.programs import rulebook
from tests.support.fleet import GOOD_CLOCK, Fleet, result_with

INSTANCE = "i-0123456789abcdef0"
QUEUE, ALERTS = "ansible.eda.aws_sqs_queue", "ansible.eda.alertmanager"
SOURCE = """
async def main(queue, _arguments):
    for event in {events!r}:
        await queue.put(event)
"""
# A source that ends would end the others too.
SILENT = """
import asyncio

async def main(_queue, _arguments):
    await asyncio.Event().wait()
"""


def change(instance: str, state: str) -> Dict[str, Any]:
    """What EventBridge writes to a queue, as aws_sqs_queue hands it over."""
    detail = {"instance-id": instance, "state": state}
    body = {"source": "aws.ec2", "detail-type": "EC2 Instance State-change Notification", "detail": detail}
    return {"body": body, "meta": {"MessageId": "1"}}


def alert(host: str, status: str, name: str = "NearmetalSettingsDrifted") -> Dict[str, Any]:
    """What Alertmanager posts, as alertmanager hands it over."""
    return {"alert": {"status": status, "labels": {"alertname": name, "host": host}}, "meta": {"endpoint": "alerts"}}


@pytest.mark.parametrize(
    ("source", "events", "mode", "host"),
    [
        (QUEUE, [change("all", "running"), change(INSTANCE, "stopped"), change(INSTANCE, "running")], "tune", INSTANCE),
        (
            ALERTS,
            [
                alert("all:!db-1", "firing"),
                alert("db-1", "resolved"),
                alert("db-1", "firing", "Other"),
                alert("db-1", "firing"),
            ],
            "audit",
            "db-1",
        ),
    ],
)
def test_an_event_starts_its_playbook_on_its_host_alone(
    tmp_path: Path, source: str, events: List[Dict[str, Any]], mode: str, host: str
) -> None:
    fleet = Fleet(tmp_path)
    inventory = fleet.inventory({name: {"module_result": result_with(GOOD_CLOCK)} for name in (INSTANCE, "db-1")})
    for name in (QUEUE, ALERTS):
        (tmp_path / f"{name}.py").write_text(SOURCE.format(events=events) if name == source else SILENT)
    (tmp_path / "variables.yml").write_text(json.dumps({"region": "eu-west-1", "queue": "nearmetal"}))
    words = ["-r", str(ROOT / "docs/rulebooks/events.yml"), "-S", str(tmp_path), "-i", str(inventory)]
    words += ["-e", str(tmp_path / "variables.yml"), "--shutdown-delay", "120", "-v"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(rulebook.PROGRAM), *words],
        cwd=tmp_path,
        env={**fleet.environment(), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = fleet.report()
    assert report["run"]["mode"] == mode
    assert [found["name"] for found in report["hosts"]] == [host]
    assert "'rulesTriggered': 1," in done.stdout + done.stderr, "the other events start nothing"
