# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever fails around a stop, no instance stays stopped unreported, and a second run repairs it.

Every fault and every pair of faults at every call, and the death of the process at every call, on two instances in two
zones. The state of the fake AWS at the end counts, not the modules' view.
"""

from __future__ import annotations

import itertools
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

import boto3
import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.enhanced_networking import answer
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stops.stop_mark import TAG
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

from tests.support.aws import fake_aws
from tests.support.aws.fake_aws import DELAYS, FakeAws, Fault, Killed
from tests.support.aws.fake_interfaces import all_types
from tests.support.aws.fake_session import FakeSession

FOR_EVER = 10**6
# (kind, whether AWS carries it out all the same), by operation.
REFUSED = ("UnauthorizedOperation", False)
THROTTLED = ("RequestLimitExceeded", False)
LOST = ("lost", False)
TAKEN = (("RequestLimitExceeded", True), ("InternalError", True))
LATE = tuple((kind, False) for kind in DELAYS)
KINDS = {
    "DescribeInstances": (("Unavailable", False),),
    "CreateTags": (THROTTLED, LOST, REFUSED),
    "StopInstances": (THROTTLED, LOST, REFUSED, *TAKEN, ("partial", False), *LATE),
    "ModifyInstanceAttribute": (THROTTLED, LOST, REFUSED),
    "StartInstances": (
        THROTTLED,
        LOST,
        REFUSED,
        TAKEN[1],
        ("InsufficientInstanceCapacity", False),
        ("back", False),
        *LATE[:2],
    ),
    "DeleteTags": (THROTTLED, LOST, REFUSED),
    "StartInstances DryRun": (THROTTLED, REFUSED),
    "ModifyInstanceAttribute DryRun": (THROTTLED, REFUSED),
    "DeleteTags DryRun": (THROTTLED, REFUSED),
    "StopInstances DryRun": (THROTTLED, REFUSED),
}
# How often an operation is called without a fault.
OFTEN = {
    "DescribeInstances": 7,
    "CreateTags": 2,
    "ModifyInstanceAttribute": 2,
    "StartInstances": 2,
    "DeleteTags": 2,
    "ModifyInstanceAttribute DryRun": 2,
}


def faults() -> Iterator[Fault]:
    """Every fault: once at each call, and at each call from the last on."""
    for operation, kinds in KINDS.items():
        often = OFTEN.get(operation, 1)
        for (kind, applied), first in itertools.product(kinds, range(often)):
            yield Fault(operation, kind, range(first, first + 1), applied=applied)
            if first == often - 1:
                yield Fault(operation, kind, range(first, FOR_EVER), applied=applied)


def kills() -> Iterator[Fault]:
    """A kill of the process at each call."""
    for operation in KINDS:
        for number in range(OFTEN.get(operation, 1)):
            yield Fault(operation, "killed", range(number, number + 1))


TYPES = [kind for kind in all_types() if kind["InstanceType"] == "r4.large"]
FAULTS = tuple(faults())


class World:
    """Two running instances without ENA, and a clock that only pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *wrong: Fault) -> None:
        self.aws = FakeAws()
        self.seconds = 0.0
        self.aws.elapsed = lambda: self.seconds
        monkeypatch.setattr(time, "sleep", self.wait)
        monkeypatch.setattr(time, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(fake_aws, "all_types", lambda: TYPES)
        monkeypatch.setattr(boto3, "Session", lambda **_options: FakeSession(self.aws))
        self.aws.faults = list(wrong)
        self.ids = [
            self.aws.add(number, "r4.large", EnaSupport=False, Placement={"AvailabilityZone": f"eu-west-1{zone}"})
            for number, zone in ((1, "a"), (2, "b"))
        ]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds

    def run(self) -> Optional[Dict[str, Any]]:
        """The module's result; None if the process was killed or could not look anything up."""
        hosts = [
            {"instance_id": instance_id, "drivers_in_use": ["vif"], "drivers_available": ["ena"]}
            for instance_id in self.ids
        ]
        options = {
            "instance_ids": self.ids,
            "ena": "enabled",
            "allow_stop": True,
            "stop_at_once": 2,
            "stop_timeout": 60,
            "hosts": hosts,
            "unconfirmed": [],
            "strict": False,
            "timeout": 60,
        }
        try:
            return answer(options)
        except (Killed, NearmetalError):
            return None
        finally:
            self.aws.killed = False

    def stopped(self) -> List[str]:
        """The instances that don't run."""
        self.aws.advance()
        return [
            instance_id for instance_id in self.ids if self.aws.instances[instance_id]["State"]["Name"] != "running"
        ]

    def tagged(self) -> List[str]:
        """The instances with our tag."""
        return [
            instance_id
            for instance_id in self.ids
            if any(tag["Key"] == TAG for tag in self.aws.instances[instance_id].get("Tags", ()))
        ]


def named_instances(result: Dict[str, Any]) -> Tuple[List[str], List[str]]:
    """The instances that are named as left stopped, and those that may stop late."""
    late = [instance_id for instance_id, reason in result["failed_instances"].items() if "if it stops later" in reason]
    return result["left_stopped"], late


def judge(monkeypatch: pytest.MonkeyPatch, *wrong: Fault) -> World:
    """Run with the faults, and again without them."""
    world = World(monkeypatch, *wrong)
    first = world.run()
    if first is not None:
        left, late = named_instances(first)
        assert set(world.stopped()) <= set(left), (wrong, "stopped without a word", first)
        assert not left or first["failed"], (wrong, first)
        world.wait(600)
        assert set(world.stopped()) <= {*left, *late}, (wrong, "stopped late without a word", first)
        unchanged = [instance_id for instance_id in world.ids if not world.aws.instances[instance_id]["EnaSupport"]]
        assert not unchanged or first["failed"], (wrong, first)
    world.wait(600)
    world.aws.faults = []
    second = world.run()
    assert second is not None
    assert not second.get("failed"), (wrong, second)
    assert world.stopped() == second["left_stopped"] == [], (wrong, second)
    assert all(world.aws.instances[instance_id]["EnaSupport"] for instance_id in world.ids), (wrong, second)
    assert world.tagged() == [], (wrong, second)
    return world


def test_without_a_fault_every_call_that_the_faults_name_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    result = world.run()
    assert result is not None
    assert result["changed"]
    assert {name: world.aws.calls[name] for name in KINDS} == {name: OFTEN.get(name, 1) for name in KINDS}


@pytest.mark.parametrize("wrong", FAULTS, ids=lambda fault: f"{fault.operation}-{fault.kind}-{fault.calls}")
def test_after_each_fault_an_instance_that_ran_runs_or_is_named(monkeypatch: pytest.MonkeyPatch, wrong: Fault) -> None:
    third = judge(monkeypatch, wrong).run()
    assert third is not None
    assert not third["changed"], third


@pytest.mark.parametrize("operation", KINDS)
def test_after_each_pair_of_faults_an_instance_that_ran_runs_or_is_named(
    monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    pairs = [pair for pair in itertools.combinations(FAULTS, 2) if pair[0].operation == operation]
    assert pairs
    for pair in pairs:
        judge(monkeypatch, *pair)


def test_the_tag_of_a_late_stop_stays_where_an_earlier_run_left_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run overwrote the first run's tag, and then removed it."""
    world = World(monkeypatch, Fault("CreateTags", "killed", range(1, 2)))
    assert world.run() is None
    assert len(world.tagged()) == 1
    world.wait(600)
    world.aws.faults = [Fault("StopInstances", "latest", range(FOR_EVER))]
    world.run()
    world.wait(600)
    world.aws.faults = []
    world.run()
    assert world.stopped() == world.tagged() == []


def test_a_run_that_is_killed_at_any_call_is_completed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = [fault for fault in FAULTS if fault.operation in ("CreateTags", "StopInstances", "StartInstances")]
    for kill in kills():
        judge(monkeypatch, kill)
        for wrong in earlier:
            judge(monkeypatch, wrong, kill)
