# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of an instance type, from an answer of DescribeInstanceTypes. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

# ixgbevf's virtual function (sriovNetSupport) exists only here (Netflix, 2016); the API doesn't say so.
# m4.16xlarge has ENA instead.
_SRIOV_FAMILIES = ("c3", "c4", "d2", "i2", "m4", "r3")


def told(path: str, absent: Any = None, make: Callable[[Any], Any] = lambda value: value) -> Dict[str, Any]:
    """That a fact is at a path into an answer of AWS, the whole one for none; `absent` where it is lacking."""
    return {"path": path, "absent": absent, "make": make}


def values_told(facts: Any, answer: Mapping[str, Any]) -> Dict[str, Any]:
    """The values in an answer, for the fields of `facts` that say where they are told."""
    values = {}
    for fact in (fact for fact in fields(facts) if "path" in fact.metadata):
        value: Any = answer
        for step in filter(None, fact.metadata["path"].split(".")):
            value = value.get(step) if isinstance(value, Mapping) else None
        values[fact.name] = fact.metadata["make"](fact.metadata["absent"] if value is None else value)
    return values


def _in_order(values: List[str]) -> Tuple[str, ...]:
    return tuple(sorted(values))


def _is_supported(value: Any) -> bool:
    return bool(value == "supported")


def _cards(cards: List[Mapping[str, Any]]) -> "Tuple[CardFacts, ...]":
    in_order = sorted(cards, key=lambda card: card.get("NetworkCardIndex", 0))
    return tuple(CardFacts(**values_told(CardFacts, card)) for card in in_order)


@dataclass(frozen=True)
class CardFacts:
    """One network card of a type. Queue counts mean nothing where the type has no ENA."""

    max_interfaces: Optional[int] = field(default=None, metadata=told("MaximumNetworkInterfaces"))
    # Per interface, unless EnaQueueCount asks for another number.
    default_queues: Optional[int] = field(default=None, metadata=told("DefaultEnaQueueCountPerInterface"))
    # None where queues are not flexible.
    max_queues_per_interface: Optional[int] = field(default=None, metadata=told("MaximumEnaQueueCountPerInterface"))
    max_queues: Optional[int] = field(
        default=None, metadata=told("MaximumEnaQueueCount")
    )  # the card's pool, shared by its interfaces
    baseline_gbps: Optional[float] = field(default=None, metadata=told("BaselineBandwidthInGbps"))
    peak_gbps: Optional[float] = field(default=None, metadata=told("PeakBandwidthInGbps"))


@dataclass(frozen=True)
class TypeFacts:
    """One instance type. None: not known. Source: DescribeInstanceTypes, unless `source` says otherwise."""

    instance_type: str
    current_generation: Optional[bool] = field(default=None, metadata=told("CurrentGeneration"))
    hypervisor: Optional[str] = field(default=None, metadata=told("Hypervisor"))  # nitro | xen; None on bare metal
    bare_metal: bool = field(default=False, metadata=told("BareMetal", False))
    burstable: bool = field(default=False, metadata=told("BurstablePerformanceSupported", False))
    virtualization_types: Tuple[str, ...] = field(
        default=(), metadata=told("SupportedVirtualizationTypes", (), _in_order)
    )
    architectures: Tuple[str, ...] = field(
        default=(), metadata=told("ProcessorInfo.SupportedArchitectures", (), _in_order)
    )
    manufacturer: Optional[str] = field(default=None, metadata=told("ProcessorInfo.Manufacturer"))
    vcpus: Optional[int] = field(default=None, metadata=told("VCpuInfo.DefaultVCpus"))
    cores: Optional[int] = field(default=None, metadata=told("VCpuInfo.DefaultCores"))
    threads_per_core: Optional[int] = field(default=None, metadata=told("VCpuInfo.DefaultThreadsPerCore"))
    valid_cores: Tuple[int, ...] = field(
        default=(), metadata=told("VCpuInfo.ValidCores", (), tuple)
    )  # empty: CpuOptions can't be chosen
    valid_threads_per_core: Tuple[int, ...] = field(
        default=(), metadata=told("VCpuInfo.ValidThreadsPerCore", (), tuple)
    )
    memory_mib: Optional[int] = field(default=None, metadata=told("MemoryInfo.SizeInMiB"))
    # default (always on) | supported (must be turned on) | unsupported
    ebs_optimized: Optional[str] = field(default=None, metadata=told("EbsInfo.EbsOptimizedSupport"))
    ebs_nvme: Optional[str] = field(default=None, metadata=told("EbsInfo.NvmeSupport"))
    ebs_baseline_iops: Optional[int] = field(
        default=None, metadata=told("EbsInfo.EbsOptimizedInfo.BaselineIops")
    )  # at 16 KiB
    ebs_maximum_iops: Optional[int] = field(default=None, metadata=told("EbsInfo.EbsOptimizedInfo.MaximumIops"))
    # 10^6 bytes per second.
    ebs_baseline_mb_s: Optional[float] = field(
        default=None, metadata=told("EbsInfo.EbsOptimizedInfo.BaselineThroughputInMBps")
    )
    ebs_maximum_mb_s: Optional[float] = field(
        default=None, metadata=told("EbsInfo.EbsOptimizedInfo.MaximumThroughputInMBps")
    )
    ebs_cards: int = field(
        default=1, metadata=told("EbsInfo.MaximumEbsCards", 1)
    )  # each has an equal share of these figures
    instance_store_gb: Optional[int] = field(default=None, metadata=told("InstanceStorageInfo.TotalSizeInGB"))
    instance_store_nvme: Optional[str] = field(default=None, metadata=told("InstanceStorageInfo.NvmeSupport"))
    ena: Optional[str] = field(
        default=None, metadata=told("NetworkInfo.EnaSupport")
    )  # required | supported | unsupported
    ena_srd: bool = field(default=False, metadata=told("NetworkInfo.EnaSrdSupported", False))
    efa: bool = field(default=False, metadata=told("NetworkInfo.EfaSupported", False))
    max_interfaces: Optional[int] = field(default=None, metadata=told("NetworkInfo.MaximumNetworkInterfaces"))
    network_performance: Optional[str] = field(default=None, metadata=told("NetworkInfo.NetworkPerformance"))
    flexible_ena_queues: bool = field(
        default=False, metadata=told("NetworkInfo.FlexibleEnaQueuesSupport", None, _is_supported)
    )
    bandwidth_weightings: Tuple[str, ...] = field(
        default=(), metadata=told("NetworkInfo.BandwidthWeightings", (), _in_order)
    )
    # A security group forgets an idle flow after this.
    tcp_established_timeout_s: Optional[int] = field(
        default=None, metadata=told("NetworkInfo.ConnectionTrackingConfiguration.DefaultTcpEstablishedTimeout")
    )
    placement_strategies: Tuple[str, ...] = field(
        default=(), metadata=told("PlacementGroupInfo.SupportedStrategies", (), _in_order)
    )
    phc: bool = field(default=False, metadata=told("PhcSupport", None, _is_supported))
    cards: Tuple[CardFacts, ...] = field(default=(), metadata=told("NetworkInfo.NetworkCards", (), _cards))
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
    return TypeFacts(answer["InstanceType"], **values_told(TypeFacts, answer))
