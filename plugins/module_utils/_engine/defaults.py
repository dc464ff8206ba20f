# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a concern to which a run gives none: those of the workload `base`, or none. Pure. PRIVATE."""

from __future__ import annotations

from typing import Any, Mapping

from .._plan import Finding, Wanted
from .._planning.concern import Concern
from .._planning.waivers import managed
from .._words import LONGEST_VALUE, choices
from .._workloads import base
from .._workloads.workload import values
from .planning import Leave, Request, Tune

_BASE = values(base.OWN)


def manages_nothing(concern: Concern, options: Mapping[str, Any]) -> bool:
    """Whether the options manage no knob of a concern that has knobs."""
    knobs = managed(concern)
    return bool(knobs) and not any(options.get(knob) is not None for knob in knobs)


def base_options(concern: Concern, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of `base` for a concern whose own options manage nothing."""
    return _BASE.get(concern.name, {}) if manages_nothing(concern, options) else {}


def nothing_wanted(concern: Concern) -> Request:
    """The request that changes nothing and names the concern's options, or their first and where all are."""
    knobs = managed(concern)
    sentence = (
        f"no option was given, and the workload base has nothing for {concern.name}: nothing is changed, and what an"
        f" earlier run set stays until state: restored; roles/{concern.name}/README.md describes its options, in the"
        f" role with {concern.name}_ before them: "
    )
    return leave(concern.name, sentence + choices(knobs, limit=LONGEST_VALUE - len(sentence)))


def leave(name: str, reason: str) -> Leave:
    """The request that leaves a concern as it is, for this reason."""
    return Leave(name, (Finding(name, "state", "advice", reason, reference="docs/unit.md"),))


def wanted_or_base(concern: Concern, options: Mapping[str, Any]) -> Request:
    """The request for these options, or for those of `base` when they manage nothing and `base` has some."""
    of_base = base_options(concern, options)
    if manages_nothing(concern, {**options, **of_base}):
        return nothing_wanted(concern)
    return Tune(concern.name, concern, Wanted({**options, **of_base}, dict.fromkeys(of_base, "workload")))
