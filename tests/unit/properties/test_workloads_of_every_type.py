# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every type of the offline table as a host: its name is read there as the table says, and every workload plans.

The hosts are those of tests/hosts, one per kind, that call themselves the type: their sizes stay their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.facts import TypeFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import platform
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS

from tests.support import workload_table
from tests.support.fresh_host import fresh
from tests.support.sequences.tenth import tenth

PRODUCT = "/sys/devices/virtual/dmi/id/product_name"


def kind_of(kind: TypeFacts) -> str:
    """The host of tests/hosts that stands for the type."""
    arm = "arm64" in kind.architectures
    if kind.bare_metal:
        return "graviton_metal" if arm else "metal"
    if kind.hypervisor == "xen":
        return "xen_hvm" if "hvm" in kind.virtualization_types else "xen_pv"
    return "graviton" if arm else "nitro_burstable" if kind.burstable else "nitro"


def grouped() -> Dict[str, List[str]]:
    """Host → the types that it stands for, in `make test` a tenth of all types."""
    found: Dict[str, List[str]] = {}
    for name, kind in tenth(sorted(offline_types().items())):
        found.setdefault(kind_of(kind), []).append(name)
    return found


@pytest.mark.parametrize("stand_in", sorted(grouped()))
def test_every_workload_plans_on_every_type(stand_in: str, tmp_path: Path) -> None:
    host = fresh(tmp_path, stand_in)
    facts = workload_table.look(host)
    for name in grouped()[stand_in]:
        kind = offline_types()[name]
        if kind.hypervisor != "xen":  # a Xen host doesn't know its type
            (tmp_path / PRODUCT.lstrip("/")).write_text(f"{name}\n")
            facts = facts._replace(platform=platform.observe(host))
            assert facts.platform is not None
            assert (facts.platform.instance_type, facts.platform.burstable) == (name, kind.burstable)
            assert facts.platform.host_class == ("metal" if kind.bare_metal else "nitro")
        for workload in WORKLOADS:
            actions, findings = workload_table.planned(facts, workload)
            statuses: Dict[object, Set[str]] = {}
            for finding in findings:
                if finding.status != "advice":
                    statuses.setdefault((finding.concern, finding.knob, finding.where), set()).add(finding.status)
            assert findings, f"{workload} on {name}"
            assert {
                key: statuses_of_key for key, statuses_of_key in statuses.items() if len(statuses_of_key) > 1
            } == {}, f"{workload} on {name}"
            assert {finding.status for finding in findings} <= set(STATUSES)
            # Findings about the unit come with the unit's plan, after all concerns.
            changing = {
                (finding.concern, finding.knob)
                for finding in findings
                if finding.status == "would_change" and finding.wanted != "nearmetal.service"
            }
            assert changing <= {(action.concern, action.knob) for action in actions}, f"{workload} on {name}"
