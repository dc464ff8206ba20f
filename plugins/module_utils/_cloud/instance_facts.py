# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of an instance, from answers of DescribeInstances and related calls. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple

from .stops.stop_mark import HIBERNATED, PowerFacts, power_facts
from .types.facts import TypeFacts, told, values_told

Raw = Mapping[str, Any]

# Events with these descriptions are over.
_PAST_EVENTS = ("[Completed]", "[Canceled]")
# Codes of a spot request that announce an interruption.
_SPOT_NOTICES = ("marked-for-stop", "marked-for-termination")
_UNCONFIRMED = (
    "it isn't certain which host this instance is: set its id as instance_id of exactly one host in the inventory; a "
    "host's own report is not enough for a change"
)
_EMR_TAG = "aws:elasticmapreduce:job-flow-id"


def _managed_by(answer: Raw) -> Optional[str]:
    operator = answer.get("Operator", {})
    if operator.get("Managed"):
        return str(operator.get("Principal") or "an AWS service")
    cluster = _tag(_EMR_TAG)(answer.get("Tags", ()))
    return f"EMR cluster {cluster}" if cluster else None


def _tag(key: str) -> Callable[[Any], Optional[str]]:
    """What finds the value of a tag among all."""
    return lambda tags: {tag.get("Key"): tag.get("Value") for tag in tags}.get(key)


def _is_lost_by_a_stop(interfaces: Sequence[Raw]) -> bool:
    associations = [interface.get("Association", {}) for interface in interfaces]
    return any(each.get("PublicIp") and each.get("IpOwnerId") == "amazon" for each in associations)


def _interfaces(answers: Sequence[Raw]) -> "Tuple[InterfaceFacts, ...]":
    interfaces = [InterfaceFacts(**values_told(InterfaceFacts, answer)) for answer in answers]
    return tuple(sorted(interfaces, key=lambda interface: (interface.card, interface.device_index or 0)))


@dataclass(frozen=True)
class InterfaceFacts:
    interface_id: str = field(default="", metadata=told("NetworkInterfaceId", ""))
    device_index: Optional[int] = field(default=None, metadata=told("Attachment.DeviceIndex"))
    card: int = field(default=0, metadata=told("Attachment.NetworkCardIndex", 0))
    kind: str = field(default="interface", metadata=told("InterfaceType", "interface"))  # interface | efa | …
    queues: Optional[int] = field(
        default=None, metadata=told("Attachment.EnaQueueCount")
    )  # if it was set; None: the type's default
    srd: bool = field(
        default=False, metadata=told("Attachment.EnaSrdSpecification.EnaSrdEnabled", False)
    )  # ENA Express
    srd_udp: bool = field(
        default=False, metadata=told("Attachment.EnaSrdSpecification.EnaSrdUdpSpecification.EnaSrdUdpEnabled", False)
    )
    source_dest_check: bool = field(default=True, metadata=told("SourceDestCheck", True))


@dataclass(frozen=True)
class InstanceFacts:
    """One instance as the API shows it. None: not known, or AWS did not say."""

    instance_id: str
    account: str  # its number
    account_name: str  # as in assume_roles; empty for the credentials' own account
    region: str
    power: PowerFacts
    availability_zone: Optional[str] = field(default=None, metadata=told("Placement.AvailabilityZone"))
    instance_type: str = field(default="", metadata=told("InstanceType", ""))
    state: Optional[str] = field(default=None, metadata=told("State.Name"))
    host_class: str = "unknown"  # xen_pv | xen_hvm | nitro | metal | unknown, by the type and the virtualization
    virtualization: Optional[str] = field(default=None, metadata=told("VirtualizationType"))  # hvm | paravirtual
    architecture: Optional[str] = field(default=None, metadata=told("Architecture"))
    lifecycle: str = field(
        default="on-demand",
        metadata=told("InstanceLifecycle", "", lambda lifecycle: lifecycle or "on-demand"),
    )  # or spot, scheduled, …
    ena_support: Optional[bool] = field(default=None, metadata=told("EnaSupport"))
    sriov_net_support: bool = field(
        default=False,
        metadata=told("SriovNetSupport", None, lambda support: support == "simple"),
    )
    ebs_optimized: Optional[bool] = field(default=None, metadata=told("EbsOptimized"))
    cores: Optional[int] = field(default=None, metadata=told("CpuOptions.CoreCount"))
    threads_per_core: Optional[int] = field(default=None, metadata=told("CpuOptions.ThreadsPerCore"))
    tenancy: Optional[str] = field(default=None, metadata=told("Placement.Tenancy"))
    placement_group: Optional[str] = field(
        default=None, metadata=told("Placement.GroupName", None, lambda name: name or None)
    )
    partition: Optional[int] = field(default=None, metadata=told("Placement.PartitionNumber"))
    root_device: Optional[str] = field(default=None, metadata=told("RootDeviceType"))  # ebs | instance-store
    boot_mode: Optional[str] = field(
        default=None,
        metadata=told("", {}, lambda answer: answer.get("CurrentInstanceBootMode") or answer.get("BootMode")),
    )
    kernel_id: Optional[str] = field(
        default=None, metadata=told("KernelId", None, lambda name: name or None)
    )  # aki-…: boots by PV-GRUB
    image_id: Optional[str] = field(default=None, metadata=told("ImageId"))
    # Has one that a stop gives back (no Elastic IP).
    public_address: bool = field(default=False, metadata=told("NetworkInterfaces", (), _is_lost_by_a_stop))
    auto_scaling_group: Optional[str] = field(
        default=None, metadata=told("Tags", (), _tag("aws:autoscaling:groupName"))
    )
    managed_by: Optional[str] = field(
        default=None, metadata=told("", {}, _managed_by)
    )  # a service that replaces what stops
    bandwidth_weighting: Optional[str] = field(
        default=None, metadata=told("NetworkPerformanceOptions.BandwidthWeighting")
    )
    workload: Optional[str] = field(default=None, metadata=told("Tags", (), _tag("workload")))
    interfaces: Tuple[InterfaceFacts, ...] = field(default=(), metadata=told("NetworkInterfaces", (), _interfaces))
    events: Tuple[str, ...] = ()  # scheduled and not past: "system-reboot not before 2026-01-01T00:00:00+00:00"
    spot_notice: Optional[str] = None
    unasked: Optional[str] = None  # why events or the spot notice could not be looked up, if they were requested

    @property
    def announced_end(self) -> Optional[str]:
        """What AWS is about to do to the instance itself."""
        if self.spot_notice:
            return f"spot notice: {self.spot_notice}"
        return f"scheduled event: {self.events[0]}" if self.events else None

    def untouchable(self, wanted: Mapping[str, Any]) -> Optional[str]:
        """Why nothing may be changed now: AWS changes it soon, or may do so, or it may be another host's."""
        return self.announced_end or self.unasked or self.unconfirmed(wanted)

    def unconfirmed(self, wanted: Mapping[str, Any]) -> Optional[str]:
        """Why nothing may be changed at all: the instance may be another host's; None if it is confirmed."""
        return _UNCONFIRMED if self.instance_id in (wanted.get("unconfirmed") or ()) else None

    @property
    def hibernated(self) -> bool:
        """Whether its memory waits on its disk for the next start."""
        return self.state == "stopped" and self.power.reason == HIBERNATED


def host_class(virtualization: Optional[str], kind: Optional[TypeFacts]) -> str:
    """The class by the type: DescribeInstances says xen for Nitro too."""
    if virtualization == "paravirtual":
        return "xen_pv"
    return kind.host_class if kind else "unknown"


def instance_facts(
    answer: Raw,
    account: str,
    account_name: str,
    region: str,
    kind: Optional[TypeFacts],
    status: Optional[Raw] = None,
    spot: Optional[Raw] = None,
    unasked: Optional[str] = None,
) -> InstanceFacts:
    """The facts in one instance of DescribeInstances; `status` and `spot` are other answers about it.

    `unasked` says why a requested answer of these two is missing.
    """
    notice = (spot or {}).get("Status", {}).get("Code")
    return InstanceFacts(
        answer["InstanceId"],
        account,
        account_name,
        region,
        power_facts(answer),
        host_class=host_class(answer.get("VirtualizationType"), kind),
        events=_events(status or {}),
        spot_notice=notice if notice in _SPOT_NOTICES else None,
        unasked=unasked,
        **values_told(InstanceFacts, answer),
    )


def _events(status: Raw) -> Tuple[str, ...]:
    pending = []
    for event in status.get("Events", ()):
        if not str(event.get("Description", "")).startswith(_PAST_EVENTS):
            start = event.get("NotBefore")
            pending.append(f"{event.get('Code')}{f' not before {start.isoformat()}' if start else ''}")
    return tuple(sorted(pending))
