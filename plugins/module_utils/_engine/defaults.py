# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run wants of a concern to which it gives no option: what `base` has, or nothing. Pure. PRIVATE."""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import Leave, Request, Tune
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import managed
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads import base
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import values

_BASE = values(base.OWN)


def silent(concern: Concern, options: Mapping[str, Any]) -> bool:
    """Whether the options manage nothing of a concern that has something to manage."""
    knobs = managed(concern)
    return bool(knobs) and not any(options.get(knob) is not None for knob in knobs)


def of_base(concern: Concern, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """What `base` has for a concern whose options manage nothing."""
    return _BASE.get(concern.name, {}) if silent(concern, options) else {}


def nothing_wanted(concern: Concern) -> Request:
    """The request that changes nothing, and says which options there are."""
    knobs = managed(concern)
    sentence = (
        f"no option was given, and the workload base has nothing for {concern.name}: nothing is changed, and what an"
        f" earlier run set stays until state: restored; its options are {', '.join(knobs)}, the role's variables"
        f" begin with {concern.name}_, such as {concern.name}_{knobs[0]}"
    )
    return leave(concern.name, sentence)


def leave(name: str, reason: str) -> Leave:
    """The request that leaves a concern as it is, and says why."""
    return Leave(name, (Finding(name, "state", "advice", reason, reference="docs/unit.md"),))


def wanted_or_base(concern: Concern, options: Mapping[str, Any]) -> Request:
    """The request for these options; when they manage nothing, for those of `base`, and without any for nothing."""
    below = of_base(concern, options)
    if silent(concern, {**options, **below}):
        return nothing_wanted(concern)
    return Tune(concern.name, concern, Wanted({**options, **below}, dict.fromkeys(below, "workload")))
