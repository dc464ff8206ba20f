# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of tune and prove that a rollout checks before it begins."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from ansible.errors import AnsibleUndefinedVariable
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible.later import mistakes, of_tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove.inputs import require_right

CHECKS = {"tune": of_tune, "prove": require_right}
PROVE = {"prove_command": "true"}


class OfFacts(Dict[str, Any]):
    """Variables of a host, one of them a template that needs its facts."""

    def __getitem__(self, name: str) -> Any:
        if super().__getitem__(name) == "{{ facts }}":
            raise AnsibleUndefinedVariable("'facts' is undefined")
        return super().__getitem__(name)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, []),
        ({"tune_workload": "auto", "tune_concerns": {"smt": None}, "tune_exclude": "smt.threads"}, []),
        ({"tune_health_on": "moon"}, ["value of tune_health_on must be one of: host, controller"]),
        ({"tune_health_timeout": "soon"}, ["tune_health_timeout must be a whole number"]),
        (
            {"tune_workload": "wbe", "tune_concerns": {"smt": False, "numma": {}}},
            ["workload 'wbe' is unknown", "concern 'numma' is unknown", "tune_concerns.smt must be a mapping"],
        ),
        ({"tune_waivers": [{"knob": "smt.x", "reason": "r", "expires": "2099-01-31"}]}, ["tune_waivers[0].knob: smt"]),
        ({"prove_seconds": -4}, ["prove_seconds must be a number from 0.1 to 3600, not -4"]),
        ({"prove_command": ""}, ["prove_command or prove_benchmark is required"]),
        ({"tune_concerns": "{{ facts }}"}, []),
    ],
)
def test_what_would_fail_on_the_first_host_is_said_before(given: Dict[str, Any], said: "list[str]") -> None:
    found = mistakes(CHECKS, {"h1": OfFacts({**PROVE, **given})})
    assert [sentence[: len(begin)] for sentence, begin in zip(found, said)] == said
    assert len(found) == len(said)


def test_the_hosts_are_named_unless_all_are_wrong() -> None:
    wrong: Dict[str, Any] = {**PROVE, "tune_workload": "wbe"}
    hosts = {f"h{number}": wrong for number in range(5)}
    assert mistakes(CHECKS, hosts)[0].startswith("workload 'wbe'")
    assert mistakes(CHECKS, {**hosts, "well": PROVE})[0].startswith("h0, h1, h2 and 2 more: workload 'wbe'")
