# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever fails while interfaces are attached or taken back, none is lost, and a second run finishes the work.

Every fault at every call, every pair of early ones, and the death of the process at every call. The state of the fake
AWS at the end counts, not the module's view.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.attach.facts import TAG
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.network_interfaces import answer

from tests.support.aws.fake_aws import FakeAws, Fault, Killed
from tests.support.aws.fake_interfaces import all_types

FOR_EVER = 10**6
OPTIONS: Dict[str, Any] = {
    "instance_ids": ["i-00000000000000001"],
    "timeout": 60,
    "count": 3,
    "allow_attach": True,
    "subnet_ids": [],
    "security_group_ids": [],
    "tags": {},
    "state": "present",
    "strict": False,
    "unconfirmed": [],
}
THROTTLED = ("RequestLimitExceeded", False)
TAKEN = ("InternalError", True)
LOST = ("lost", False)
REFUSED = ("UnauthorizedOperation", False)
KINDS = (THROTTLED, TAKEN, LOST, REFUSED)
WRITES = {
    "present": (
        "CreateNetworkInterface",
        "AttachNetworkInterface",
        "ModifyNetworkInterfaceAttribute",
        "DeleteNetworkInterface",
    ),
    "restored": ("DetachNetworkInterface", "DeleteNetworkInterface"),
}


def single(state: str) -> Iterator[Fault]:
    """Each fault of each write, at its first and at its second call, once and for ever."""
    for operation in WRITES[state]:
        for (kind, applied), first, times in itertools.product(KINDS, (0, 1), (1, FOR_EVER)):
            yield Fault(operation, kind, range(first, first + times), applied=applied)
    for operation in ("DescribeNetworkInterfaces", "DescribeInstances"):
        for first, times in itertools.product(range(1, 6), (1, FOR_EVER)):
            yield Fault(operation, "Unavailable", range(first, first + times))


def cases(state: str) -> List[Tuple[Fault, ...]]:
    """Each fault alone, and each pair of those that begin early."""
    early = [
        fault
        for fault in single(state)
        if (fault.calls.start == 0 or fault.operation == "DescribeNetworkInterfaces") and fault.calls.start <= 3
    ]
    return [*((fault,) for fault in single(state)), *itertools.combinations(early, 2)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One type, so that thousands of runs don't read them all."""
    types = [kind for kind in all_types() if kind["InstanceType"] == "m5.4xlarge"]
    monkeypatch.setattr("tests.support.aws.fake_aws.all_types", lambda: types)
    monkeypatch.setattr("tests.support.aws.fake_interfaces.all_types", lambda: types)


def world(state: str, aws: FakeAws) -> None:
    """One instance, which for state restored has our interfaces."""
    instance = aws.add(1, "m5.4xlarge")
    aws.instances[instance]["NetworkInterfaces"][0]["Attachment"]["DeleteOnTermination"] = True
    if state == "restored":
        answer(OPTIONS)
        aws.calls.clear()


def clean(aws: FakeAws) -> None:
    """From now on nothing fails."""
    aws.faults.clear()
    aws.killed = False


def judge(state: str, aws: FakeAws, result: Dict[str, Any], story: object) -> None:
    """What AWS has after a run that met faults: nothing without our tag, nothing that isn't reported."""
    for raw in aws.interfaces.values():
        assert raw["TagSet"] == [{"Key": TAG, "Value": "i-00000000000000001"}], story
    attached = [raw for raw in aws.interfaces.values() if raw.get("Attachment")]
    if result.get("failed"):
        assert result["failed_instances"], story
    elif not result["failed_instances"]:
        assert len(attached) == (2 if state == "present" else 0), story
        assert len(aws.interfaces) == len(attached), story
    assert len(aws.interfaces) <= 2, story


def finished(state: str, aws: FakeAws, story: object) -> None:
    """A run without faults ends as if there never were any, and the next changes nothing."""
    clean(aws)
    for _run in range(2):
        result = answer({**OPTIONS, "state": state})
        assert not result.get("failed"), story
    assert not result["changed"], story
    attached = [raw for raw in aws.interfaces.values() if raw.get("Attachment", {}).get("DeleteOnTermination")]
    assert len(aws.interfaces) == len(attached) == (2 if state == "present" else 0), story
    assert len(aws.instances["i-00000000000000001"]["NetworkInterfaces"]) == 1 + len(attached), story


@pytest.mark.parametrize("state", WRITES)
def test_no_fault_and_no_pair_of_faults_loses_an_interface(state: str, aws: FakeAws, small: None) -> None:
    initial = dict(vars(aws))
    for faults in cases(state):
        vars(aws).update({name: type(value)() if name in _RESET else value for name, value in initial.items()})
        aws.add_subnet("subnet-0000000a")
        world(state, aws)
        aws.faults = list(faults)
        result = answer({**OPTIONS, "state": state})
        judge(state, aws, result, faults)
        finished(state, aws, faults)


_RESET = ("instances", "owners", "interfaces", "subnets", "_tokens", "calls", "requests", "faults", "held", "news")


@pytest.mark.parametrize("state", WRITES)
def test_a_run_that_dies_at_any_call_is_finished_by_the_next(state: str, aws: FakeAws, small: None) -> None:
    deaths = 0
    initial = dict(vars(aws))
    for operation in (*WRITES[state], "DescribeNetworkInterfaces"):
        for number, applied in itertools.product(range(12), (False, True)):
            vars(aws).update({name: type(value)() if name in _RESET else value for name, value in initial.items()})
            aws.killed = False
            aws.add_subnet("subnet-0000000a")
            world(state, aws)
            aws.faults = [Fault(operation, "killed", range(number, number + 1), applied=applied)]
            try:
                answer({**OPTIONS, "state": state})
            except Killed:
                deaths += 1
            finished(state, aws, (operation, number, applied))
    assert deaths >= 15
