# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network interfaces and subnets of the fake AWS, with AWS's rules on where an interface may be attached.

What AWS does in its own time takes until the second look here: an interface that is attached is attaching, and one
that is detached is detaching when it is looked at first. A new one isn't known where it is to be attached at first.
"""

from __future__ import annotations

import copy
import gzip
import json
from functools import lru_cache
from importlib import resources
from typing import Any, Dict, List, Tuple

from tests.support.aws.fake_error import AwsError

Raw = Dict[str, Any]
SUBNET, VPC, GROUP = "subnet-0000000a", "vpc-0000000a", "sg-0000000a"


class FakeInterfaces:
    """The interfaces that were created, and all subnets."""

    instances: Dict[str, Raw]
    owners: Dict[str, Tuple[str, str]]

    def __init__(self) -> None:
        self.interfaces: Dict[str, Raw] = {}
        self.subnets: Dict[str, Raw] = {}
        self.news: List[str] = []  # interfaces that not every server of AWS knows yet
        self.held: List[str] = []  # interfaces that their host never lets go
        self._tokens: Dict[str, str] = {}
        self.add_subnet(SUBNET)

    def add_subnet(self, subnet_id: str, zone: str = "eu-west-1a", vpc_id: str = VPC, free: int = 100) -> None:
        """One more subnet."""
        self.subnets[subnet_id] = {
            "SubnetId": subnet_id,
            "VpcId": vpc_id,
            "AvailabilityZone": zone,
            "AvailableIpAddressCount": free,
        }

    def DescribeSubnets(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """The subnets of these ids."""
        (wanted,) = request["Filters"]
        assert wanted["Name"] == "subnet-id"
        return {"Subnets": [raw for subnet_id, raw in self.subnets.items() if subnet_id in wanted["Values"]]}

    def DescribeNetworkInterfaces(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """The interfaces that match; looking at one moves it on."""
        (wanted,) = request["Filters"]
        assert len(wanted["Values"]) <= 200
        found = []
        for interface_id, raw in list(self.interfaces.items()):
            tags = {tag["Key"]: tag["Value"] for tag in raw["TagSet"]}
            value = interface_id if wanted["Name"] == "network-interface-id" else tags.get(wanted["Name"][4:])
            if value in wanted["Values"]:
                found.append(copy.deepcopy(raw))
                self._move_on(raw)
        return {"NetworkInterfaces": found}

    def _move_on(self, raw: Raw) -> None:
        interface_id = raw["NetworkInterfaceId"]
        if raw["Status"] == "detaching" and interface_id not in self.held:
            raw["Status"] = "available"
            listed = self.instances[raw.pop("Attachment")["InstanceId"]]["NetworkInterfaces"]
            listed[:] = [shown for shown in listed if shown["NetworkInterfaceId"] != interface_id]
        elif raw["Status"] == "in-use":
            raw["Attachment"]["Status"] = "attached"

    def _interface(self, interface_id: str) -> Raw:
        if interface_id not in self.interfaces:
            raise AwsError("InvalidNetworkInterfaceID.NotFound", f"'{interface_id}' does not exist")
        return self.interfaces[interface_id]

    def CreateNetworkInterface(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """A new interface, or the one that the same token made before."""
        token = request["ClientToken"]
        if token not in self._tokens:
            subnet = self.subnets[request["SubnetId"]]
            if not subnet["AvailableIpAddressCount"]:
                raise AwsError("InsufficientFreeAddressesInSubnet", "the subnet has no free address")
            subnet["AvailableIpAddressCount"] -= 1
            interface_id = f"eni-{len(self._tokens) + 0xF00:017x}"
            self._tokens[token] = interface_id
            self.news.append(interface_id)
            (specification,) = request["TagSpecifications"]
            assert specification["ResourceType"] == "network-interface"
            self.interfaces[interface_id] = {
                "NetworkInterfaceId": interface_id,
                "SubnetId": request["SubnetId"],
                "VpcId": subnet["VpcId"],
                "AvailabilityZone": subnet["AvailabilityZone"],
                "Groups": [{"GroupId": group} for group in request["Groups"]],
                "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.0.9", "Primary": True}],
                "Status": "available",
                "TagSet": specification["Tags"],
            }
        return {"NetworkInterface": copy.deepcopy(self.interfaces[self._tokens[token]])}

    def AttachNetworkInterface(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """Attach an interface, if the instance's type and zone allow it."""
        if request["NetworkInterfaceId"] in self.news:
            self.news.remove(request["NetworkInterfaceId"])
            raise AwsError("InvalidNetworkInterfaceID.NotFound", "not known yet")
        raw, instance = self._interface(request["NetworkInterfaceId"]), self.instances.get(request["InstanceId"])
        if instance is None or instance["State"]["Name"] not in ("running", "stopped"):
            raise AwsError("IncorrectInstanceState", "the instance is neither running nor stopped")
        if raw["Status"] != "available":
            raise AwsError("InvalidNetworkInterface.InUse", f"it is {raw['Status']}")
        if raw["AvailabilityZone"] != instance["Placement"]["AvailabilityZone"]:
            raise AwsError("InvalidParameterCombination", "another zone")
        card, device, listed = request["NetworkCardIndex"], request["DeviceIndex"], instance["NetworkInterfaces"]
        places = [
            (shown["Attachment"].get("NetworkCardIndex", 0), shown["Attachment"]["DeviceIndex"]) for shown in listed
        ]
        network = network_of(instance["InstanceType"])
        on_card = [place for place in places if place[0] == card]
        if (card, device) in places:
            raise AwsError("InvalidParameterValue", f"an interface is attached at device index {device}")
        if (
            len(listed) >= network["MaximumNetworkInterfaces"]
            or len(on_card) >= network["NetworkCards"][card]["MaximumNetworkInterfaces"]
        ):
            raise AwsError("AttachmentLimitExceeded", "the type takes no more")
        attachment = {
            "AttachmentId": f"eni-attach-{request['NetworkInterfaceId'][4:]}",
            "DeleteOnTermination": False,
            "DeviceIndex": device,
            "NetworkCardIndex": card,
            "Status": "attaching",
        }
        raw.update(Status="in-use", Attachment={**attachment, "InstanceId": request["InstanceId"]})
        shown = {name: raw[name] for name in ("NetworkInterfaceId", "SubnetId", "VpcId", "Groups")}
        listed.append({**shown, "Attachment": attachment})
        return {"AttachmentId": attachment["AttachmentId"], "NetworkCardIndex": card}

    def ModifyNetworkInterfaceAttribute(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """Set whether the interface is deleted with its instance; nothing else is asked for."""
        raw = self._interface(request["NetworkInterfaceId"])
        assert request["Attachment"]["AttachmentId"] == raw["Attachment"]["AttachmentId"]
        raw["Attachment"]["DeleteOnTermination"] = request["Attachment"]["DeleteOnTermination"]
        return {}

    def DetachNetworkInterface(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """Begin to detach an interface."""
        assert not request.get("Force"), "a device that is torn out can hang the host"
        for raw in self.interfaces.values():
            if raw.get("Attachment", {}).get("AttachmentId") == request["AttachmentId"]:
                raw["Status"] = "detaching"
                return {}
        raise AwsError("InvalidAttachmentID.NotFound", f"'{request['AttachmentId']}' does not exist")

    def DeleteNetworkInterface(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """Delete an interface that is attached to nothing."""
        raw = self._interface(request["NetworkInterfaceId"])
        if raw.get("Attachment"):
            raise AwsError("InvalidNetworkInterface.InUse", "it is attached")
        self.subnets[raw["SubnetId"]]["AvailableIpAddressCount"] += 1
        del self.interfaces[request["NetworkInterfaceId"]]
        return {}


@lru_cache(maxsize=None)
def all_types() -> List[Raw]:
    """DescribeInstanceTypes as moto ships it."""
    packed = resources.files("moto").joinpath("ec2", "resources", "instance_types.json.gz").read_bytes()
    types: List[Raw] = list(json.loads(gzip.decompress(packed)).values())
    for kind in types:
        kind["ProcessorInfo"].pop("SupportedFeatures", None)  # has values that botocore's model doesn't know yet
    return types


def network_of(name: str) -> Raw:
    """The network of a type."""
    return next(kind["NetworkInfo"] for kind in all_types() if kind["InstanceType"] == name)
