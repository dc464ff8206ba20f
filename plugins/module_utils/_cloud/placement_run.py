# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of the module placement: observe and plan. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.observe import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.placement import (
    CONCERN,
    PlacementFacts,
    plan,
    zones_of,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import deadline


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    with deadline(options["timeout"]):
        seen = observe(options)
        groups = seen.keep_failures(seen.cloud.placement_groups(seen.found))
    zones = zones_of(seen.instances, options["workload"])
    facts = {}
    for each, one in seen.instances.items():
        workload = options["workload"] or one.workload
        strategy = (groups.one(each) or {}).get("Strategy")
        facts[each] = PlacementFacts(workload, one.placement_group, strategy, zones.get(workload or "", {}))
    plans = {each: plan(one, seen.type_of(one), facts[each]) for each, one in seen.instances.items()}
    shown = {
        each: {
            "placement": {
                "group": one.group,
                "strategy": one.strategy,
                "zone": seen.instances[each].availability_zone,
                "tenancy": seen.instances[each].tenancy,
                "workload": one.workload,
                "possible_strategies": list(seen.type_of(seen.instances[each]).placement_strategies),
            }
        }
        for each, one in facts.items()
    }
    return contract(CONCERN, seen, plans, shown)
