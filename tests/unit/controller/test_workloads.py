# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workload's playbook spells out what its name means; both stay equal."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import values

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"


@pytest.mark.parametrize("name", sorted(set(WORKLOADS) - {"base"}))
def test_playbook_spells_the_workload_out(name: str) -> None:
    text = (PLAYBOOKS / f"{name}.yml").read_text()
    (play,) = yaml.safe_load(text)
    variables = play["roles"][0]["vars"]
    assert variables == {"tune_workload": name, "tune_concerns": values(WORKLOADS[name])}
    for choices in WORKLOADS[name].values():
        for choice in choices.values():
            for source in choice.source.split(", "):
                assert source in text, f"{name}.yml doesn't say that its reason is {source}"
    spelled_out = tune_requests(name, variables["tune_concerns"], {})
    assert spelled_out == tune_requests(name, {}, {})


def test_every_choice_has_a_reason_and_a_source() -> None:
    for workload in WORKLOADS.values():
        for choices in workload.values():
            for choice in choices.values():
                assert choice.reason
                assert choice.source
