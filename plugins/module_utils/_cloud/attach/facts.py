# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces as AWS shows them, and who made them. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from ..types.facts import told, values_told

# Written when an interface is created; its value is the instance for which it was made.
TAG = "nearmetal:attached-to"
_CLUSTER = "kubernetes.io/cluster/"  # EKS, and other installers of Kubernetes, tag their nodes so

Raw = Mapping[str, Any]


def _used(answer: Raw) -> str:
    if answer.get("Association", {}).get("PublicIp"):
        return "an Elastic IP address"
    if len(answer.get("PrivateIpAddresses", ())) > 1 or answer.get("Ipv4Prefixes") or answer.get("Ipv6Prefixes"):
        return "further addresses"
    return ""


def _made_for(tags: Iterable[Raw]) -> str:
    """The instance in nearmetal's tag."""
    return {str(tag.get("Key")): str(tag.get("Value", "")) for tag in tags}.get(TAG, "")


@dataclass(frozen=True)
class Interface:
    interface_id: str = field(default="", metadata=told("NetworkInterfaceId", ""))
    subnet_id: str = field(default="", metadata=told("SubnetId", ""))
    vpc_id: str = field(default="", metadata=told("VpcId", ""))
    groups: Tuple[str, ...] = field(
        default=(),
        metadata=told("Groups", (), lambda groups: tuple(sorted(group["GroupId"] for group in groups))),
    )
    card: int = field(default=0, metadata=told("Attachment.NetworkCardIndex", 0))
    device: Optional[int] = field(default=None, metadata=told("Attachment.DeviceIndex"))  # None: it isn't attached
    attachment_id: str = field(default="", metadata=told("Attachment.AttachmentId", ""))
    # To which it is attached; empty: to none.
    instance_id: str = field(default="", metadata=told("Attachment.InstanceId", ""))
    made_for: str = field(default="", metadata=told("TagSet", (), _made_for))  # empty: nearmetal didn't make it
    # AWS deletes it when the instance is terminated.
    goes_with_instance: bool = field(default=False, metadata=told("Attachment.DeleteOnTermination", False, bool))
    used: str = field(default="", metadata=told("", {}, _used))  # what somebody has given it since; empty: nothing

    @property
    def place(self) -> str:
        """Where it is attached, in the words of a report."""
        return f"card {self.card}, device {self.device}"

    @property
    def made_by_nearmetal(self) -> bool:
        """Whether we made it for the instance to which it is attached."""
        return bool(self.made_for) and self.made_for == self.instance_id


@dataclass(frozen=True)
class Subnet:
    subnet_id: str
    zone: str
    vpc_id: str
    free: int  # addresses


@dataclass(frozen=True)
class Attachments:
    """What is known of one instance's interfaces."""

    attached: Tuple[Interface, ...] = ()
    unattached: Tuple[Interface, ...] = ()  # made for it by an earlier run, and attached to nothing
    elsewhere: Tuple[Interface, ...] = ()  # made for it by an earlier run, and attached to another instance
    cluster_node: bool = False
    problem: str = ""  # why this is not known

    @property
    def first(self) -> Optional[Interface]:
        """The interface that the instance was launched with."""
        return next((eni for eni in self.attached if (eni.card, eni.device) == (0, 0)), None)


def interface(answer: Raw, instance_id: str = "") -> Interface:
    """The facts in an answer of DescribeNetworkInterfaces, or in an instance's own list, which lacks the tags."""
    known = Interface(**values_told(Interface, answer))
    attached_to = known.instance_id or (instance_id if answer.get("Attachment") else "")
    return replace(known, instance_id=attached_to)


def attachments(instance_id: str, instance: Raw, made: Iterable[Raw], problem: str) -> Attachments:
    """The facts of one instance: its own answer, and the answers about interfaces with nearmetal's tag for it.

    The two answers may be of different moments: what either of them has is attached.
    """
    made_by_nearmetal = [interface(answer) for answer in made]
    listed = [answer for answer in instance.get("NetworkInterfaces", ()) if answer.get("NetworkInterfaceId")]
    attached = {answer["NetworkInterfaceId"]: interface(answer, instance_id) for answer in listed}
    attached.update((eni.interface_id, eni) for eni in made_by_nearmetal if eni.instance_id == instance_id)
    not_attached = [eni for eni in made_by_nearmetal if eni.interface_id not in attached]
    return Attachments(
        attached=tuple(sorted(attached.values(), key=lambda eni: (eni.card, eni.device or 0))),
        unattached=tuple(eni for eni in not_attached if not eni.instance_id),
        elsewhere=tuple(eni for eni in not_attached if eni.instance_id),
        cluster_node=any(str(tag.get("Key")).startswith(_CLUSTER) for tag in instance.get("Tags", ())),
        problem=problem,
    )


def subnets(answers: Iterable[Raw]) -> Dict[str, Subnet]:
    """The facts in DescribeSubnets' answer, by id."""
    return {
        answer["SubnetId"]: Subnet(
            answer["SubnetId"],
            answer.get("AvailabilityZone", ""),
            answer.get("VpcId", ""),
            answer.get("AvailableIpAddressCount", 0),
        )
        for answer in answers
    }
