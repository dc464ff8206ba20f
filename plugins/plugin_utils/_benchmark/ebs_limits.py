# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk's figures beside the limits of EBS: whose limit the knee is. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

from ...module_utils._benchmark.tools.disk import SHAPES
from ...module_utils._cloud.types.facts import TypeFacts
from ...module_utils._facts.disk import EBS
from ...module_utils._prove.statistics.metrics import LARGEST, MOST_METRICS, SMALLEST
from .._clean import mapping, mappings

# AWS's page "Amazon EBS-optimized instances" gives an instance's requests for 16 KiB, its throughput in MB of 10^6.
_MB, _KIB = 1e6, 1024
_HELD = 10  # ms: a shorter time is a moment at the start
_LONGEST = 10**12  # ms
_NEAR = 0.93  # of a limit: a run that does so much has reached it


def sentence(result: Mapping[str, Any], kind: Optional[TypeFacts]) -> str:
    """What the figures of a result, which a host wrote, say about EBS's limits; empty without an EBS volume."""
    details = mapping(result.get("details"))
    if details.get("kinds") != [EBS]:
        return ""
    requests = _requests(result, details)
    if requests is None:
        return ""
    known = _instance(kind)
    cause = _held_back(details.get("held_back_ms"))
    if cause is None:
        cause = _by_figures(requests[0], requests[1], kind)
    return "; ".join(part for part in (cause, known) if part)


def _requests(result: Mapping[str, Any], details: Mapping[str, Any]) -> Optional[Tuple[float, int]]:
    """Requests a second in both directions, and the KiB of each."""
    shape = SHAPES.get(str(details.get("shape")))
    if shape is None:
        return None
    rate = 0.0
    for metric in mappings(result.get("metrics"), MOST_METRICS):
        name, value = metric.get("name"), metric.get("value")
        if isinstance(value, (int, float)) and SMALLEST <= value <= LARGEST:
            rate += float(value) if name in ("read_rate", "write_rate") else 0.0
            rate += value * _KIB / shape.kib if name in ("read_bandwidth", "write_bandwidth") else 0.0
    return (rate, shape.kib) if rate else None


def _held_back(exceeded: Any) -> Optional[str]:
    """Whose limit it was by EBS's own counters; None where there are none."""
    if not isinstance(exceeded, Mapping):
        return None
    times = {name: value for name, value in exceeded.items() if isinstance(value, int) and 0 <= value <= _LONGEST}
    volume = max(times.get("volume_iops", 0), times.get("volume_throughput", 0))
    instance = max(times.get("instance_iops", 0), times.get("instance_throughput", 0))
    if max(volume, instance) < _HELD:
        return "by EBS's counters neither the volume's limits nor the instance's held it back"
    limiting, other = ("instance", "volume") if instance > volume else ("volume", "instance")
    what = "requests" if times.get(f"{limiting}_iops", 0) >= times.get(f"{limiting}_throughput", 0) else "throughput"
    return (
        f"your knee is the {limiting}'s cap, not the {other}'s: by EBS's counters its limit of {what} held requests"
        f" back for {max(volume, instance):,} ms, the {other}'s for {min(volume, instance):,} ms"
    )


def _by_figures(rate: float, kib: int, kind: Optional[TypeFacts]) -> str:
    """Whose limit it was by the type's limits alone, where EBS has no counters."""
    if kind is None or not kind.ebs_baseline_iops or not kind.ebs_maximum_iops:
        return ""
    limits = [(kind.ebs_maximum_iops, "most"), (kind.ebs_baseline_iops, "baseline")]
    megabytes = rate * kib * _KIB / _MB
    speeds = [(kind.ebs_maximum_mb_s, "most"), (kind.ebs_baseline_mb_s, "baseline")]
    for reached, pairs, what in ((rate, limits, "requests"), (megabytes, speeds, "throughput")):
        for limit, name in pairs:
            if limit and _NEAR <= reached / limit <= 2 - _NEAR:
                return f"your knee is the instance's cap: it did {reached / limit:.0%} of its {name} of {what}"
    if kind.ebs_maximum_mb_s and rate < kind.ebs_baseline_iops and megabytes < (kind.ebs_baseline_mb_s or 0):
        return "your knee is below what the instance can always do, so it is the volume's limit, or the load's"
    return "your knee isn't a limit of the instance"


def _instance(kind: Optional[TypeFacts]) -> str:
    if kind is None or not kind.ebs_maximum_iops or not kind.ebs_maximum_mb_s:
        return ""
    words = f"to EBS, {kind.instance_type} does at most {kind.ebs_maximum_iops:,} requests of 16 KiB"
    words += f" and {kind.ebs_maximum_mb_s:,.0f} MB a second"
    if (kind.ebs_baseline_iops, kind.ebs_baseline_mb_s) != (kind.ebs_maximum_iops, kind.ebs_maximum_mb_s):
        words += f", and {kind.ebs_baseline_iops:,} and {kind.ebs_baseline_mb_s or 0:,.0f} for long"
    return words
