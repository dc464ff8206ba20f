# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several plans of a concern joined. Pure. PRIVATE to the collection."""

from __future__ import annotations

from .._plan import Plan


def joined(*plans: Plan) -> Plan:
    """The plan with the actions and findings of all, in the order of the plans."""
    return Plan(
        tuple(action for plan in plans for action in plan.actions),
        tuple(finding for plan in plans for finding in plan.findings),
        any(plan.replan for plan in plans),
        {line: value for plan in plans for line, value in plan.at_boot.items()},
        {place: reason for plan in plans for place, reason in plan.remember.items()},
    )
