# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random lives of instances: runs that fail or are killed at any call, old answers, slow stops, a person who stops.

An instance that ran never stays stopped without a run that says so, and the last run has it running. What a person
stopped is started only by a run that says so, and only if a run was about to stop it in the same minutes.

`make test-all` has 400 lives, and `make test` a tenth of them. More, or those of another seed:

    NEARMETAL_LIVES=5000 NEARMETAL_SEED=7 .venv/bin/python -m pytest tests/unit/cloud/stops/test_lives.py
"""

from __future__ import annotations

import os
import random
import time
from datetime import datetime, timedelta
from typing import Any, Dict, List, Optional, Set

import boto3
import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.enhanced_networking import answer
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stops.stop_mark import TAG
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

from tests.support.aws import fake_aws
from tests.support.aws.fake_aws import Fault, Killed
from tests.support.aws.fake_session import FakeSession
from tests.support.aws.fake_slow_aws import SlowAws
from tests.support.sequences.tenth import tenth

LIVES = int(os.environ.get("NEARMETAL_LIVES", "400"))
SEED = int(os.environ.get("NEARMETAL_SEED", "0"))
PARTS = 8  # so that a failure names its part, and parts can run beside one another
# In 20 s AWS has always shown everything in what users report; nobody promises it.
STALE = (0.0, 5.0, 20.0)
CALLER = ("111111111111", "eu-west-1")
OPERATIONS = ("CreateTags", "StopInstances", "ModifyInstanceAttribute", "StartInstances", "DeleteTags")
ASKED = tuple(f"{operation} DryRun" for operation in OPERATIONS[1:])
ERRORS = (
    "RequestLimitExceeded",
    "InternalError",
    "Unavailable",
    "UnauthorizedOperation",
    "RequestExpired",
    "InsufficientInstanceCapacity",
)
# A run that gave up says so; what it wrote may be looked at for so long by those who come later.
QUIET = 600
TYPES = [kind for kind in fake_aws.all_types() if kind["InstanceType"] == "r4.large"]


class Life:
    """One to three instances that ran before, and what happens to them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self.seed = seed
        self.draw = random.Random(seed)
        self.aws = SlowAws(self.draw, self.draw.choice(STALE))
        self.seconds = 0.0
        self.aws.elapsed = lambda: self.seconds
        monkeypatch.setattr(time, "sleep", self.wait)
        monkeypatch.setattr(time, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(fake_aws, "all_types", lambda: TYPES)
        monkeypatch.setattr(boto3, "Session", lambda **_options: FakeSession(self.aws))
        self.ids = [
            self.aws.add(number, "r4.large", EnaSupport=False, Placement={"AvailabilityZone": f"eu-west-1{zone}"})
            for number, zone in list(enumerate("abc", 1))[: self.draw.choice((1, 1, 2, 3))]
        ]
        self.story: List[str] = []
        self.by_a_person: Dict[str, datetime] = {}  # id → when
        self.asked: Dict[str, List[datetime]] = {instance_id: [] for instance_id in self.ids}

    def wait(self, seconds: float) -> None:
        """Let time pass: what is due happens at its own time."""
        end = self.aws.begin + timedelta(seconds=self.seconds + seconds)
        while self.aws.due and self.aws.next_change() <= end:
            self.seconds = max(self.seconds, (self.aws.next_change() - self.aws.begin).total_seconds())
            self.aws.advance()
        self.seconds = (end - self.aws.begin).total_seconds()
        self.aws.keep()

    def faults(self) -> List[Fault]:
        """A few faults, most often a kill."""
        chosen = []
        for _fault in range(self.draw.choice((0, 1, 1, 2, 3))):
            operation = self.draw.choice((*OPERATIONS, *OPERATIONS, *ASKED, "DescribeInstances"))
            kinds = ["killed", "killed", "lost", *ERRORS]
            kinds += {"StartInstances": ["back", "partial"], "StopInstances": ["partial"]}.get(operation, [])
            kind = self.draw.choice(kinds)
            first = self.draw.randint(0, 12 if operation == "DescribeInstances" else 2)
            times = self.draw.choice((1, 1, 3, 10, 10**6))
            applied = kind in ERRORS[:3] and self.draw.random() < 0.4 and "DryRun" not in operation
            chosen.append(Fault(operation, kind, range(first, first + times), applied=applied))
        return chosen

    def run(self) -> Any:
        """The module's result; a text if it could look nothing up; None if the process was killed."""
        self.aws.calls.clear()
        self.aws.requests.clear()
        hosts = [
            {"instance_id": instance_id, "drivers_in_use": ["vif"], "drivers_available": ["ena"]}
            for instance_id in self.ids
        ]
        options = {
            "instance_ids": self.ids,
            "ena": "enabled",
            "allow_stop": True,
            "stop_at_once": self.draw.choice((1, 2, 3)),
            "stop_timeout": self.draw.choice((60, 120, 300)),
            "hosts": hosts,
            "unconfirmed": [],
            "strict": False,
            "timeout": 60,
        }
        try:
            result: Any = answer(options)
        except Killed:
            result = None
        except NearmetalError as error:
            result = str(error)
        finally:
            self.aws.killed = False
        self.story.append(f"{self.seconds:.0f} s: a run ended: {_short(result)}")
        self._no_tag_was_lost(result)
        return result

    def _no_tag_was_lost(self, result: Any) -> None:
        """A tag goes only from an instance that runs, or from one of which the run says that somebody stopped it."""
        for instance_id in self.stopped():
            removed = any(
                operation == "DeleteTags" and instance_id in request["Resources"] and not request.get("DryRun")
                for operation, request in self.aws.requests
            )
            if removed and not self.tagged(instance_id) and instance_id not in self.by_a_person:
                said = result["findings"] if isinstance(result, dict) else []
                assert any("somebody has stopped" in f["reason"] for f in said), self.tell(instance_id, "lost its tag")

    def stopped_by_the_run(self, instance_id: str) -> bool:
        """Whether the last run asked for its stop, or was last shown it stopped: it can't know more."""
        asked = any(
            operation == "StopInstances" and instance_id in request["InstanceIds"] and not request.get("DryRun")
            for operation, request in self.aws.requests
        )
        return asked or self.aws.shown.get(instance_id) in ("stopping", "stopped")

    def person_stops(self) -> None:
        """Somebody wants an instance stopped."""
        instance_id = self.draw.choice(self.ids)
        if self.state(instance_id) == "running":
            self.aws.StopInstances({"InstanceIds": [instance_id]}, CALLER)
            self.by_a_person[instance_id] = self.aws.now()
            self.story.append(f"{self.seconds:.0f} s: a person stopped {instance_id}")

    def state(self, instance_id: str) -> str:
        """The true state."""
        self.aws.advance()
        return str(self.aws.instances[instance_id]["State"]["Name"])

    def stopped(self) -> Set[str]:
        """The instances that are stopped, or will be."""
        return {instance_id for instance_id in self.ids if self.state(instance_id) in ("stopping", "stopped")}

    def tagged(self, instance_id: str) -> bool:
        """Whether it has our tag."""
        return any(tag["Key"] == TAG for tag in self.aws.instances[instance_id].get("Tags", ()))

    def tell(self, *what: Any) -> str:
        """The life in words."""
        return "\n".join([f"life {self.seed}", *map(str, what), f"answers up to {self.aws.stale} s old", *self.story])


def _short(result: Any) -> str:
    if not isinstance(result, dict):
        return "killed" if result is None else str(result)
    power = [(f["where"], f["status"], f["reason"]) for f in result["findings"] if f["knob"] == "power"]
    return f"{result['msg']} | failed {result['failed_instances']} | left {result['left_stopped']} | {power}"


def live(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """One life, judged after each run and at its end."""
    life = Life(monkeypatch, seed)
    for _round in range(life.draw.choice((1, 2, 2, 3))):
        life.aws.faults = life.faults()
        life.story.append(f"{life.seconds:.0f} s: faults {[(f.operation, f.kind, f.calls) for f in life.aws.faults]}")
        if life.draw.random() < 0.1:
            life.person_stops()
        started_before = set(life.by_a_person)
        result = life.run()
        _said(life, result, started_before)
        life.wait(life.draw.choice((0, 0, 1, 5, 15, 60, QUIET)))
    life.aws.faults = []
    last: Optional[Dict[str, Any]] = None
    for _try in range(5):
        life.wait(QUIET)
        started_before = set(life.by_a_person)
        last = life.run()
        _said(life, last, started_before)
        if isinstance(last, dict) and not last.get("failed"):
            break
    assert isinstance(last, dict), life.tell("no result")
    assert not last.get("failed"), life.tell("the runs never succeed")
    life.wait(QUIET)
    assert life.stopped() <= set(life.by_a_person), life.tell("stopped at the end")
    assert not any(life.tagged(instance_id) for instance_id in life.ids), life.tell("tagged at the end")
    unchanged = [i for i in life.ids if not life.aws.instances[i]["EnaSupport"] and i not in life.by_a_person]
    assert not unchanged, life.tell("unchanged at the end", unchanged)


def _said(life: Life, result: Any, by_a_person: Set[str]) -> None:
    """What a run that had its say must have said."""
    if result is None:  # killed, and so silent about what it started
        life.by_a_person = {i: when for i, when in life.by_a_person.items() if i in life.stopped()}
    if not isinstance(result, dict):
        return
    late = {instance_id for instance_id, why in result["failed_instances"].items() if "if it stops later" in why}
    left = set(result["left_stopped"])
    known = {instance_id for instance_id in life.ids if life.stopped_by_the_run(instance_id)}
    assert known & life.stopped() - by_a_person <= left | late, life.tell("stopped without a word")
    assert not left or result.get("failed"), life.tell("left stopped, and no failure")
    for instance_id in by_a_person - life.stopped():
        spoke = [f["reason"] for f in result["findings"] if (f["knob"], f["where"]) == ("power", instance_id)]
        assert any("somebody" in reason for reason in spoke), life.tell(f"{instance_id} was started without a word")
        del life.by_a_person[instance_id]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_life_leaves_an_instance_stopped_without_a_word(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    for number in tenth(range(LIVES))[part::PARTS]:
        with monkeypatch.context() as patch:
            live(patch, SEED * 10**6 + number)
