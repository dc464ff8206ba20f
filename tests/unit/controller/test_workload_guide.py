# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/workloads.md: its variables are what tune takes, and it names every workload."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import OWN

DOCS = Path(__file__).resolve().parents[3] / "docs"
GUIDE = (DOCS / "workloads.md").read_text("utf-8")


def test_every_workload_is_named_and_linked() -> None:
    linked = dict(re.findall(r"\| \[`([a-z_]+)`\]\(([^)]+)\)", GUIDE))
    assert set(linked) == set(OWN)
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE):
        assert (DOCS / target).exists(), target


def test_the_variables_are_what_tune_takes() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", GUIDE, re.S)
    said = yaml.safe_load(block)
    requests = tune_requests(
        said["tune_workload"],
        said["tune_concerns"],
        {},
        exclude=said["tune_exclude"],
        waivers=said["tune_waivers"],
    )
    wanted = {request.name: request.wanted.options for request in requests if request.wanted is not None}
    assert wanted["network_stack"]["somaxconn"] == 16384
    assert "turbo" not in wanted["cpu_power"]
    assert wanted["hugepages"]["waivers"][0]["knob"] == "thp"
