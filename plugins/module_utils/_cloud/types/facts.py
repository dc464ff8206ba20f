# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of an instance type, from an answer of DescribeInstanceTypes. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

# ixgbevf's virtual function (sriovNetSupport) exists only here (Netflix, 2016); the API doesn't say so.
# m4.16xlarge has ENA instead.
_SRIOV_FAMILIES = ("c3", "c4", "d2", "i2", "m4", "r3")


@dataclass(frozen=True)
class CardFacts:
    """One network card of a type. Queue counts mean nothing where the type has no ENA."""

    max_interfaces: Optional[int]
    default_queues: Optional[int]  # per interface, unless EnaQueueCount asks for another number
    max_queues_per_interface: Optional[int]  # None where queues are not flexible
    max_queues: Optional[int]  # the card's pool, shared by its interfaces
    baseline_gbps: Optional[float]
    peak_gbps: Optional[float]


@dataclass(frozen=True)
class TypeFacts:
    """One instance type. None: not known. Source: DescribeInstanceTypes, unless `source` says otherwise."""

    instance_type: str
    current_generation: Optional[bool] = None
    hypervisor: Optional[str] = None  # nitro | xen; None on bare metal
    bare_metal: bool = False
    burstable: bool = False
    virtualization_types: Tuple[str, ...] = ()
    architectures: Tuple[str, ...] = ()
    manufacturer: Optional[str] = None
    vcpus: Optional[int] = None
    cores: Optional[int] = None
    threads_per_core: Optional[int] = None
    valid_cores: Tuple[int, ...] = ()  # empty: CpuOptions can't be chosen
    valid_threads_per_core: Tuple[int, ...] = ()
    memory_mib: Optional[int] = None
    ebs_optimized: Optional[str] = None  # default (always on) | supported (must be turned on) | unsupported
    ebs_nvme: Optional[str] = None
    ebs_baseline_iops: Optional[int] = None  # at 16 KiB
    ebs_maximum_iops: Optional[int] = None
    ebs_baseline_mb_s: Optional[float] = None  # 10^6 bytes per second
    ebs_maximum_mb_s: Optional[float] = None
    ebs_cards: int = 1  # each has an equal share of these figures
    instance_store_gb: Optional[int] = None
    instance_store_nvme: Optional[str] = None
    ena: Optional[str] = None  # required | supported | unsupported
    ena_srd: bool = False
    efa: bool = False
    max_interfaces: Optional[int] = None
    network_performance: Optional[str] = None
    flexible_ena_queues: bool = False
    bandwidth_weightings: Tuple[str, ...] = ()
    tcp_established_timeout_s: Optional[int] = None  # a security group forgets an idle flow after this
    placement_strategies: Tuple[str, ...] = ()
    phc: bool = False
    cards: Tuple[CardFacts, ...] = ()
    source: str = "api"  # api | table | sources (the documents the project started from)
    reference: str = ""  # where source is `sources`

    @property
    def sriov(self) -> bool:
        """Whether ixgbevf's virtual function can be turned on."""
        family, _dot, size = self.instance_type.partition(".")
        return family in _SRIOV_FAMILIES and not (family == "m4" and size == "16xlarge")

    @property
    def host_class(self) -> str:
        """metal, nitro or xen_hvm, by the type: DescribeInstances calls both hypervisors xen."""
        if self.bare_metal:
            return "metal"
        return "nitro" if self.hypervisor == "nitro" else "xen_hvm"

    def as_dict(self) -> Dict[str, Any]:
        """The facts as plain JSON data."""
        plain = asdict(self)
        for key, value in plain.items():
            if isinstance(value, tuple):
                plain[key] = list(value)
        plain.update(sriov=self.sriov, host_class=self.host_class)
        return plain


def type_facts(answer: Mapping[str, Any]) -> TypeFacts:
    """The facts in one element of DescribeInstanceTypes' `InstanceTypes`."""
    cpu, ebs, net = answer.get("VCpuInfo", {}), answer.get("EbsInfo", {}), answer.get("NetworkInfo", {})
    limits, store = ebs.get("EbsOptimizedInfo", {}), answer.get("InstanceStorageInfo", {})
    return TypeFacts(
        instance_type=answer["InstanceType"],
        current_generation=answer.get("CurrentGeneration"),
        hypervisor=answer.get("Hypervisor"),
        bare_metal=answer.get("BareMetal", False),
        burstable=answer.get("BurstablePerformanceSupported", False),
        virtualization_types=_sorted(answer.get("SupportedVirtualizationTypes")),
        architectures=_sorted(answer.get("ProcessorInfo", {}).get("SupportedArchitectures")),
        manufacturer=answer.get("ProcessorInfo", {}).get("Manufacturer"),
        vcpus=cpu.get("DefaultVCpus"),
        cores=cpu.get("DefaultCores"),
        threads_per_core=cpu.get("DefaultThreadsPerCore"),
        valid_cores=tuple(cpu.get("ValidCores", ())),
        valid_threads_per_core=tuple(cpu.get("ValidThreadsPerCore", ())),
        memory_mib=answer.get("MemoryInfo", {}).get("SizeInMiB"),
        ebs_optimized=ebs.get("EbsOptimizedSupport"),
        ebs_nvme=ebs.get("NvmeSupport"),
        ebs_baseline_iops=limits.get("BaselineIops"),
        ebs_maximum_iops=limits.get("MaximumIops"),
        ebs_baseline_mb_s=limits.get("BaselineThroughputInMBps"),
        ebs_maximum_mb_s=limits.get("MaximumThroughputInMBps"),
        ebs_cards=ebs.get("MaximumEbsCards", 1),
        instance_store_gb=store.get("TotalSizeInGB"),
        instance_store_nvme=store.get("NvmeSupport"),
        ena=net.get("EnaSupport"),
        ena_srd=net.get("EnaSrdSupported", False),
        efa=net.get("EfaSupported", False),
        max_interfaces=net.get("MaximumNetworkInterfaces"),
        network_performance=net.get("NetworkPerformance"),
        flexible_ena_queues=net.get("FlexibleEnaQueuesSupport") == "supported",
        bandwidth_weightings=_sorted(net.get("BandwidthWeightings")),
        tcp_established_timeout_s=net.get("ConnectionTrackingConfiguration", {}).get("DefaultTcpEstablishedTimeout"),
        placement_strategies=_sorted(answer.get("PlacementGroupInfo", {}).get("SupportedStrategies")),
        phc=answer.get("PhcSupport") == "supported",
        cards=_cards(net.get("NetworkCards", [])),
    )


def _sorted(values: Optional[List[str]]) -> Tuple[str, ...]:
    return tuple(sorted(values or ()))


def _cards(cards: List[Mapping[str, Any]]) -> Tuple[CardFacts, ...]:
    return tuple(
        CardFacts(
            max_interfaces=card.get("MaximumNetworkInterfaces"),
            default_queues=card.get("DefaultEnaQueueCountPerInterface"),
            max_queues_per_interface=card.get("MaximumEnaQueueCountPerInterface"),
            max_queues=card.get("MaximumEnaQueueCount"),
            baseline_gbps=card.get("BaselineBandwidthInGbps"),
            peak_gbps=card.get("PeakBandwidthInGbps"),
        )
        for card in sorted(cards, key=lambda card: card.get("NetworkCardIndex", 0))
    )
