# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for an instance that an earlier run stopped and did not start again. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ..._plan import Action, Finding, Plan
from ..instance_facts import InstanceFacts
from .stop_mark import AT_WORK, FOREIGN, LEFT, OUR_STOP, OVER, TAG, UNCLEAR, free_at

KNOB = "power"
STATE = "state"  # what an action changes that starts an instance
START_TAG = "start_tag"  # … that removes a tag with nothing more to remember


def plan(concern: str, instance: InstanceFacts, meaning: str, wanted: Mapping[str, Any]) -> Plan:
    """Start what a run left stopped, and remove a tag that is no longer needed; both only with allow_stop."""
    if instance.state in ("terminated", "shutting-down"):
        return Plan()
    if meaning == LEFT:
        if instance.power.failed_start:
            reason = f"an earlier run stopped it for a change, and AWS could not start it: {instance.power.reason}"
        else:
            reason = (
                f"it was stopped at {instance.power.stopped}, by an earlier run that had a change to make or by"
                " somebody at that time, and was not started again"
            )
        return _wanted(concern, instance, wanted, reason, STATE)
    if meaning == OVER:
        since = (
            "somebody has stopped the instance since, so it stays stopped"
            if instance.state != "running"
            else "the instance runs"
        )
        return _wanted(concern, instance, wanted, f"{since}; an earlier run's tag {TAG} is no longer needed", START_TAG)
    if meaning == UNCLEAR:
        unknown = instance.power.reason not in (OUR_STOP, None, "")
        gap = f"gives {instance.power.reason} as the reason" if unknown else "does not say who stopped it or when"
        reason = f"stopped, with an earlier run's tag {TAG}, and AWS {gap}: start it, or delete the tag"
        return Plan(findings=(_say(concern, instance, "unknown", reason),))
    if meaning == FOREIGN:
        reason = f"its tag {TAG} has a value that this module did not write: delete the tag"
        return Plan(findings=(_say(concern, instance, "unknown", reason),))
    return Plan()


def refusal(instance: InstanceFacts, meaning: str) -> Optional[str]:
    """Why the tag forbids to stop a running instance; None when it doesn't."""
    if meaning == FOREIGN:
        return (
            f"its tag {TAG} has a value that this module did not write, and a stop would overwrite it: delete the tag"
        )
    if meaning == AT_WORK:
        return (
            f"a run that wrote the tag {TAG} may be about to stop it: wait until {free_at(instance.power.tag or '')}, "
            "or delete the tag if that run has ended"
        )
    return None


def _wanted(concern: str, instance: InstanceFacts, wanted: Mapping[str, Any], reason: str, what: str) -> Plan:
    unconfirmed = instance.unconfirmed(wanted)
    if unconfirmed:
        return Plan(findings=(_say(concern, instance, "refused", f"{reason}; {unconfirmed}"),))
    if not wanted.get("allow_stop"):
        status, consequence = (
            ("refused", f"to start it, or delete its tag {TAG}") if what == STATE else ("advice", "to remove the tag")
        )
        return Plan(findings=(_say(concern, instance, status, f"{reason}: set allow_stop: true {consequence}"),))
    before, after = ("stopped", "running") if what == STATE else (instance.power.tag, None)
    action = Action(concern, KNOB, what, before, after, reason, "", where=instance.instance_id, wanted_by="auto")
    return Plan((action,), (_say(concern, instance, "would_change", reason),))


def _say(concern: str, instance: InstanceFacts, status: str, reason: str) -> Finding:
    return Finding(concern, KNOB, status, reason, now=instance.state, where=instance.instance_id)
