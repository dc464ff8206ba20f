# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tag that remembers that an instance ran before a run of nearmetal stopped it. Pure. PRIVATE to the collection.

It is written before the stop and removed after the start, so it is only found when a run ended in between.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Mapping, Optional

# docs/iam allows to write and to delete this key and no other.
TAG = "nearmetal:start-again"

# What a tag means for its instance.
NONE = "none"  # no tag
FOREIGN = "foreign"  # this module didn't write its content
AT_WORK = "at_work"  # a run may be about to stop it
LEFT = "left"  # a run stopped it and did not get it started
OVER = "over"  # it was started since, or somebody else stopped it
UNCLEAR = "unclear"  # AWS does not say who stopped it, or when
LEFT_STATES = (LEFT, UNCLEAR)

# A run asks for the stop so long after it began to write the tag, or not at all; boto3 repeats the call for 2 minutes.
LATEST_STOP_SECONDS = 120
_WINDOW = timedelta(seconds=300)
_CLOCKS = timedelta(seconds=60)  # AWS's own clocks differ, and its times are whole seconds
_FORM = "%Y-%m-%dT%H:%M:%SZ"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_VALUE = re.compile(rf"1 stop=({_TIME}) launch=({_TIME}) run=([0-9a-f]{{16}})", re.ASCII)
_TRANSITION = re.compile(r"User initiated \((\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) (?:GMT|UTC)\)", re.ASCII)
OUR_STOP = "Client.UserInitiatedShutdown"
HIBERNATED = "Client.UserInitiatedHibernate"
# Somebody wanted the instance stopped, or AWS did.
_OTHER_STOPS = (
    "Client.InstanceInitiatedShutdown",
    HIBERNATED,
    "Server.ScheduledStop",
    "Server.SpotInstanceShutdown",
)
# The instance was started, and AWS could not: nobody wants it stopped.
_FAILED_STARTS = (
    "Client.InternalError",
    "Client.InvalidKMSKey.",
    "Client.InvalidSnapshot.",
    "Client.VolumeLimitExceeded",
    "Server.InsufficientInstanceCapacity",
    "Server.InternalError",
)
# Of a request that the module can have made; arithmetic with other years can overflow.
_YEARS = range(2025, 3000)


@dataclass(frozen=True)
class StopMark:
    """What the tag says."""

    requested_at: datetime  # when the run was about to ask for the stop, by AWS's clock
    launched: str  # since when the instance ran then: another start ends what the tag stands for
    run: str  # 16 random hexadecimal digits: no run removes another's tag

    def value(self) -> str:
        """The tag's value."""
        return (
            f"1 stop={self.requested_at.astimezone(timezone.utc).strftime(_FORM)} launch={self.launched} run={self.run}"
        )


@dataclass(frozen=True)
class PowerFacts:
    """Since when an instance runs, or who stopped it, as DescribeInstances says it."""

    state: Optional[str]
    launched: Optional[str]  # the last start
    stopped: Optional[str]  # the last stop
    reason: Optional[str]  # the code of the last change of the state
    tag: Optional[str]  # the value of TAG

    @property
    def failed_start(self) -> bool:
        """Whether it is stopped because AWS could not start it."""
        return (self.reason or "").startswith(_FAILED_STARTS)


def power_facts(answer: Mapping[str, Any]) -> PowerFacts:
    """The power facts in one instance of DescribeInstances."""
    launched = answer.get("LaunchTime")
    transition = _TRANSITION.fullmatch(str(answer.get("StateTransitionReason", "")))
    return PowerFacts(
        state=answer.get("State", {}).get("Name"),
        launched=launched.astimezone(timezone.utc).strftime(_FORM) if launched else None,
        stopped="{}T{}Z".format(*transition.groups()) if transition else None,
        reason=answer.get("StateReason", {}).get("Code"),
        tag=next((tag.get("Value", "") for tag in answer.get("Tags", ()) if tag.get("Key") == TAG), None),
    )


def read(value: str) -> Optional[StopMark]:
    """The content of a tag; None when this module did not write it."""
    match = _VALUE.fullmatch(value)
    requested, launched = (_time(match[1]), _time(match[2])) if match else (None, None)
    if match is None or requested is None or launched is None or requested.year not in _YEARS:
        return None
    return StopMark(requested, match[2], match[3])


def judge(facts: PowerFacts, now: datetime) -> str:
    """What the tag means. LEFT only when nobody but a run of nearmetal can have wanted the instance stopped."""
    if facts.tag is None:
        return NONE
    mark = read(facts.tag)
    if mark is None:
        return FOREIGN
    if facts.state not in ("stopped", "stopping"):
        young = facts.launched == mark.launched and _near(mark, now)
        return AT_WORK if young or facts.state == "pending" else OVER
    if facts.failed_start:
        return LEFT
    if facts.reason not in (OUR_STOP, *_OTHER_STOPS, None, ""):
        return UNCLEAR
    if facts.launched != mark.launched or facts.reason in _OTHER_STOPS:
        return OVER
    stopped = _time(facts.stopped) if facts.stopped else None
    if not facts.reason or stopped is None:
        return UNCLEAR
    return LEFT if _near(mark, stopped) else OVER


def free_at(value: str) -> str:
    """From when on no run can be at work any more that wrote this value."""
    mark = read(value)
    return (mark.requested_at + _WINDOW).strftime(_FORM) if mark else ""


def _near(mark: StopMark, moment: datetime) -> bool:
    return mark.requested_at - _CLOCKS <= moment <= mark.requested_at + _WINDOW


def _time(text: str) -> Optional[datetime]:
    try:
        return datetime.strptime(text, _FORM).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
