# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of an instance, from answers of DescribeInstances and related calls. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

from .stops.stop_mark import HIBERNATED, PowerFacts, power_facts
from .types.facts import TypeFacts

Raw = Mapping[str, Any]

# Events with these descriptions are over.
_PAST_EVENTS = ("[Completed]", "[Canceled]")
# Codes of a spot request that announce an interruption.
_SPOT_NOTICES = ("marked-for-stop", "marked-for-termination")
_UNCONFIRMED = (
    "it isn't certain which host this instance is: set its id as instance_id of exactly one host in the inventory; a "
    "host's own report is not enough for a change"
)
_ASG_TAG = "aws:autoscaling:groupName"
_EMR_TAG = "aws:elasticmapreduce:job-flow-id"


@dataclass(frozen=True)
class InterfaceFacts:
    """One attached network interface."""

    interface_id: str
    device_index: Optional[int]
    card: int
    kind: str  # interface | efa | …
    queues: Optional[int]  # EnaQueueCount if it was set; None: the type's default
    srd: bool  # ENA Express
    srd_udp: bool
    source_dest_check: bool


@dataclass(frozen=True)
class InstanceFacts:
    """One instance as the API shows it. None: not known, or AWS did not say."""

    instance_id: str
    account: str  # its number
    account_name: str  # as in assume_roles; empty for the credentials' own account
    region: str
    availability_zone: Optional[str]
    instance_type: str
    state: Optional[str]
    host_class: str  # xen_pv | xen_hvm | nitro | metal | unknown, by the type and the virtualization
    virtualization: Optional[str]  # hvm | paravirtual
    architecture: Optional[str]
    lifecycle: str  # on-demand | spot | scheduled | …
    ena_support: Optional[bool]
    sriov_net_support: bool
    ebs_optimized: Optional[bool]
    cores: Optional[int]
    threads_per_core: Optional[int]
    tenancy: Optional[str]
    placement_group: Optional[str]
    partition: Optional[int]
    root_device: Optional[str]  # ebs | instance-store
    boot_mode: Optional[str]
    kernel_id: Optional[str]  # aki-…: boots by PV-GRUB
    image_id: Optional[str]
    public_address: bool  # has one that a stop gives back (no Elastic IP)
    auto_scaling_group: Optional[str]
    managed_by: Optional[str]  # a service that replaces what stops
    bandwidth_weighting: Optional[str]
    workload: Optional[str]  # the value of the tag workload
    interfaces: Tuple[InterfaceFacts, ...]
    events: Tuple[str, ...]  # scheduled and not past: "system-reboot not before 2026-01-01T00:00:00+00:00"
    spot_notice: Optional[str]
    unasked: Optional[str]  # why events or the spot notice could not be looked up, if they were requested
    power: PowerFacts

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
    cpu, place = answer.get("CpuOptions", {}), answer.get("Placement", {})
    tags = {tag.get("Key"): tag.get("Value") for tag in answer.get("Tags", ())}
    interfaces = tuple(_interface(interface) for interface in answer.get("NetworkInterfaces", ()))
    return InstanceFacts(
        instance_id=answer["InstanceId"],
        account=account,
        account_name=account_name,
        region=region,
        availability_zone=place.get("AvailabilityZone"),
        instance_type=answer.get("InstanceType", ""),
        state=answer.get("State", {}).get("Name"),
        host_class=host_class(answer.get("VirtualizationType"), kind),
        virtualization=answer.get("VirtualizationType"),
        architecture=answer.get("Architecture"),
        lifecycle=answer.get("InstanceLifecycle") or "on-demand",
        ena_support=answer.get("EnaSupport"),
        sriov_net_support=answer.get("SriovNetSupport") == "simple",
        ebs_optimized=answer.get("EbsOptimized"),
        cores=cpu.get("CoreCount"),
        threads_per_core=cpu.get("ThreadsPerCore"),
        tenancy=place.get("Tenancy"),
        placement_group=place.get("GroupName") or None,
        partition=place.get("PartitionNumber"),
        root_device=answer.get("RootDeviceType"),
        boot_mode=answer.get("CurrentInstanceBootMode") or answer.get("BootMode"),
        kernel_id=answer.get("KernelId") or None,
        image_id=answer.get("ImageId"),
        public_address=any(_is_lost_by_a_stop(interface) for interface in answer.get("NetworkInterfaces", ())),
        auto_scaling_group=tags.get(_ASG_TAG),
        managed_by=_managed_by(answer, tags),
        bandwidth_weighting=answer.get("NetworkPerformanceOptions", {}).get("BandwidthWeighting"),
        workload=tags.get("workload"),
        interfaces=tuple(sorted(interfaces, key=lambda interface: (interface.card, interface.device_index or 0))),
        events=_events(status or {}),
        spot_notice=_spot_notice(spot or {}),
        unasked=unasked,
        power=power_facts(answer),
    )


def _interface(answer: Raw) -> InterfaceFacts:
    attachment = answer.get("Attachment", {})
    srd = attachment.get("EnaSrdSpecification", {})
    return InterfaceFacts(
        interface_id=answer.get("NetworkInterfaceId", ""),
        device_index=attachment.get("DeviceIndex"),
        card=attachment.get("NetworkCardIndex", 0),
        kind=answer.get("InterfaceType", "interface"),
        queues=attachment.get("EnaQueueCount"),
        srd=srd.get("EnaSrdEnabled", False),
        srd_udp=srd.get("EnaSrdUdpSpecification", {}).get("EnaSrdUdpEnabled", False),
        source_dest_check=answer.get("SourceDestCheck", True),
    )


def _managed_by(answer: Raw, tags: Mapping[Any, Any]) -> Optional[str]:
    operator = answer.get("Operator", {})
    if operator.get("Managed"):
        return str(operator.get("Principal") or "an AWS service")
    return f"EMR cluster {tags[_EMR_TAG]}" if tags.get(_EMR_TAG) else None


def _is_lost_by_a_stop(interface: Raw) -> bool:
    association = interface.get("Association", {})
    return bool(association.get("PublicIp")) and association.get("IpOwnerId") == "amazon"


def _events(status: Raw) -> Tuple[str, ...]:
    pending = []
    for event in status.get("Events", ()):
        if not str(event.get("Description", "")).startswith(_PAST_EVENTS):
            start = event.get("NotBefore")
            pending.append(f"{event.get('Code')}{f' not before {start.isoformat()}' if start else ''}")
    return tuple(sorted(pending))


def _spot_notice(request: Raw) -> Optional[str]:
    code = request.get("Status", {}).get("Code")
    return code if code in _SPOT_NOTICES else None
