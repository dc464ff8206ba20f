# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every program over its workload, on every recorded machine of EC2."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.registry import NAMES, program_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.program_values import Claim

from tests.support import workload_table
from tests.unit.recorded import machines
from tests.unit.recorded.test_workloads import EC2, PARTS, complete

PLANNED = ("ok", "would_change", "not_applicable", "refused")


@pytest.mark.parametrize("key", EC2)
def test_what_each_program_asks_for_is_planned_or_has_a_reason_why_not(key: str, root: Path) -> None:
    machines.lay_out(key, root, PARTS)
    expected = machines.answer(key)
    complete(root, expected)
    facts = workload_table.look(Host(str(root)))
    for name in NAMES:
        program = program_of(name)
        known, _open = program.asks("8.0", expected["arch"])
        claims = [Claim(program.title, wish) for wish in known]
        _actions, findings = workload_table.planned(facts, program.workload, claims=claims)
        for claim in claims:
            statuses = workload_table.statuses(findings, claim.wish.knob)
            assert statuses, f"{name}: nothing is said of {claim.wish.knob}"
            assert statuses <= set(PLANNED), f"{name}: {claim.wish.knob} {sorted(statuses)}"
