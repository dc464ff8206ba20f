# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next run starts instances that a run left stopped, and none that somebody else stopped."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stops import stop_mark
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stops.stop_mark import (
    TAG,
    PowerFacts,
    StopMark,
    judge,
)

from tests.support.aws.fake_aws import FakeAws, Killed
from tests.support.aws.fake_error import AwsError
from tests.unit.cloud.stops.ena_run import state, tags, turn_on

ASKED = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc)
LAUNCHED, LATER = "2026-11-01T08:00:00Z", "2026-11-22T12:01:00Z"
MARK = StopMark(ASKED, LAUNCHED, "0123456789abcdef").value()
BY_USER = "Client.UserInitiatedShutdown"
# state, launched, stopped, reason, tag, seconds since the stop's request → the meaning of the tag.
MEANINGS: Dict[str, Any] = {
    "no tag": (("stopped", LAUNCHED, LATER, BY_USER, None), 600, stop_mark.NONE),
    "our stop": (("stopped", LAUNCHED, LATER, BY_USER, MARK), 10**6, stop_mark.LEFT),
    "our stop, still stopping": (("stopping", LAUNCHED, LATER, BY_USER, MARK), 60, stop_mark.LEFT),
    "stopped by somebody next day": (
        ("stopped", LAUNCHED, "2026-11-23T12:00:00Z", BY_USER, MARK),
        10**6,
        stop_mark.OVER,
    ),
    "stopped six minutes later": (("stopped", LAUNCHED, "2026-11-22T12:06:00Z", BY_USER, MARK), 10**6, stop_mark.OVER),
    "stopped before": (("stopped", LAUNCHED, "2026-11-22T11:58:00Z", BY_USER, MARK), 10**6, stop_mark.OVER),
    "started since": (("stopped", "2026-11-22T12:00:40Z", LATER, BY_USER, MARK), 600, stop_mark.OVER),
    "shut down on the host": (
        ("stopped", LAUNCHED, None, "Client.InstanceInitiatedShutdown", MARK),
        600,
        stop_mark.OVER,
    ),
    "retired by AWS": (("stopped", LAUNCHED, None, "Server.ScheduledStop", MARK), 600, stop_mark.OVER),
    "hibernated": (("stopped", LAUNCHED, LATER, "Client.UserInitiatedHibernate", MARK), 600, stop_mark.OVER),
    "a start that failed": (("stopped", LATER, None, "Client.InternalError", MARK), 600, stop_mark.LEFT),
    "no room": (("stopped", LATER, None, "Server.InsufficientInstanceCapacity", MARK), 600, stop_mark.LEFT),
    "the key is disabled": (("stopped", LATER, None, "Client.InvalidKMSKey.InvalidState", MARK), 600, stop_mark.LEFT),
    "for a reason of tomorrow": (("stopped", LATER, None, "Client.Tomorrow", MARK), 600, stop_mark.UNCLEAR),
    "AWS does not say when": (("stopped", LAUNCHED, None, BY_USER, MARK), 600, stop_mark.UNCLEAR),
    "AWS does not say why": (("stopped", LAUNCHED, LATER, None, MARK), 600, stop_mark.UNCLEAR),
    "running, just asked": (("running", LAUNCHED, None, None, MARK), 30, stop_mark.AT_WORK),
    "running, asked long ago": (("running", LAUNCHED, None, None, MARK), 301, stop_mark.OVER),
    "running again": (("running", LATER, None, None, MARK), 90, stop_mark.OVER),
    "being started": (("pending", LATER, None, None, MARK), 600, stop_mark.AT_WORK),
}
STRANGE = [
    "",
    "yes",
    MARK + " ",
    MARK.replace("1 stop", "2 stop"),
    MARK.replace("11-22", "13-45"),
    MARK.replace("0123", "01G3"),
    MARK.replace("stop=2026", "stop=0001"),
    MARK.replace("stop=2026", "stop=9999"),
    MARK.replace("2026", "\u0662\u0660\u0662\u0666"),
    MARK + "\n",
    "x" * 100_000,
]


@pytest.mark.parametrize("case", MEANINGS.values(), ids=MEANINGS)
def test_the_meaning_of_a_tag(case: Any) -> None:
    facts, seconds, meaning = case
    assert judge(PowerFacts(*facts), ASKED + timedelta(seconds=seconds)) == meaning


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: repr(value[:50]))
def test_content_that_nearmetal_did_not_write_starts_nothing(value: str) -> None:
    assert judge(PowerFacts("stopped", LAUNCHED, LATER, BY_USER, value), ASKED) == stop_mark.FOREIGN


def test_what_is_written_is_what_is_read() -> None:
    assert stop_mark.read(MARK) == StopMark(ASKED, LAUNCHED, "0123456789abcdef")
    assert len(MARK) <= 256, "AWS's limit for a tag's value"


@pytest.mark.parametrize(
    ("reason", "when"),
    [
        ("User initiated (2026-11-22 12:01:00 GMT)", LATER),
        ("User initiated (2026-11-22 12:01:00 UTC)", LATER),
        ("User initiated", None),
        ("", None),
        ("Server.InternalError: Internal error on launch", None),
    ],
)
def test_when_it_was_stopped_is_read_from_the_reason(reason: str, when: Optional[str]) -> None:
    assert stop_mark.power_facts({"StateTransitionReason": reason}).stopped == when


def power(result: Dict[str, Any]) -> Any:
    """The finding about the tag."""
    return next(finding for finding in result["findings"] if finding["knob"] == "power")


def leave_stopped(run: Any, aws: FakeAws, instance_id: str) -> Dict[str, Any]:
    """A run whose start AWS never takes."""
    aws.fault("StartInstances", "UnauthorizedOperation")
    result = turn_on(run, instance_id)
    aws.faults.clear()
    return result


def test_an_instance_that_could_not_be_started_is_started_by_the_next_run(
    run: Any, aws: FakeAws, instance: str
) -> None:
    first = leave_stopped(run, aws, instance)
    assert first["failed"]
    assert first["left_stopped"] == [instance]
    assert "ec2:StartInstances" in first["failed_instances"][instance]
    assert state(aws, instance) == "stopped"
    checked = turn_on(run, instance, _ansible_check_mode=True)
    assert checked["left_stopped"] == [instance]
    assert checked["diff"]["after"] == {instance: {"state": "running"}}
    assert state(aws, instance) == "stopped"
    second = turn_on(run, instance)
    assert second["diff"] == checked["diff"]
    assert (state(aws, instance), tags(aws, instance), second["left_stopped"]) == ("running", [], [])
    assert not turn_on(run, instance)["changed"]


def test_a_start_that_never_succeeds_is_named_by_each_run(run: Any, aws: FakeAws, instance: str) -> None:
    aws.fault("StartInstances", "back")
    for _run in range(2):
        result = turn_on(run, instance)
        assert result["failed"]
        assert result["left_stopped"] == [instance]
    aws.faults.clear()
    assert turn_on(run, instance)["left_stopped"] == []
    assert state(aws, instance) == "running"


def test_a_full_file_system_has_its_own_message(run: Any, aws: FakeAws, instance: str) -> None:
    aws.fault("StartInstances", "InsufficientInstanceCapacity")
    result = turn_on(run, instance)
    assert "AWS has no room for this type in the zone at the moment" in result["msg"]
    assert result["left_stopped"] == [instance]


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Unavailable", "InternalError", "ServerInternal"])
def test_a_start_that_fails_is_tried_again(run: Any, aws: FakeAws, instance: str, code: str) -> None:
    aws.fault("StartInstances", code, times=3)
    result = turn_on(run, instance)
    assert result["changed"]
    assert (state(aws, instance), result["left_stopped"]) == ("running", [])


@pytest.mark.parametrize(
    ("more", "status", "reason"),
    [
        ({"allow_stop": False}, "refused", "set allow_stop: true to start it"),
        ({"unconfirmed": True}, "refused", "certain"),
    ],
)
def test_without_the_operators_option_nothing_is_started(
    run: Any, aws: FakeAws, instance: str, more: Dict[str, Any], status: str, reason: str
) -> None:
    leave_stopped(run, aws, instance)
    options = {name: [instance] if name == "unconfirmed" else value for name, value in more.items()}
    result = turn_on(run, instance, **options)
    assert power(result)["status"] == status
    assert reason in power(result)["reason"]
    assert result["left_stopped"] == [instance]
    assert state(aws, instance) == "stopped"


def test_a_later_stop_by_somebody_else_is_respected(run: Any, aws: FakeAws, instance: str, passing: Any) -> None:
    aws.fault("DeleteTags", "RequestLimitExceeded")
    first = turn_on(run, instance)
    assert first["failed"]
    assert first["changed"], "ENA is on, and only the tag is left"
    assert tags(aws, instance)
    aws.faults.clear()
    passing.wait(30)
    aws.StopInstances({"InstanceIds": [instance]}, ("111111111111", "eu-west-1"))
    second = turn_on(run, instance)
    assert "somebody has stopped the instance since, so it stays stopped" in power(second)["reason"]
    assert (state(aws, instance), tags(aws, instance), second["left_stopped"]) == ("stopped", [], [])
    assert not turn_on(run, instance)["changed"]


def test_a_run_that_died_before_its_stop_starts_nothing_that_somebody_stops(
    run: Any, aws: FakeAws, instance: str, passing: Any
) -> None:
    aws.fault("StopInstances", "killed")
    with pytest.raises(Killed):
        turn_on(run, instance)
    aws.faults.clear()
    aws.killed = False
    assert tags(aws, instance)
    at_once = turn_on(run, instance)
    refused = next(finding["reason"] for finding in at_once["findings"] if finding["knob"] == "ena")
    assert "wait until " in refused
    passing.wait(400)
    aws.StopInstances({"InstanceIds": [instance]}, ("111111111111", "eu-west-1"))
    turn_on(run, instance)
    assert (state(aws, instance), tags(aws, instance)) == ("stopped", [])


def test_a_strange_tag_is_neither_obeyed_nor_overwritten(run: Any, aws: FakeAws, instance: str) -> None:
    aws.instances[instance]["Tags"] = [{"Key": TAG, "Value": "mine"}]
    running = turn_on(run, instance)
    assert not running["changed"]
    assert "delete the tag" in next(finding["reason"] for finding in running["findings"] if finding["knob"] == "ena")
    aws.StopInstances({"InstanceIds": [instance]}, ("111111111111", "eu-west-1"))
    turn_on(run, instance)
    assert (state(aws, instance), tags(aws, instance)) == ("stopped", ["mine"])


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "TagLimitExceeded"])
def test_an_instance_that_cannot_be_tagged_is_not_stopped(run: Any, aws: FakeAws, instance: str, code: str) -> None:
    aws.fault("CreateTags", code)
    result = turn_on(run, instance)
    assert f"nothing was stopped, because the tag {TAG} could not be written" in result["msg"]
    assert ("ec2:CreateTags" in result["msg"]) == (code == "UnauthorizedOperation")
    assert aws.calls["StopInstances"] == 0
    assert result["left_stopped"] == []


def test_nothing_is_stopped_if_aws_accepts_the_tag_but_does_not_show_it(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "CreateTags", lambda _request, _caller: {})
    assert "AWS did not show it" in turn_on(run, instance)["msg"]
    assert aws.calls["StopInstances"] == 0


@pytest.mark.parametrize("operation", ["StartInstances", "ModifyInstanceAttribute", "DeleteTags", "StopInstances"])
def test_a_missing_permission_is_found_while_the_instance_runs(
    run: Any, aws: FakeAws, instance: str, operation: str
) -> None:
    aws.fault(f"{operation} DryRun", "UnauthorizedOperation")
    result = turn_on(run, instance)
    assert f"the permission is ec2:{operation}; nothing was stopped" in result["msg"]
    assert not {"StopInstances", "CreateTags"} & set(aws.calls)


def test_an_endpoint_that_carries_out_dry_runs_stops_nothing(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    respond = aws.respond
    monkeypatch.setattr(
        aws,
        "respond",
        lambda operation, request, *more: respond(operation, {**request, "DryRun": False}, *more),
    )
    assert "this endpoint does not know DryRun" in turn_on(run, instance)["msg"]
    assert state(aws, instance) == "running"


def test_no_run_removes_the_tag_of_another(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_mark = StopMark(aws.now(), "2026-01-01T00:00:00Z", "f" * 16).value()
    start = aws.StartInstances

    def meanwhile(request: Any, caller: Any) -> Any:
        aws.instances[instance]["Tags"] = [{"Key": TAG, "Value": foreign_mark}]
        return start(request, caller)

    monkeypatch.setattr(aws, "StartInstances", meanwhile)
    assert turn_on(run, instance)["changed"]
    assert tags(aws, instance) == [foreign_mark]


def test_an_instance_left_stopped_is_started_though_its_host_is_unreachable(
    run: Any, aws: FakeAws, instance: str
) -> None:
    aws.fault("ModifyInstanceAttribute", "UnauthorizedOperation")
    leave_stopped(run, aws, instance)
    result = turn_on(run, instance, hosts=[], strict=True)
    assert not result.get("failed")
    assert state(aws, instance) == "running"
    assert turn_on(run, instance, hosts=[], strict=True)["failed"], "it runs, and its host can be asked now"


def test_an_instance_left_stopped_is_started_though_another_fails(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, left = (aws.add(number, "r4.large", EnaSupport=False) for number in (2, 3))
    for instance_id in (instance, left):
        leave_stopped(run, aws, instance_id)
    start = aws.StartInstances

    def not_the_first(request: Any, caller: Any) -> Any:
        if request["InstanceIds"] == [instance]:
            raise AwsError("Unsupported", "as the test wants")
        return start(request, caller)

    monkeypatch.setattr(aws, "StartInstances", not_the_first)
    ids = [running, instance, left]
    hosts = [{"instance_id": instance_id, "drivers_available": ["ena"]} for instance_id in ids]
    result = turn_on(run, running, instance_ids=ids, hosts=hosts, stop_timeout=60)
    assert result["left_stopped"] == [instance]
    assert [state(aws, instance_id) for instance_id in ids] == ["running", "stopped", "running"]
    assert "not begun" in result["failed_instances"][running]


def test_an_instance_that_aws_does_not_say_since_when_runs_is_not_stopped(
    run: Any, aws: FakeAws, instance: str
) -> None:
    del aws.instances[instance]["LaunchTime"]
    assert "AWS does not say when the instance was started" in turn_on(run, instance)["msg"]
    assert aws.calls["StopInstances"] == 0


@pytest.mark.parametrize("pages", [{}, {"1": "2"}])
def test_an_endpoint_that_never_comes_to_its_last_page_does_not_hold_a_stopped_instance(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch, pages: Dict[str, str]
) -> None:
    describe, stop = aws.DescribeInstances, aws.StopInstances
    endless: List[bool] = []

    def again(request: Any, caller: Any) -> Any:
        answer = describe({name: value for name, value in request.items() if name != "NextToken"}, caller)
        return {**answer, "NextToken": pages.get(request.get("NextToken", ""), "1")} if endless else answer

    def from_the_stop_on(request: Any, caller: Any) -> Any:
        endless.append(True)
        return stop(request, caller)

    monkeypatch.setattr(aws, "DescribeInstances", again)
    monkeypatch.setattr(aws, "StopInstances", from_the_stop_on)
    assert turn_on(run, instance)["changed"]
    assert state(aws, instance) == "running"
