# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of the module network_interfaces: observe and plan. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.network_interfaces import CONCERN, plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.observe import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import deadline


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    with deadline(options["timeout"]):
        seen = observe(options)
    plans = {each: plan(one, seen.type_of(one)) for each, one in seen.instances.items()}
    shown = {
        each: {"interfaces": [asdict(interface) for interface in one.interfaces]}
        for each, one in seen.instances.items()
    }
    return contract(CONCERN, seen, plans, shown)
