# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""enhanced_networking, on our own fake endpoint: moto has no EnaSupport, neither to read nor to set."""

from __future__ import annotations

import os
import signal
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.enhanced_networking import DriverFacts, plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.instance_facts import instance_facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types

from tests.support.aws.fake_aws import FakeAws

CHANGING = ("StopInstances", "ModifyInstanceAttribute", "StartInstances")


@pytest.fixture(autouse=True)
def no_waiting(clock: Any) -> Any:
    """Waiting costs nothing."""
    return clock


def host(instance_id: str, in_use: str = "vif", available: str = "ena ixgbevf") -> Dict[str, Any]:
    """One element of the option hosts."""
    return {"instance_id": instance_id, "drivers_in_use": in_use.split(), "drivers_available": available.split()}


def status_of(result: Dict[str, Any], instance_id: str, knob: str) -> Any:
    """The status of an instance's finding about a knob."""
    return next(
        finding["status"] for finding in result["instances"][instance_id]["findings"] if finding["knob"] == knob
    )


def calls(aws: FakeAws) -> List[str]:
    """The operations that change something, in order."""
    return [operation for operation, request in aws.requests if operation in CHANGING and not request.get("DryRun")]


def stopped_ids(aws: FakeAws) -> List[List[str]]:
    """The instances of each stop."""
    return [
        request["InstanceIds"]
        for operation, request in aws.requests
        if operation == "StopInstances" and not request.get("DryRun")
    ]


def test_ena_is_set_while_the_instance_is_stopped_and_a_second_run_changes_nothing(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    options = {"instance_ids": [instance], "ena": "enabled", "allow_stop": True, "hosts": [host(instance)]}
    checked = run("enhanced_networking", check=True, **options)
    assert checked["changed"]
    assert calls(aws) == []
    done = run("enhanced_networking", **options)
    assert calls(aws) == ["StopInstances", "ModifyInstanceAttribute", "StartInstances"]
    assert (
        done["diff"]
        == checked["diff"]
        == {
            "before": {instance: {"ena_support": False}},
            "after": {instance: {"ena_support": True}},
        }
    )
    assert done["actions"] == checked["actions"]
    assert (status_of(checked, instance, "ena"), status_of(done, instance, "ena")) == ("would_change", "changed")
    assert aws.instances[instance]["EnaSupport"] is True
    assert aws.instances[instance]["State"]["Name"] == "running"
    aws.requests.clear()
    again = run("enhanced_networking", **options)
    assert not again["changed"]
    assert status_of(again, instance, "ena") == "ok"
    assert calls(aws) == []


def test_unsetting_sriov_is_refused_with_a_reason(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "c4.large", EnaSupport=False)
    options = {"instance_ids": [instance], "sriov": "enabled", "allow_stop": True, "hosts": [host(instance)]}
    done = run("enhanced_networking", **options)
    (action,) = done["actions"]
    assert action["reversible"] == "no"
    assert "can't be unset" in action["reason"]
    assert aws.instances[instance]["SriovNetSupport"] == "simple"
    assert not run("enhanced_networking", **options)["changed"]


def test_a_stopped_instance_is_changed_without_allow_stop_and_stays_stopped(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False, State={"Code": 80, "Name": "stopped"})
    done = run("enhanced_networking", instance_ids=[instance], ena="enabled", hosts=[host(instance)])
    assert done["changed"]
    assert calls(aws) == ["ModifyInstanceAttribute"]
    assert aws.instances[instance]["State"]["Name"] == "stopped"


REFUSED: Dict[str, Any] = {
    "no opt-in": ({}, {"allow_stop": False}, "allow_stop: true"),
    "paravirtual": ({"VirtualizationType": "paravirtual"}, {}, "move it to an HVM image"),
    "the host was not asked": ({}, {"hosts": []}, "hosts"),
    "no driver in the image": ({}, {"hosts": [host("i-00000000000000001", available="ixgbevf")]}, "no driver ena"),
    "spot": ({"InstanceLifecycle": "spot"}, {}, "may not start again"),
    "root on instance store": ({"RootDeviceType": "instance-store"}, {}, "can't be stopped"),
    "Auto Scaling": ({"Tags": [{"Key": "aws:autoscaling:groupName", "Value": "web"}]}, {}, "would replace it"),
    "EMR": ({"Tags": [{"Key": "aws:elasticmapreduce:job-flow-id", "Value": "j-1"}]}, {}, "EMR cluster j-1 manages it"),
    "a service": ({"Operator": {"Managed": True, "Principal": "eks.amazonaws.com"}}, {}, "eks.amazonaws.com manages"),
    "hibernated": (
        {"State": {"Code": 80, "Name": "stopped"}, "StateReason": {"Code": "Client.UserInitiatedHibernate"}},
        {},
        "start it first",
    ),
    "instance store": ({"InstanceType": "i3.large"}, {}, "instance_store_loss"),
    "pending": ({"State": {"Code": 0, "Name": "pending"}}, {}, "is pending"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_harmful_option_is_refused(run: Any, aws: FakeAws, case: Any) -> None:
    more, options, reason = case
    instance = aws.add(1, **{"instance_type": "r4.large", "EnaSupport": False, **more})
    arguments = {"instance_ids": [instance], "ena": "enabled", "allow_stop": True, "hosts": [host(instance)], **options}
    result = run("enhanced_networking", **arguments)
    assert not result["changed"]
    assert status_of(result, instance, "ena") == "refused"
    assert reason in next(finding["reason"] for finding in result["findings"] if finding["status"] == "refused")
    assert calls(aws) == []
    assert run("enhanced_networking", strict=True, **arguments)["failed"]
    assert calls(aws) == []


@pytest.mark.parametrize("kind", ["event", "spot notice"])
def test_an_instance_with_a_scheduled_event_is_left_alone(run: Any, aws: FakeAws, kind: str) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    if kind == "event":
        aws.statuses[instance] = {"Events": [{"Code": "system-maintenance", "Description": "soon"}]}
    else:
        aws.instances[instance]["InstanceLifecycle"] = "spot"
        aws.spot_requests = [{"InstanceId": instance, "Status": {"Code": "marked-for-stop"}}]
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=[host(instance)])
    assert status_of(result, instance, "ena") == "refused"
    assert kind in next(finding["reason"] for finding in result["findings"] if finding["status"] == "refused")
    assert calls(aws) == []


@pytest.mark.parametrize("kind", ["UnauthorizedOperation", "RequestLimitExceeded", "cut"])
def test_without_scheduled_events_from_aws_nothing_is_stopped(run: Any, aws: FakeAws, kind: str) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    aws.statuses[instance] = {"Events": [{"Code": "system-reboot", "Description": "soon"}]}
    aws.fault("DescribeInstanceStatus", kind)
    options = {"instance_ids": [instance], "ena": "enabled", "allow_stop": True, "hosts": [host(instance)]}
    result = run("enhanced_networking", **options)
    assert status_of(result, instance, "ena") == "refused"
    assert "ec2:DescribeInstanceStatus" in next(
        finding["reason"] for finding in result["findings"] if finding["knob"] == "ena"
    )
    assert calls(aws) == []
    assert run("enhanced_networking", strict=True, **options)["failed"]
    looked = run("enhanced_networking", instance_ids=[instance], hosts=[host(instance)])
    assert (status_of(looked, instance, "ena"), status_of(looked, instance, "driver")) == ("advice", "advice")


def test_an_instance_that_aws_says_no_status_of_is_not_stopped(
    run: Any, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    monkeypatch.setattr(aws, "DescribeInstanceStatus", lambda _request, _caller: {"InstanceStatuses": []})
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=[host(instance)])
    assert status_of(result, instance, "ena") == "refused"
    assert calls(aws) == []


def test_named_instance_store_may_be_lost(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "i3.large", EnaSupport=False)
    options = {"ena": "enabled", "allow_stop": True, "hosts": [host(instance)], "instance_store_loss": [instance]}
    assert run("enhanced_networking", instance_ids=[instance], **options)["changed"]


def test_one_instance_after_the_other_and_none_after_a_failure(run: Any, aws: FakeAws) -> None:
    ids = [aws.add(number, "r4.large", EnaSupport=False) for number in range(1, 4)]
    aws.fault("ModifyInstanceAttribute", "InternalFailure", first=1)
    result = run(
        "enhanced_networking",
        instance_ids=ids,
        ena="enabled",
        allow_stop=True,
        hosts=[host(instance_id) for instance_id in ids],
    )
    assert result["failed"]
    assert result["changed"]
    assert [status_of(result, instance_id, "ena") for instance_id in ids] == ["changed", "unknown", "unknown"]
    assert "not begun" in result["failed_instances"][ids[2]]
    assert [aws.instances[instance_id]["State"]["Name"] for instance_id in ids] == ["running"] * 3
    assert stopped_ids(aws) == [
        [ids[0]],
        [ids[1]],
    ]
    assert result["left_stopped"] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_canceled_run_starts_the_instance_that_it_stopped(
    run: Any, aws: FakeAws, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    ids = [aws.add(position, "r4.large", EnaSupport=False) for position in range(1, 3)]
    stop = aws.StopInstances

    def told_to_end(request: Any, caller: Any) -> Any:
        os.kill(os.getpid(), number)
        return stop(request, caller)

    monkeypatch.setattr(aws, "StopInstances", told_to_end)
    hosts = [host(instance_id) for instance_id in ids]
    result = run("enhanced_networking", instance_ids=ids, ena="enabled", allow_stop=True, hosts=hosts)
    assert result["failed"]
    assert result["failed_instances"] == {ids[1]: f"not begun, because the run was canceled by {number.name}"}
    assert calls(aws) == list(CHANGING), "the first one's, and nothing of the second"
    assert [aws.instances[instance_id]["State"]["Name"] for instance_id in ids] == ["running"] * 2


@pytest.mark.parametrize(("before", "meanwhile"), [("running", "stopped"), ("stopped", "running")])
def test_an_instance_that_somebody_stopped_or_started_meanwhile_is_left_alone(
    run: Any, aws: FakeAws, monkeypatch: pytest.MonkeyPatch, before: str, meanwhile: str
) -> None:
    ids = [aws.add(number, "r4.large", EnaSupport=False) for number in range(1, 4)]
    aws.instances[ids[1]]["State"] = {"Code": 0, "Name": before}
    modify = aws.ModifyInstanceAttribute

    def while_the_first_is_worked_on(request: Any, caller: Any) -> Any:
        aws.instances[ids[1]]["State"] = {"Code": 0, "Name": meanwhile}
        return modify(request, caller)

    monkeypatch.setattr(aws, "ModifyInstanceAttribute", while_the_first_is_worked_on)
    hosts = [host(instance_id) for instance_id in ids]
    result = run("enhanced_networking", instance_ids=ids, ena="enabled", allow_stop=True, hosts=hosts)
    assert calls(aws) == list(CHANGING)
    assert f"it was {before} and is {meanwhile} now" in result["msg"]
    assert aws.instances[ids[1]]["State"]["Name"] == meanwhile
    assert [status_of(result, instance_id, "ena") for instance_id in ids] == ["changed", "unknown", "unknown"]
    assert result["left_stopped"] == []


def test_an_instance_that_cannot_be_looked_up_again_is_not_stopped(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    aws.fault("DescribeInstances", "UnauthorizedOperation", first=1)
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=[host(instance)])
    assert "could not be read again: nothing was done to it" in result["failed_instances"][instance]
    assert calls(aws) == []


def test_several_at_once_are_stopped_in_one_call(run: Any, aws: FakeAws) -> None:
    ids = [aws.add(number, "r4.large", EnaSupport=False) for number in range(1, 4)]
    hosts = [host(instance_id) for instance_id in ids]
    run("enhanced_networking", instance_ids=ids, ena="enabled", allow_stop=True, hosts=hosts, stop_at_once=3)
    assert calls(aws)[:2] == ["StopInstances", "ModifyInstanceAttribute"]
    assert all(aws.instances[instance_id]["EnaSupport"] for instance_id in ids)


def test_after_a_failure_no_instance_of_another_region_is_stopped(run: Any, aws: FakeAws) -> None:
    regions = ["eu-west-1", "us-east-1"]
    first, second = (aws.add(number, "r4.large", EnaSupport=False, region=regions[number]) for number in (0, 1))
    aws.fault("ModifyInstanceAttribute", "UnauthorizedOperation")
    options = {"ena": "enabled", "allow_stop": True, "regions": regions, "stop_at_once": 2}
    result = run("enhanced_networking", instance_ids=[first, second], hosts=[host(first), host(second)], **options)
    assert stopped_ids(aws) == [[first]]
    assert "UnauthorizedOperation" in result["msg"]
    assert "not begun" in result["failed_instances"][second]


@pytest.mark.parametrize("kind", ["OperationNotPermitted", "cut"])
def test_a_refused_stop_reports_every_instance_of_its_batch(run: Any, aws: FakeAws, kind: str) -> None:
    running, stopped = (aws.add(number, "r4.large", EnaSupport=False) for number in (1, 2))
    aws.instances[stopped]["State"] = {"Code": 80, "Name": "stopped"}
    aws.fault("StopInstances", kind)
    hosts = [host(running), host(stopped)]
    options = {"ena": "enabled", "allow_stop": True, "stop_at_once": 2}
    result = run("enhanced_networking", instance_ids=[running, stopped], hosts=hosts, **options)
    assert "StopInstances: " in result["failed_instances"][running]
    assert "not begun" in result["failed_instances"][stopped]
    assert aws.instances[stopped]["State"]["Name"] == "stopped"


def test_an_instance_that_never_stops_is_named(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    aws.stuck.append(instance)
    result = run(
        "enhanced_networking",
        instance_ids=[instance],
        ena="enabled",
        allow_stop=True,
        hosts=[host(instance)],
        stop_timeout=60,
    )
    assert result["left_stopped"] == [instance]
    assert result["msg"] == (
        f"enhanced_networking: {instance}: it did not stop within stop_timeout: 60 s; it ran before and is stopping "
        f"after stop_timeout: 60 s; left stopped: {instance}; run again with allow_stop: true to start it"
    )
    assert "ModifyInstanceAttribute" not in calls(aws)


def test_the_start_is_tried_until_aws_has_capacity(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    aws.fault("StartInstances", "InsufficientInstanceCapacity", times=3)
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=[host(instance)])
    assert result["changed"]
    assert aws.instances[instance]["State"]["Name"] == "running"


def test_a_stop_that_aws_forbids_changes_nothing(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    aws.fault("StopInstances", "OperationNotPermitted")
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=[host(instance)])
    assert "OperationNotPermitted" in result["msg"]
    assert not result["changed"]
    assert calls(aws) == []
    assert result["left_stopped"] == []


def test_a_stop_without_a_response_is_taken_back(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    aws.fault("StopInstances", "cut")
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=[host(instance)])
    assert not result["changed"]
    assert aws.instances[instance]["State"]["Name"] == "running"
    assert result["left_stopped"] == []
    assert "ModifyInstanceAttribute" not in calls(aws)


def test_a_stop_that_aws_took_before_it_throttled_is_taken_back(run: Any, aws: FakeAws) -> None:
    """The response is lost and boto's own retries are throttled, so the final error is about throttling."""
    instance = aws.add(1, "r4.large", EnaSupport=False)
    aws.fault("StopInstances", "lost", times=1)
    aws.fault("StopInstances", "RequestLimitExceeded", first=1)
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=[host(instance)])
    assert "RequestLimitExceeded" in result["failed_instances"][instance]
    assert aws.calls["StopInstances"] == 5
    assert aws.instances[instance]["State"]["Name"] == "running"
    assert result["left_stopped"] == []


def test_a_change_that_does_not_hold_is_a_failure(run: Any, aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    monkeypatch.setattr(aws, "ModifyInstanceAttribute", lambda _request, _caller: {})
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=[host(instance)])
    assert "still shows the old value" in result["msg"]
    assert not result["changed"]


@pytest.mark.parametrize(
    ("kind", "more", "in_use", "wanted"),
    [
        ("m5.large", {}, "ena", {"ena": "ok", "sriov": "not_applicable", "driver": "ok"}),
        ("r4.large", {"EnaSupport": False}, "vif", {"ena": "advice", "driver": "advice"}),
        ("r4.large", {"EnaSupport": True}, "vif", {"ena": "ok", "driver": "advice"}),
        (
            "c4.large",
            {"SriovNetSupport": "simple"},
            "ixgbevf",
            {"ena": "not_applicable", "sriov": "ok", "driver": "ok"},
        ),
        ("t2.micro", {}, "vif", {"ena": "not_applicable", "sriov": "not_applicable", "driver": "not_applicable"}),
        ("m3.large", {"VirtualizationType": "paravirtual"}, "vif", {"driver": "not_applicable"}),
        ("m5.large", {}, "", {"driver": "unknown"}),
        ("r4.large", {"State": {"Name": "terminated"}}, "", {"ena": "not_applicable"}),
    ],
)
def test_attribute_driver_and_type_are_three_things(kind: str, more: Any, in_use: str, wanted: Any) -> None:
    raw = {"InstanceId": "i-1", "InstanceType": kind, "State": {"Name": "running"}, "VirtualizationType": "hvm", **more}
    facts = instance_facts(raw, "1", "", "r", offline_types()[kind])
    findings = plan(facts, offline_types()[kind], DriverFacts(tuple(in_use.split()), ()), {}).findings
    found = {finding.knob: finding.status for finding in findings}
    assert {knob: found[knob] for knob in wanted} == wanted


def test_no_type_of_the_table_raises_or_gets_a_setting_that_it_lacks() -> None:
    for name, kind in offline_types().items():
        raw = {"InstanceId": "i-1", "InstanceType": name, "State": {"Name": "stopped"}, "VirtualizationType": "hvm"}
        facts = instance_facts(raw, "1", "", "r", kind)
        driver = DriverFacts((), ("ena", "ixgbevf"))
        planned = plan(facts, kind, driver, {"ena": "enabled", "sriov": "enabled"})
        changed = {action.knob for action in planned.actions}
        assert ("ena" in changed) == (kind.ena == "supported"), name
        assert ("sriov" in changed) == kind.sriov, name
        assert not (kind.host_class == "nitro" and changed), name


@pytest.mark.parametrize(("option", "most"), [("stop_at_once", 10000), ("stop_timeout", 86400)])
@pytest.mark.parametrize("number", [0, -1, 10**30])
def test_a_number_out_of_range_is_named_with_its_range(run: Any, option: str, most: int, number: int) -> None:
    result = run("enhanced_networking", instance_ids=[], **{option: number})
    assert result["failed"]
    assert result["msg"] == f"{option} must be a whole number from 1 to {most}, not {number}"
