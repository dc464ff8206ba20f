# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/workload_status.csv: per workload, host class and knob the status that a fresh host should have.

Checks are the same for every workload: `base` has their rows, and an empty cell where
nothing is said. The table follows from the rules in workload_rules.toml, not from the code;
if they disagree, one of them is wrong.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, Iterable, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import Tune
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, observe, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import with_type
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.program_values import Claim

PATH = Path(__file__).resolve().parents[2] / "docs" / "workload_status.csv"
DOMAINS = tuple(sorted({"platform"}.union(*(concern.domains for concern in CONCERNS.values()))))

# They change nothing, so nothing is refused; their knobs are checks.
LOOKS = ("kernel_check", "blkfront_check")
# When the table was written: later another distribution may have lost its support.
DAY = "2026-11-22"

# workload → knob as concern.option → class → statuses
Table = Dict[str, Dict[str, Dict[str, FrozenSet[str]]]]


def read() -> Table:
    """What is tuned; a cell of two NICs that differ has both statuses, joined by a plus."""
    return _rows(lambda concern: concern not in LOOKS)


def read_checks() -> Dict[str, Dict[str, FrozenSet[str]]]:
    """The checks, for every workload."""
    tables = _rows(LOOKS.__contains__)
    assert list(tables) == ["base"], "they are the same for every workload"
    return tables["base"]


def _rows(wanted: Callable[[str], bool]) -> Table:
    table: Table = {}
    with PATH.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            workload, concern, knob = row.pop("workload"), row.pop("concern"), row.pop("knob")
            if not wanted(concern):
                continue
            cells = {name: frozenset(cell.split("+") if cell else ()) for name, cell in row.items()}
            table.setdefault(workload, {})[f"{concern}.{knob}"] = cells
    return table


def look(host: Host) -> Facts:
    """The facts of a host that the concerns need, on the day of the table."""
    facts = observe(host, DOMAINS)
    return facts._replace(kernel=facts.kernel._replace(today=DAY)) if facts.kernel is not None else facts


def planned(
    facts: Facts, *workloads: str, claims: Sequence[Claim] = (), **common: Any
) -> Tuple[Tuple[Action, ...], Tuple[Finding, ...]]:
    """What workloads and the claims of programs plan on facts, concern by concern as the engine does it.

    It does without the engine's journal and owners.
    """
    actions: Tuple[Action, ...] = ()
    findings: Tuple[Finding, ...] = ()
    for request in tune_requests(workloads, {}, common, claims=claims):
        assert isinstance(request, Tune)
        plan = request.concern.plan(with_type(facts, request.wanted), request.wanted)
        facts = project(facts, plan.actions)
        actions, findings = actions + plan.actions, findings + plan.findings
    return actions, findings


def statuses(findings: Iterable[Finding], knob: str) -> FrozenSet[str]:
    """The statuses of a knob, without advice."""
    return frozenset(
        finding.status
        for finding in findings
        if f"{finding.concern}.{finding.knob}" == knob and finding.status != "advice"
    )
