# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls that stop, change, start and tag instances, and what became of these. Writes. PRIVATE to the collection."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from ..accounts import error_code, title
from ..api import FILTER_VALUES, Calls, Raw, attempts, pages, parts
from .stop_mark import LATEST_STOP_SECONDS, TAG, PowerFacts, StopMark, power_facts

STATE_CODES = ("IncorrectInstanceState", "IncorrectState")
# AWS would have done it, or only the state speaks against it: a running instance is to be started, or modified.
_PERMITTED = ("DryRunOperation", *STATE_CODES)
_UNWRITTEN = f"the tag {TAG} could not be written"


class Power(Calls):
    def look(self, ids: List[str]) -> Dict[str, Raw]:
        """The instances now, by id. An instance without an answer is missing; the next call may find it."""
        answers: Dict[str, Raw] = {}
        for part in parts(ids, FILTER_VALUES):
            request = {"Filters": [{"Name": "instance-id", "Values": part}], "MaxResults": 1000}
            reservations, _error = pages(self.target, "ec2", "describe_instances", "Reservations", request)
            instances = [answer for reservation in reservations for answer in reservation.get("Instances", ())]
            answers.update((answer["InstanceId"], answer) for answer in instances if answer.get("InstanceId"))
        return answers

    def forbidden(self, seconds: float, operation: str, **request: Any) -> str:
        """Why AWS would not carry out a call; empty when it would."""
        _answer, error = self.repeat(seconds, operation, DryRun=True, **request)
        if error is None:
            return f"{self.target.name}: {title(operation)}: this endpoint does not know DryRun"
        return "" if error_code(error) in _PERMITTED else self.explain(operation, error)


def state_of(answer: Optional[Raw]) -> str:
    """The state in an answer; empty when there is no answer."""
    return str(answer.get("State", {}).get("Name", "")) if answer else ""


@dataclass
class Outcome:
    """What became of the instances. One that was changed and has a failure too is in both."""

    done: List[str] = field(default_factory=list)
    failed: Dict[str, str] = field(default_factory=dict)
    left_stopped: List[str] = field(default_factory=list)  # ran before, and are not known to run now

    def fail(self, ids: Sequence[str], reason: str) -> None:
        """Note what else went wrong for these instances."""
        for instance_id in ids:
            self.failed[instance_id] = f"{self.failed[instance_id]}; {reason}" if instance_id in self.failed else reason

    def found_stopped(self, instance_id: str, state: str) -> None:
        """An instance that was to be stopped already is: by a run whose stop AWS hadn't shown, or by a person."""
        self.left_stopped.append(instance_id)
        reason = (
            f"it was running at the beginning of this run and is {state} now: an earlier run or somebody stopped it;"
            f" to keep it stopped, delete its tag {TAG}"
        )
        self.fail([instance_id], reason)


class Tags:
    """nearmetal's tags on the instances of a batch, by id: those of an earlier run, then those of this one."""

    def __init__(self, power: Power, brief: int, outcome: Outcome, earlier: Mapping[str, str]) -> None:
        self.power, self.brief, self.outcome = power, brief, outcome
        self.values = dict(earlier)

    def remember(self, launched: Mapping[str, Optional[str]]) -> bool:
        """Write the tags and see them; without its tag no instance is stopped. `launched`: since when each runs."""
        written: Dict[str, str] = {}
        begun = self.power.target.now()
        reason = ""
        for instance_id, since in launched.items():
            if since is None:
                reason = f"{_UNWRITTEN}: AWS does not say when the instance was started"
                break
            value = StopMark(begun, since, secrets.token_hex(8)).value()
            tag = {"Key": TAG, "Value": value}
            _answer, error = self.power.repeat(self.brief, "create_tags", Resources=[instance_id], Tags=[tag])
            if error is None or self.power.target.boto.passes(error):
                written[instance_id] = value  # perhaps, after an error
            if error is not None:
                reason = f"{_UNWRITTEN}: {self.power.explain('create_tags', error)}"
                break
        facts = self._with_tag(written)
        if not reason and len(facts) < len(written):
            reason = f"{_UNWRITTEN}: AWS did not show it within {self.brief} s"
        for instance_id, power in facts.items():
            if not reason and power.state != "running":
                reason = f"{instance_id} is {power.state} now: run again"
            if not reason and power.launched != launched[instance_id]:
                reason = f"{instance_id} was stopped and started meanwhile: run again"
        # A clock that was set in between, to whatever time, has written a time that the next run wouldn't believe.
        if not reason and abs(self.power.target.now() - begun) > timedelta(seconds=LATEST_STOP_SECONDS):
            reason = f"{_UNWRITTEN} within {LATEST_STOP_SECONDS} s: lower stop_at_once, or run again later"
        self.values.update(written)
        if reason:
            self._give_up(list(launched), facts, reason)
        return not reason

    def _with_tag(self, written: Mapping[str, str]) -> Dict[str, PowerFacts]:
        """Those instances on which AWS shows the tag. What it shows with a tag is no older than that tag."""
        tagged: Dict[str, PowerFacts] = {}
        for _attempt in attempts(self.brief):
            if len(tagged) == len(written):
                break
            for instance_id, answer in self.power.look(list(written)).items():
                facts = power_facts(answer)
                if facts.tag == written[instance_id]:
                    tagged[instance_id] = facts
        return tagged

    def _give_up(self, ids: List[str], facts: Mapping[str, PowerFacts], reason: str) -> None:
        """Stop nothing. A tag goes only where it was seen on a running instance.

        Elsewhere it may have overwritten the tag of a run that was killed after its stop, and the next run goes by it.
        """
        stopped = [instance_id for instance_id in facts if facts[instance_id].state in ("stopping", "stopped")]
        for instance_id in stopped:
            self.outcome.found_stopped(instance_id, str(facts[instance_id].state))
        self.outcome.fail(
            [instance_id for instance_id in ids if instance_id not in stopped],
            f"nothing was stopped, because {reason}",
        )
        self.remove([instance_id for instance_id in facts if facts[instance_id].state == "running"])

    def restore(self, answers: Mapping[str, Raw]) -> None:
        """Write a tag again that another run overwrote and removed: the next run goes by it."""
        for instance_id, answer in answers.items():
            if instance_id in self.values and power_facts(answer).tag is None:
                tag = {"Key": TAG, "Value": self.values[instance_id]}
                self.power.call("create_tags", Resources=[instance_id], Tags=[tag])

    def remove(self, ids: Iterable[str]) -> None:
        """Remove these tags, and no other run's."""
        for instance_id in ids:
            tag = {"Key": TAG, "Value": self.values[instance_id]}
            _answer, error = self.power.repeat(self.brief, "delete_tags", Resources=[instance_id], Tags=[tag])
            if error is None:
                del self.values[instance_id]
            else:
                reason = self.power.explain("delete_tags", error)
                self.outcome.fail([instance_id], f"its tag {TAG} remains, and the next run removes it: {reason}")
