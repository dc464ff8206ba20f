# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces are attached as the options say, and taken back, on our own fake endpoint. test_moto.py has moto's."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.attach.facts import TAG

from tests.support.aws.fake_aws import FakeAws, Killed
from tests.support.aws.fake_interfaces import GROUP, SUBNET

WANTED: Dict[str, Any] = {"count": 3, "allow_attach": True}


def counted(result: Dict[str, Any], instance: str) -> List[Tuple[str, str]]:
    """Status and reason of the findings about an instance's number of interfaces."""
    findings = result["instances"][instance]["findings"]
    return [(finding["status"], finding["reason"]) for finding in findings if finding["knob"] == "count"]


def places(aws: FakeAws, instance: str) -> List[Tuple[int, int]]:
    """Card and device of each interface that AWS shows at an instance."""
    attachments = [shown["Attachment"] for shown in aws.instances[instance]["NetworkInterfaces"]]
    return [(attachment.get("NetworkCardIndex", 0), attachment["DeviceIndex"]) for attachment in attachments]


def test_interfaces_are_attached_once_and_taken_back(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    checked = run("network_interfaces", check=True, instance_ids=[instance], **WANTED)
    assert (checked["changed"], aws.interfaces) == (True, {})
    assert checked["diff"]["after"][instance]["interfaces"] == {
        "card 0, device 0": "eni-00000000000000001",
        "card 0, device 1": f"new in {SUBNET} with {GROUP}",
        "card 0, device 2": f"new in {SUBNET} with {GROUP}",
    }
    done = run("network_interfaces", instance_ids=[instance], tags={"owner": "team"}, **WANTED)
    assert (done["changed"], done["diff"], done["actions"]) == (True, checked["diff"], checked["actions"])
    assert places(aws, instance) == [(0, 0), (0, 1), (0, 2)]
    for raw in aws.interfaces.values():
        assert raw["TagSet"] == [{"Key": TAG, "Value": instance}, {"Key": "owner", "Value": "team"}]
        assert (raw["SubnetId"], raw["Groups"]) == (SUBNET, [{"GroupId": GROUP}])
        assert raw["Attachment"]["DeleteOnTermination"]
    again = run("network_interfaces", instance_ids=[instance], **WANTED)
    assert (again["changed"], counted(again, instance)) == (False, [("ok", "3 of at least 3 interfaces")])
    undo = {"instance_ids": [instance], "state": "restored"}
    foretold = run("network_interfaces", check=True, **undo)
    assert (foretold["changed"], len(aws.interfaces)) == (True, 2)
    taken = run("network_interfaces", **undo)
    assert (taken["diff"], taken["actions"]) == (foretold["diff"], foretold["actions"])
    assert taken["actions"][0]["disruptive"]
    assert (aws.interfaces, places(aws, instance)) == ({}, [(0, 0)])
    assert not run("network_interfaces", **undo)["changed"]


def test_nothing_is_attached_without_the_opt_in(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    result = run("network_interfaces", instance_ids=[instance], count=2)
    ((status, reason),) = counted(result, instance)
    assert (status, "allow_attach: true" in reason, result["changed"]) == ("refused", True, False)
    assert run("network_interfaces", instance_ids=[instance], count=2, strict=True)["failed"]
    assert aws.interfaces == {}


def test_subnets_are_taken_in_turn_and_those_of_other_zones_passed_over(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    aws.add_subnet("subnet-0000000b", free=1)
    aws.add_subnet("subnet-0000000c", zone="eu-west-1b")
    named = ["subnet-0000000c", "subnet-0000000b", SUBNET]
    wanted = {**WANTED, "count": 4, "subnet_ids": named, "security_group_ids": ["sg-0000000c", "sg-0000000b"]}
    assert run("network_interfaces", instance_ids=[instance], **wanted)["changed"]
    assert [raw["SubnetId"] for raw in aws.interfaces.values()] == ["subnet-0000000b", SUBNET, SUBNET]
    groups = {tuple(group["GroupId"] for group in raw["Groups"]) for raw in aws.interfaces.values()}
    assert groups == {("sg-0000000b", "sg-0000000c")}


def test_instances_of_one_run_share_the_free_addresses_of_a_subnet(run: Any, aws: FakeAws) -> None:
    first, second = aws.add(1, "m5.4xlarge"), aws.add(2, "m5.4xlarge")
    aws.subnets[SUBNET]["AvailableIpAddressCount"] = 3
    result = run("network_interfaces", instance_ids=[first, second], **WANTED)
    ((status, reason),) = counted(result, second)
    assert (counted(result, first)[0][0], status) == ("changed", "refused")
    assert f"{SUBNET} has no free address for 2 more" in reason
    assert len(aws.interfaces) == 2


def test_the_card_with_the_fewest_interfaces_gets_the_next(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "c6in.32xlarge")
    assert run("network_interfaces", instance_ids=[instance], **{**WANTED, "count": 4})["changed"]
    assert places(aws, instance) == [(0, 0), (1, 1), (0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("kind", "more", "options", "words"),
    [
        ("m5.large", {}, {"count": 4}, "m5.large takes at most 3 interfaces: 4 are too many"),
        ("m5.4xlarge", {"State": {"Code": 0, "Name": "pending"}}, {}, "is pending: wait"),
        (
            "m5.4xlarge",
            {"Operator": {"Managed": True, "Principal": "eks.amazonaws.com"}},
            {},
            "eks.amazonaws.com manages",
        ),
        ("m5.4xlarge", {"Tags": [{"Key": "kubernetes.io/cluster/a", "Value": "owned"}]}, {}, "node of a Kubernetes"),
        ("m5.4xlarge", {"NetworkInterfaces": []}, {}, "first interface is not known"),
        ("m5.4xlarge", {}, {"unconfirmed": ["i-00000000000000001"]}, "exactly one host"),
        ("m5.4xlarge", {}, {"subnet_ids": ["subnet-0000000c"]}, "none of subnet_ids is in its zone, eu-west-1a"),
        ("m5.4xlarge", {}, {"subnet_ids": ["subnet-0000000d"]}, "another VPC than its first interface"),
    ],
)
def test_what_cannot_be_or_could_harm_is_refused(
    run: Any, aws: FakeAws, kind: str, more: Any, options: Any, words: str
) -> None:
    instance = aws.add(1, kind, **more)
    aws.add_subnet("subnet-0000000c", zone="eu-west-1b")
    aws.add_subnet("subnet-0000000d", vpc_id="vpc-0000000d")
    result = run("network_interfaces", instance_ids=[instance], **{**WANTED, **options})
    ((status, reason),) = counted(result, instance)
    assert (status, words in reason, result["changed"]) == ("refused", True, False), reason
    assert aws.interfaces == {}


def test_an_instance_that_aws_is_about_to_stop_gets_nothing(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    aws.statuses[instance] = {"Events": [{"Code": "instance-stop", "Description": "soon"}]}
    assert counted(run("network_interfaces", instance_ids=[instance], **WANTED), instance)[0][0] == "refused"
    assert aws.interfaces == {}


def test_the_public_address_that_a_stop_takes_for_good_is_named(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    association = {"PublicIp": "198.51.100.1", "IpOwnerId": "amazon"}
    aws.instances[instance]["NetworkInterfaces"][0]["Association"] = association
    ((_status, reason),) = counted(run("network_interfaces", check=True, instance_ids=[instance], **WANTED), instance)
    assert "no public address" in reason


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"count": 0}, "count: 0 is not allowed: it must be from 1 to 1000"),
        ({"subnet_ids": ["subnet-x"]}, "subnet_ids: "),
        ({"security_group_ids": ["default"]}, "such as sg-0123456789abcdef0"),
        ({"tags": {"aws:name": "x"}}, "tags: "),
        ({"tags": {TAG: "x"}}, "doesn't begin with aws: or nearmetal:"),
        ({"tags": {str(number): "x" for number in range(50)}}, "tags: at most 49 are allowed"),
    ],
)
def test_a_wrong_option_is_named_before_aws_is_asked(run: Any, aws: FakeAws, options: Any, sentence: str) -> None:
    result = run("network_interfaces", filters={}, **{**WANTED, **options})
    assert (result["failed"], sentence in result["msg"]) == (True, True), result["msg"]
    assert not aws.calls


def test_a_subnet_that_is_not_there_is_named(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    result = run("network_interfaces", instance_ids=[instance], subnet_ids=["subnet-0000000f"], **WANTED)
    assert result["msg"] == "subnet_ids: subnet-0000000f: not found in eu-west-1"


def test_without_the_permission_to_look_nothing_is_attached(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    for operation in ("DescribeNetworkInterfaces", "DescribeSubnets"):
        aws.faults.clear()
        aws.fault(operation, "UnauthorizedOperation")
        ((status, reason),) = counted(run("network_interfaces", instance_ids=[instance], **WANTED), instance)
        assert (status, operation in reason) == ("unknown", True)
    assert aws.interfaces == {}


def test_only_what_we_made_for_this_instance_is_taken_back(run: Any, aws: FakeAws) -> None:
    instance, other = aws.add(1, "m5.4xlarge"), aws.add(2, "m5.4xlarge")
    run("network_interfaces", instance_ids=[instance], **{**WANTED, "count": 5})
    used, extended, moved, ours = aws.interfaces.values()
    used["Association"] = {"PublicIp": "198.51.100.1", "IpOwnerId": "111111111111"}
    extended["PrivateIpAddresses"].append({"PrivateIpAddress": "10.0.0.10", "Primary": False})
    moved["Attachment"]["InstanceId"] = other
    listed = aws.instances[instance]["NetworkInterfaces"]
    aws.instances[other]["NetworkInterfaces"].append(listed.pop(3))
    result = run("network_interfaces", instance_ids=[instance, other], state="restored")
    assert list(aws.interfaces.values()) == [used, extended, moved]
    assert sorted(status for status, _reason in counted(result, instance)) == [
        "advice",
        "changed",
        "refused",
        "refused",
    ]
    assert [status for status, _reason in counted(result, other)] == ["ok"]
    assert result["actions"][0]["before"]["card 0, device 4"] == ours["NetworkInterfaceId"]


def test_an_interface_that_was_left_is_attached_before_a_new_one_is_created(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    aws.fault("AttachNetworkInterface", "killed")
    with pytest.raises(Killed):
        run("network_interfaces", instance_ids=[instance], **WANTED)
    ((left, _raw),) = aws.interfaces.items()
    aws.faults.clear()
    aws.killed = False
    checked = run("network_interfaces", check=True, instance_ids=[instance], **WANTED)
    assert checked["diff"]["after"][instance]["interfaces"]["card 0, device 1"] == left
    done = run("network_interfaces", instance_ids=[instance], **WANTED)
    assert (done["diff"], len(aws.interfaces)) == (checked["diff"], 2)


def test_one_that_was_left_and_is_not_needed_is_named_and_restored_deletes_it(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    run("network_interfaces", instance_ids=[instance], **WANTED)
    aws.DetachNetworkInterface({"AttachmentId": "eni-attach-00000000000000f01"}, ("", ""))
    for _look in range(2):
        run("network_interfaces", instance_ids=[instance])
        aws.DescribeNetworkInterfaces({"Filters": [{"Name": f"tag:{TAG}", "Values": [instance]}]}, ("", ""))
    result = run("network_interfaces", instance_ids=[instance], **{**WANTED, "count": 2})
    assert "state: restored deletes it" in counted(result, instance)[0][1]
    run("network_interfaces", instance_ids=[instance], state="restored")
    assert aws.interfaces == {}


def test_a_host_that_holds_its_interface_is_a_failure_that_says_so(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    run("network_interfaces", instance_ids=[instance], **WANTED)
    second = list(aws.interfaces)[1]
    aws.held.append(second)
    result = run("network_interfaces", instance_ids=[instance], state="restored")
    assert (result["failed"], "the host still uses it" in result["msg"]) == (True, True)
    (action,) = result["actions"]
    assert action["after"] == {"card 0, device 0": "eni-00000000000000001", "card 0, device 2": second}


def test_an_interface_that_cannot_be_attached_is_deleted_again(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    # The first interface takes two attempts: AWS doesn't know it at once.
    aws.fault("AttachNetworkInterface", "UnauthorizedOperation", first=2)
    result = run("network_interfaces", instance_ids=[instance], **WANTED)
    assert "AttachNetworkInterface" in result["failed_instances"][instance]
    assert "the permission is ec2:AttachNetworkInterface" in result["msg"]
    assert (len(aws.interfaces), places(aws, instance)) == (1, [(0, 0), (0, 1)])
    (action,) = result["actions"]
    assert list(action["after"]) == ["card 0, device 0", "card 0, device 1"]


def test_one_that_can_be_neither_attached_nor_deleted_is_named(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    for operation in ("AttachNetworkInterface", "DeleteNetworkInterface"):
        aws.fault(operation, "UnauthorizedOperation")
    message = run("network_interfaces", instance_ids=[instance], **WANTED)["msg"]
    assert f"{next(iter(aws.interfaces))} remains, and the next run attaches it" in message


def test_a_repeated_request_makes_no_second_interface(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    aws.fault("CreateNetworkInterface", "lost", times=1)
    assert not run("network_interfaces", instance_ids=[instance], **{**WANTED, "count": 2}).get("failed")
    assert (aws.calls["CreateNetworkInterface"], len(aws.interfaces)) == (2, 1)


def test_an_interface_that_somebody_began_to_use_meanwhile_stays(
    run: Any, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = aws.add(1, "m5.4xlarge")
    run("network_interfaces", instance_ids=[instance], **{**WANTED, "count": 2})
    (raw,) = aws.interfaces.values()
    look = aws.DescribeNetworkInterfaces

    def then_used(request: Any, caller: Any) -> Any:
        answer = look(request, caller)
        raw["Association"] = {"PublicIp": "198.51.100.1", "IpOwnerId": "111111111111"}
        return answer

    monkeypatch.setattr(aws, "DescribeNetworkInterfaces", then_used)
    result = run("network_interfaces", instance_ids=[instance], state="restored")
    assert "changed or attached elsewhere meanwhile" in result["msg"]
    assert (result["changed"], list(aws.interfaces.values())) == (False, [raw])


def test_an_attachment_whose_answer_was_lost_is_seen(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "m5.4xlarge")
    aws.fault("AttachNetworkInterface", "lost")
    assert not run("network_interfaces", instance_ids=[instance], **WANTED).get("failed")
    assert places(aws, instance) == [(0, 0), (0, 1), (0, 2)]
