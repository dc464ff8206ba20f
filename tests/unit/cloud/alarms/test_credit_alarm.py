# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alarm on the balance of CPU credits, on our own fake endpoint. test_moto.py has it on moto's."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

from tests.support.aws.fake_aws import FakeAws

TOPIC = "arn:aws:sns:eu-west-1:123456789012:operators"
WANTED: Dict[str, Any] = {"alarm_percent": 20, "alarm_topics": [TOPIC], "allow_cost": True}


def burstable(aws: FakeAws, number: int = 1, kind: str = "t3.micro") -> str:
    """One more burstable instance."""
    instance = aws.add(number, kind)
    aws.credits[instance] = "standard"
    return instance


def alarm_of(result: Dict[str, Any], instance: str) -> List[Dict[str, Any]]:
    """The findings about an instance's alarm."""
    return [finding for finding in result["instances"][instance]["findings"] if finding["knob"] == "alarm"]


def test_an_alarm_is_set_once_and_rings_below_the_share(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    checked = run("cpu_credits", check=True, instance_ids=[instance], **WANTED)
    assert (checked["changed"], aws.alarms) == (True, {})
    done = run("cpu_credits", instance_ids=[instance], **WANTED)
    assert done["diff"] == checked["diff"]
    alarm = aws.alarms[f"nearmetal-cpu-credits-{instance}"]
    # A t3.micro can hold 288 credits (AWS's page on credits): 20 % of them are 57.6.
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (57.6, "LessThanThreshold")
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("AWS/EC2", "CPUCreditBalance", "Average")
    assert alarm["Dimensions"] == [{"Name": "InstanceId", "Value": instance}]
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["AlarmActions"]) == (300, 1, [TOPIC])
    assert alarm_of(done, instance)[0]["status"] == "changed"
    again = run("cpu_credits", instance_ids=[instance], **WANTED)
    assert (again["changed"], alarm_of(again, instance)[0]["status"]) == (False, "ok")
    assert aws.calls["PutMetricAlarm"] == 1


def test_another_share_and_other_topics_change_the_alarm(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    run("cpu_credits", instance_ids=[instance], **WANTED)
    aws.alarms[f"nearmetal-cpu-credits-{instance}"]["ActionsEnabled"] = False
    changed = run("cpu_credits", instance_ids=[instance], **{**WANTED, "alarm_percent": 50, "alarm_topics": []})
    assert changed["diff"]["before"][instance]["credit_alarm"]["below"] == 57.6
    alarm = aws.alarms[f"nearmetal-cpu-credits-{instance}"]
    # What an operator switched off stays off.
    assert (alarm["Threshold"], alarm["AlarmActions"], alarm["ActionsEnabled"]) == (144, [], False)


def test_restored_deletes_what_we_made_and_nothing_else(run: Any, aws: FakeAws) -> None:
    created, edited, foreign, none = (burstable(aws, number) for number in (1, 2, 3, 4))
    run("cpu_credits", instance_ids=[created, edited], **WANTED)
    aws.alarms[f"nearmetal-cpu-credits-{edited}"]["EvaluationPeriods"] = 6
    aws.alarms[f"nearmetal-cpu-credits-{foreign}"] = {"AlarmName": f"nearmetal-cpu-credits-{foreign}", "Threshold": 1.0}
    ids = [created, edited, foreign, none]
    checked = run("cpu_credits", check=True, instance_ids=ids, state="restored", **WANTED)
    assert (checked["changed"], len(aws.alarms)) == (True, 3)
    result = run("cpu_credits", instance_ids=ids, state="restored", specification="unlimited", **WANTED)
    assert sorted(aws.alarms) == sorted(f"nearmetal-cpu-credits-{instance}" for instance in (edited, foreign))
    assert [alarm_of(result, instance)[0]["status"] for instance in ids] == ["changed", "refused", "refused", "ok"]
    assert set(aws.credits.values()) == {"standard"}
    assert not run("cpu_credits", instance_ids=ids, state="restored")["changed"]


@pytest.mark.parametrize(
    "more",
    [
        {"OKActions": [TOPIC]},
        {"InsufficientDataActions": [TOPIC]},
        {"TreatMissingData": "breaching"},
        {"DatapointsToAlarm": 1},
        {"Unit": "Count"},
    ],
)
def test_an_alarm_that_an_operator_extended_is_neither_overwritten_nor_deleted(
    run: Any, aws: FakeAws, more: Dict[str, Any]
) -> None:
    instance = burstable(aws)
    run("cpu_credits", instance_ids=[instance], **WANTED)
    extended = {**aws.alarms[f"nearmetal-cpu-credits-{instance}"], **more}
    aws.alarms[f"nearmetal-cpu-credits-{instance}"] = dict(extended)
    assert alarm_of(run("cpu_credits", instance_ids=[instance], **WANTED), instance)[0]["status"] == "ok"
    for options in ({"alarm_percent": 50}, {"state": "restored"}):
        result = run("cpu_credits", instance_ids=[instance], **{**WANTED, **options})
        assert (result["changed"], alarm_of(result, instance)[0]["status"]) == (False, "refused")
    assert aws.alarms == {f"nearmetal-cpu-credits-{instance}": extended}


def test_an_alarm_outlives_the_type_that_had_credits_and_is_still_taken_back(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    run("cpu_credits", instance_ids=[instance], **WANTED)
    aws.instances[instance]["InstanceType"] = "m5.large"
    assert run("cpu_credits", instance_ids=[instance], state="restored")["changed"]
    assert aws.alarms == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [({"allow_cost": False}, "allow_cost: true"), ({"unconfirmed": ["i-00000000000000001"]}, "exactly one host")],
)
def test_an_alarm_that_costs_or_may_be_anothers_is_refused(run: Any, aws: FakeAws, options: Any, words: str) -> None:
    instance = burstable(aws)
    result = run("cpu_credits", instance_ids=[instance], **{**WANTED, **options})
    assert (result["changed"], alarm_of(result, instance)[0]["status"]) == (False, "refused")
    assert words in alarm_of(result, instance)[0]["reason"]
    assert run("cpu_credits", instance_ids=[instance], strict=True, **{**WANTED, **options})["failed"]
    assert aws.alarms == {}


def test_somebody_elses_alarm_of_that_name_is_left_alone(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    foreign_alarm = {"AlarmName": f"mine-{instance}", "AlarmDescription": "by hand", "Threshold": 5.0}
    aws.alarms[f"mine-{instance}"] = dict(foreign_alarm)
    result = run("cpu_credits", instance_ids=[instance], alarm_name="mine", **WANTED)
    assert "choose another alarm_name" in alarm_of(result, instance)[0]["reason"]
    assert aws.alarms == {f"mine-{instance}": foreign_alarm}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"alarm_percent": 0}, "alarm_percent: 0 is not allowed: it must be from 1 to 99"),
        ({"alarm_percent": 100}, "alarm_percent: 100 is not allowed"),
        ({"alarm_name": "a\nb"}, "alarm_name must be one line without control characters"),
        ({"alarm_name": ""}, "1 to 200 letters"),
        ({"alarm_topics": ["arn:aws:automate:eu-west-1:ec2:stop"]}, "must be the ARN of an SNS topic"),
    ],
)
def test_a_wrong_option_is_named_before_aws_is_asked(run: Any, aws: FakeAws, options: Any, sentence: str) -> None:
    result = run("cpu_credits", filters={}, **{**WANTED, **options})
    assert result["failed"]
    assert sentence in result["msg"]
    assert not aws.calls


def test_alarms_are_not_asked_for_unless_wanted(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    result = run("cpu_credits", instance_ids=[instance])
    assert alarm_of(result, instance) == []
    assert aws.calls["DescribeAlarms"] == 0


def test_without_the_permission_to_look_nothing_is_set(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    aws.fault("DescribeAlarms", "AccessDenied")
    result = run("cpu_credits", instance_ids=[instance], **WANTED)
    assert alarm_of(result, instance)[0]["status"] == "unknown"
    assert aws.calls["PutMetricAlarm"] == 0


def test_a_refused_alarm_is_a_failure_and_the_mode_is_changed_nevertheless(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    aws.fault("PutMetricAlarm", "AccessDenied")
    result = run("cpu_credits", instance_ids=[instance], specification="unlimited", **WANTED)
    assert result["failed"]
    assert "PutMetricAlarm: AccessDenied" in result["msg"]
    assert [action["what"] for action in result["actions"]] == ["credit_specification"]
    assert alarm_of(result, instance)[0]["status"] == "unknown"
    assert aws.credits[instance] == "unlimited"


def test_an_alarm_that_aws_set_is_no_failure_whatever_it_responded(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    aws.fault("PutMetricAlarm", "InternalError", applied=True)
    result = run("cpu_credits", instance_ids=[instance], **WANTED)
    assert not result.get("failed")
    assert alarm_of(result, instance)[0]["status"] == "changed"
