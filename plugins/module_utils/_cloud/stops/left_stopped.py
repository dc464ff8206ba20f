# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for an instance that an earlier run stopped and did not start again. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ..._plan import Plan
from ..._planning.knob import Knob
from ..instance_facts import InstanceFacts
from .stop_mark import AT_WORK, FOREIGN, LEFT, OUR_STOP, OVER, TAG, UNCLEAR, free_at

KNOB = "power"
STATE = "state"  # what an action changes that starts an instance
START_TAG = "start_tag"  # … that removes a tag with nothing more to remember


def plan(concern: str, instance: InstanceFacts, meaning: str, wanted: Mapping[str, Any]) -> Plan:
    """Start what a run left stopped, and remove a tag that is no longer needed; both only with allow_stop."""
    if instance.state in ("terminated", "shutting-down") or meaning not in (LEFT, OVER, UNCLEAR, FOREIGN):
        return Plan()
    knob, runs = Knob(concern, KNOB, place=instance.instance_id), instance.state == "running"
    if meaning == LEFT and instance.power.failed_start:
        reason = f"an earlier run stopped it for a change, and AWS could not start it: {instance.power.reason}"
    elif meaning == LEFT:
        reason = (
            f"it was stopped at {instance.power.stopped}, by an earlier run that had a change to make or by"
            " somebody at that time, and was not started again"
        )
    elif meaning == OVER:
        since = "the instance runs" if runs else "somebody has stopped the instance since, so it stays stopped"
        reason = f"{since}; an earlier run's tag {TAG} is no longer needed"
    elif meaning == UNCLEAR:
        unknown = instance.power.reason not in (OUR_STOP, None, "")
        gap = f"gives {instance.power.reason} as the reason" if unknown else "does not say who stopped it or when"
        reason = f"stopped, with an earlier run's tag {TAG}, and AWS {gap}: start it, or delete the tag"
    else:
        reason = f"its tag {TAG} has a value that this module did not write: delete the tag"
    if meaning in (UNCLEAR, FOREIGN):
        return knob.says("unknown", reason, instance.state)
    unconfirmed = instance.unconfirmed(wanted)
    if unconfirmed:
        return knob.says("refused", f"{reason}; {unconfirmed}", instance.state)
    if not wanted.get("allow_stop") and meaning == LEFT:
        reason = f"{reason}: set allow_stop: true to start it, or delete its tag {TAG}"
        return knob.says("refused", reason, instance.state)
    if not wanted.get("allow_stop"):
        return knob.says("advice", f"{reason}: set allow_stop: true to remove the tag", instance.state)
    what, before, after = (STATE, "stopped", "running") if meaning == LEFT else (START_TAG, instance.power.tag, None)
    action = knob._replace(lever=what).action("auto", before, after, reason)
    return Plan((action,), (knob.finding("would_change", reason, instance.state),))


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
