# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report and output of a run of a simulated fleet, after a check of their form."""

from __future__ import annotations

import json
import stat
import subprocess
from typing import Any, Dict

import jsonschema

from tests.support.fleet import ROOT, Fleet

FILES = {"report.json", "report.md", "report.html", "report.prom", "report.junit.xml", "report.sarif"}
SCHEMA = json.loads((ROOT / "plugins/plugin_utils/_report/report.schema.json").read_text())


def checked(fleet: Fleet) -> Dict[str, Any]:
    """The report, after a check of its schema and of the files' modes."""
    names = {path.name for path in fleet.reports.iterdir()}
    assert {name for name in names if not name.startswith("hosts-")} == FILES
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in fleet.reports.iterdir())
    assert stat.S_IMODE(fleet.reports.stat().st_mode) == 0o700
    report = fleet.report()
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    return report


def states(report: Dict[str, Any]) -> Dict[str, str]:
    return {host["name"]: host["state"] for host in report["hosts"]}


def well(run: "subprocess.CompletedProcess[str]") -> str:
    """The output, after a check that no callback failed: Ansible only warns of that."""
    assert "dispatch" not in run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    return run.stdout
