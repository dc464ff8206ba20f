# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fake AWS as it is on a bad day: answers that are old, stops and starts that take a while.

AWS calls its answers eventually consistent: two looks in a row may come from two servers, the second of which knows
less than the first.
"""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from random import Random
from typing import Dict, List, Tuple

from tests.support.aws.fake_aws import AwsError, FakeAws
from tests.support.aws.fake_services import Raw

STOPS_TAKE, STARTS_TAKE = (1, 5, 30, 45), (1, 5, 20)
# A start that fails is seen as pending first.
_FAILS_AFTER = 5
_KEPT = timedelta(seconds=60)


class SlowAws(FakeAws):
    """Half of its answers about instances are up to `stale` seconds old."""

    def __init__(self, draw: Random, stale: float) -> None:
        super().__init__()
        self.draw, self.stale = draw, stale
        self.begin = super().now()
        self.shown: Dict[str, str] = {}  # the states in the last answer
        self._past: List[Tuple[datetime, Dict[str, Raw]]] = []

    def now(self) -> datetime:
        """Only the test's clock moves this one: a busy machine changes no life."""
        return self.begin + timedelta(seconds=self.elapsed())

    def keep(self) -> None:
        """Remember the instances as they are at this moment."""
        self._past.append((self.now(), copy.deepcopy(self.instances)))
        oldest = self.now() - _KEPT
        while len(self._past) > 1 and self._past[1][0] < oldest:
            del self._past[0]

    def next_change(self) -> datetime:
        """When the next stop or start takes effect; now, if none is under way."""
        return min((when for when, _instance_id, _event in self.due), default=self.now())

    def advance(self) -> None:
        """Carry out what is due, in the order of its times."""
        for change in sorted(change for change in self.due if change[0] <= self.now()):
            if change not in self.due:
                continue
            when, instance_id, event = change
            raw = self.instances[instance_id]
            since = {name: raw.get(name) for name in ("StateReason", "StateTransitionReason", "LaunchTime")}
            expected = {"stopped": "stopping", "running": "pending"}.get(event)
            if expected == raw["State"]["Name"]:
                self.due.remove(change)
                self._enter(instance_id, (80, event) if event == "stopped" else (16, event), when)
                # AWS gives the times of the requests.
                raw.update({name: value for name, value in since.items() if value is not None})
            elif expected is not None:
                self.due.remove(change)
            else:
                others, self.due = [other for other in self.due if other != change], [change]
                super().advance()
                self.due = others
            self.keep()

    def DescribeInstances(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        """The instances now, or as they were."""
        self.keep()
        seen = self.instances
        if self.stale and self.draw.random() < 0.5:
            moment = self.now() - timedelta(seconds=self.draw.random() * self.stale)
            seen = next((past for when, past in reversed(self._past) if when <= moment), self._past[0][1])
        now, self.instances = self.instances, seen
        try:
            answer = super().DescribeInstances(request, caller)
        finally:
            self.instances = now
        rows = [raw for reservation in answer["Reservations"] for raw in reservation["Instances"]]
        self.shown.update((raw["InstanceId"], raw["State"]["Name"]) for raw in rows)
        return answer

    def CreateTags(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        """Tag, and remember when."""
        answer = super().CreateTags(request, caller)
        self.keep()
        return answer

    def DeleteTags(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        """Remove tags, and remember when."""
        answer = super().DeleteTags(request, caller)
        self.keep()
        return answer

    def _move(
        self, request: Raw, caller: Tuple[str, str], must: str, to: Tuple[int, str], interim: Tuple[int, str]
    ) -> List[Raw]:
        chosen = self._existing(request["InstanceIds"], caller)
        for raw in chosen:
            if raw["State"]["Name"] not in (must, to[1], interim[1]):
                raise AwsError("IncorrectInstanceState", f"{raw['InstanceId']} is {raw['State']['Name']}")
        for raw in chosen:
            if raw["State"]["Name"] == must:
                self._enter(raw["InstanceId"], interim, self.now())
                seconds = self.draw.choice(STOPS_TAKE if must == "running" else STARTS_TAKE)
                self.due.append((self.now() + timedelta(seconds=seconds), raw["InstanceId"], to[1]))
        self.keep()
        return []

    def _delay(self, instance_id: str, kind: str, before: Dict[str, Raw]) -> None:
        """Of the kinds of delay only the start that AWS gives up: the others are as slow as this AWS itself."""
        if kind == "back" and self.instances[instance_id]["State"]["Name"] == "pending":
            self.due = [change for change in self.due if change[1] != instance_id]
            self.due.append((self.now() + timedelta(seconds=_FAILS_AFTER), instance_id, "failed start"))
