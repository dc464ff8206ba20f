# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes around a stop: answers that are old, another run, credentials that end, an instance that ends."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.accounts import Target

from tests.support.aws.fake_aws import FakeAws, Killed
from tests.unit.cloud.stops.ena_run import state, tags, turn_on

ROLE = "arn:aws:iam::111111111111:role/operator"


def after(aws: FakeAws, monkeypatch: pytest.MonkeyPatch, operation: str, happens: Any) -> None:
    """Let something happen each time after AWS has carried out an operation."""
    carry_out = getattr(aws, operation)

    def carry_out_and_more(request: Any, caller: Any) -> Any:
        answer = carry_out(request, caller)
        happens()
        return answer

    monkeypatch.setattr(aws, operation, carry_out_and_more)


@pytest.mark.parametrize("older", range(1, 6))
def test_an_answer_older_than_the_one_before_it_is_not_the_last_word(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch, older: int
) -> None:
    """AWS's answers are consistent in the end only: a look after the start can show the instance stopped again."""
    describe, looks, shown = aws.DescribeInstances, [0], []
    after(aws, monkeypatch, "StartInstances", lambda: looks.append(0))
    after(aws, monkeypatch, "StopInstances", lambda: shown.append(copy.deepcopy(aws.instances[instance])))

    def describe_late(request: Any, caller: Any) -> Any:
        looks[-1] += 1
        answer = describe(request, caller)
        if len(looks) > 1 and looks[-1] == older:
            answer["Reservations"][0]["Instances"] = [shown[0]]
        return answer

    monkeypatch.setattr(aws, "DescribeInstances", describe_late)
    result = turn_on(run, instance)
    assert result["changed"]
    assert (result["failed_instances"], result["left_stopped"]) == ({}, [])
    assert (state(aws, instance), tags(aws, instance)) == ("running", [])


def test_a_change_is_tried_again_while_not_all_of_aws_knows_that_it_stopped(
    run: Any, aws: FakeAws, instance: str
) -> None:
    aws.fault("ModifyInstanceAttribute", "IncorrectInstanceState", times=3)
    assert turn_on(run, instance)["changed"]
    assert state(aws, instance) == "running"


@pytest.mark.parametrize("lost", ["InstanceId", "State"])
def test_an_answer_with_gaps_leaves_nothing_stopped(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    describe, gaps = aws.DescribeInstances, [0]
    after(aws, monkeypatch, "StopInstances", lambda: gaps.append(3))

    def describe_with_gaps(request: Any, caller: Any) -> Any:
        answer = copy.deepcopy(describe(request, caller))
        gaps[-1] -= 1
        if gaps[-1] >= 0:
            del answer["Reservations"][0]["Instances"][0][lost]
        return answer

    monkeypatch.setattr(aws, "DescribeInstances", describe_with_gaps)
    assert turn_on(run, instance)["changed"]
    assert (state(aws, instance), tags(aws, instance)) == ("running", [])


def test_a_tag_that_another_run_removes_is_written_again(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs write the same tag; the one that comes too late removes its own, and with it the first one's."""
    after(aws, monkeypatch, "StopInstances", lambda: aws.instances[instance].update(Tags=[]))
    aws.fault("StartInstances", "UnauthorizedOperation")
    assert turn_on(run, instance)["left_stopped"] == [instance]
    assert len(tags(aws, instance)) == 1
    aws.faults.clear()
    turn_on(run, instance)
    assert (state(aws, instance), tags(aws, instance)) == ("running", [])


def test_an_instance_that_another_run_just_restarted_is_not_stopped_again(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    after(aws, monkeypatch, "CreateTags", lambda: aws.instances[instance].update(LaunchTime=aws.now()))
    assert f"{instance} was stopped and started meanwhile: run again" in turn_on(run, instance)["msg"]
    assert aws.calls["StopInstances"] == 0
    assert tags(aws, instance) == []


def killed_after_its_stop(run: Any, aws: FakeAws, instance: str) -> Any:
    """Kill a run after its stop; how AWS showed the instance before it."""
    before = copy.deepcopy(aws.instances[instance])
    aws.fault("ModifyInstanceAttribute", "killed")
    with pytest.raises(Killed):
        turn_on(run, instance)
    aws.faults.clear()
    aws.killed = False
    return before


def test_the_tag_stays_on_an_instance_whose_stop_was_not_shown_yet(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is killed after its stop. To the next one AWS still shows the instance running and without the tag."""
    before = killed_after_its_stop(run, aws, instance)
    with monkeypatch.context() as patch:
        describe, written = aws.DescribeInstances, []
        after(aws, patch, "CreateTags", lambda: written.append(True))
        old = {"Reservations": [{"Instances": [before]}]}
        patch.setattr(aws, "DescribeInstances", lambda *asked: describe(*asked) if written else old)
        second = turn_on(run, instance)
    assert second["left_stopped"] == [instance]
    assert "an earlier run or somebody stopped it; to keep it stopped, delete its tag" in second["msg"]
    assert len(tags(aws, instance)) == 1
    third = turn_on(run, instance)
    assert (state(aws, instance), tags(aws, instance), third["left_stopped"]) == ("running", [], [])
    started = next(finding["reason"] for finding in third["findings"] if finding["knob"] == "power")
    assert "by an earlier run that had a change to make or by somebody at that time" in started


def test_an_instance_that_the_last_look_shows_left_stopped_is_named(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan was made by an old answer; the look before the tag shows the stop and the tag of the killed run."""
    before = killed_after_its_stop(run, aws, instance)
    asked = aws.calls["StopInstances DryRun"]
    describe, old = aws.DescribeInstances, {"Reservations": [{"Instances": [before]}]}
    monkeypatch.setattr(
        aws,
        "DescribeInstances",
        lambda *request: describe(*request) if aws.calls["StopInstances DryRun"] > asked else old,
    )
    assert turn_on(run, instance)["left_stopped"] == [instance]
    assert len(tags(aws, instance)) == 1


@pytest.mark.parametrize("days", [0, 1])
def test_an_answer_from_before_the_stop_does_not_show_that_it_runs_again(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """AWS gives the start up while its answers still show the instance running as before this stop, or the last one."""
    before = copy.deepcopy(aws.instances[instance])
    aws.fault("StartInstances", "back")
    with monkeypatch.context() as patch:
        describe, started = aws.DescribeInstances, []
        after(aws, patch, "StartInstances", lambda: started.append(True))

        def describe_old(request: Any, caller: Any) -> Any:
            old = copy.deepcopy(before)
            old["LaunchTime"] -= timedelta(days=days)
            old["Tags"] = aws.instances[instance].get("Tags", [])
            return {"Reservations": [{"Instances": [old]}]} if started else describe(request, caller)

        patch.setattr(aws, "DescribeInstances", describe_old)
        assert turn_on(run, instance, stop_timeout=60)["left_stopped"] == [instance]
    assert len(tags(aws, instance)) == 1


def test_the_last_look_before_the_tag_comes_after_the_questions(run: Any, aws: FakeAws, instance: str) -> None:
    """Each call between the look and the tag is time for another run to stop the instance."""
    turn_on(run, instance)
    operations = [operation for operation, _request in aws.requests]
    assert operations[operations.index("CreateTags") - 1] == "DescribeInstances"


def test_a_role_whose_credentials_end_after_the_stop_is_assumed_again(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.roles[ROLE] = "111111111111"
    operations = ("DescribeInstances", "ModifyInstanceAttribute", "StartInstances", "DeleteTags")
    after(
        aws,
        monkeypatch,
        "StopInstances",
        lambda: [aws.fault(operation, "RequestExpired") for operation in operations],
    )
    after(aws, monkeypatch, "AssumeRole", aws.faults.clear)
    result = turn_on(run, instance, assume_roles={"production": ROLE}, regions=["eu-west-1"])
    assert result["failed_instances"] == {}
    assert (state(aws, instance), tags(aws, instance)) == ("running", [])
    assert aws.calls["AssumeRole"] == 2


def test_credentials_that_stay_expired_are_named_with_the_instance(run: Any, aws: FakeAws, instance: str) -> None:
    aws.fault("StartInstances", "ExpiredToken")
    result = turn_on(run, instance)
    assert result["left_stopped"] == [instance]
    assert "the credentials have expired: log in again" in result["msg"]
    assert "run again with allow_stop: true to start" in result["msg"]


def test_a_terminated_instance_is_not_one_that_a_run_can_start(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = {"Code": 48, "Name": "terminated"}
    after(aws, monkeypatch, "ModifyInstanceAttribute", lambda: aws.instances[instance].update(State=ended))
    result = turn_on(run, instance)
    assert result["failed_instances"] == {instance: "it ran before and is terminated now: nothing can start it"}
    assert result["left_stopped"] == []


def test_a_start_that_aws_gives_up_is_reported_with_its_cause(run: Any, aws: FakeAws, instance: str) -> None:
    aws.fault("StartInstances", "back")
    assert "AWS could not start it: Client.InternalError" in turn_on(run, instance)["msg"]


@pytest.mark.parametrize(
    "error",
    [
        ValueError('Invalid timestamp "garbage"'),
        FileNotFoundError(2, "No such file or directory", "/run/credentials/token"),
        RuntimeError("Credentials were refreshed, but the refreshed credentials are still expired."),
        AttributeError("'list' object has no attribute 'get'"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_boto_lets_pass_leaves_nothing_stopped(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A time in an answer that is none, or a source of credentials that fails while the instance is stopped."""
    describe, unreadable = aws.DescribeInstances, [0]
    after(aws, monkeypatch, "StopInstances", lambda: unreadable.append(4))

    def describe_badly(request: Any, caller: Any) -> Any:
        unreadable[-1] -= 1
        if unreadable[-1] >= 0:
            raise error
        return describe(request, caller)

    monkeypatch.setattr(aws, "DescribeInstances", describe_badly)
    assert turn_on(run, instance)["changed"]
    assert state(aws, instance) == "running"


@pytest.mark.parametrize("hours", [-5, 5])
def test_nothing_is_stopped_whose_tag_has_the_time_of_a_clock_that_was_set_meanwhile(
    run: Any, aws: FakeAws, instance: str, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """The next run wouldn't believe that such a tag is about this stop, and leave the instance stopped."""
    now = Target.now

    def stepped(target: Target) -> Any:
        """Until AWS answers again, which corrects it."""
        return now(target) + timedelta(hours=0 if aws.calls["CreateTags"] else hours)

    with monkeypatch.context() as patch:
        patch.setattr(Target, "now", stepped)
        assert "nothing was stopped" in turn_on(run, instance)["msg"]
    assert (aws.calls["StopInstances"], state(aws, instance), tags(aws, instance)) == (0, "running", [])
    assert turn_on(run, instance)["changed"]
