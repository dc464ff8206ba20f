# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of EBS volumes: what each can do by its type and size. Pure. PRIVATE to the collection.

Rules are those of AWS's page "Amazon EBS volume types". There, volumes are given in MiB/s, instances in
MB/s: all figures in this file are MB/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional

_MB_PER_MIB = 1.048576
_GP3_FREE_IOPS, _GP3_FREE_MIB_S = 3000, 125


@dataclass(frozen=True)
class VolumeFacts:
    volume_id: str
    volume_type: str
    size_gib: int
    device: Optional[str]
    iops: int  # sustained
    burst_iops: int
    mb_s: float  # sustained
    burst_mb_s: float
    paid_iops: int  # of `iops`, those that cost extra
    paid_mb_s: float
    card: int = 0  # of the instance's EBS cards
    burst_balance: Optional[float] = None  # per cent, the lowest of the last hour; None: not asked or has none

    @property
    def bursts(self) -> bool:
        """Whether CloudWatch has a BurstBalance for it."""
        return self.volume_type in ("gp2", "st1", "sc1")


def volume_facts(answer: Mapping[str, Any], instance_id: str, burst_balance: Optional[float] = None) -> VolumeFacts:
    """The facts in one volume of DescribeVolumes, as attached to an instance."""
    attached = [
        attachment for attachment in answer.get("Attachments", ()) if attachment.get("InstanceId") == instance_id
    ]
    kind, size = answer.get("VolumeType", "standard"), answer.get("Size", 0)
    iops, burst_iops = _iops(kind, size, answer.get("Iops"))
    mib_s, burst_mib_s = _mib_s(kind, size, iops, answer.get("Throughput"))
    paid_iops = iops if kind in ("io1", "io2") else iops - _GP3_FREE_IOPS if kind == "gp3" else 0
    return VolumeFacts(
        volume_id=answer["VolumeId"],
        volume_type=kind,
        size_gib=size,
        device=attached[0].get("Device") if attached else None,
        iops=iops,
        burst_iops=burst_iops,
        mb_s=round(mib_s * _MB_PER_MIB, 1),
        burst_mb_s=round(burst_mib_s * _MB_PER_MIB, 1),
        paid_iops=max(0, paid_iops),
        paid_mb_s=round(max(0, mib_s - _GP3_FREE_MIB_S) * _MB_PER_MIB, 1) if kind == "gp3" else 0.0,
        card=attached[0].get("EbsCardIndex") or 0 if attached else 0,
        burst_balance=burst_balance,
    )


def _iops(kind: str, size: int, provisioned: Optional[int]) -> "tuple[int, int]":
    """Sustained and burst IOPS."""
    if kind == "gp2":
        sustained = min(16000, max(100, 3 * size))
        return sustained, max(3000, sustained)
    if kind == "gp3":
        return provisioned or _GP3_FREE_IOPS, provisioned or _GP3_FREE_IOPS
    if kind in ("io1", "io2"):
        return provisioned or 100, provisioned or 100
    # One I/O of a disk volume is up to 1 MiB, so throughput is what counts there.
    most = {"st1": 500, "sc1": 250}.get(kind, 100)
    return most, most


def _mib_s(kind: str, size: int, iops: int, provisioned: Optional[int]) -> "tuple[float, float]":
    """Sustained and burst MiB/s."""
    if kind == "gp3":
        return provisioned or _GP3_FREE_MIB_S, provisioned or _GP3_FREE_MIB_S
    if kind == "gp2":
        return (250, 250) if size >= 334 else (128, 250 if size > 170 else 128)
    if kind == "io2":
        most = min(4000.0, iops * 0.256)
        return most, most
    if kind == "io1":
        # 256 KiB per I/O up to 2,000 IOPS, level to 32,000, then 16 KiB per I/O up to 64,000.
        most = min(iops * 0.25, 500.0) if iops <= 32000 else min(iops / 64, 1000.0)
        return most, most
    if kind in ("st1", "sc1"):
        base, burst, top = (40, 250, 500) if kind == "st1" else (12, 80, 250)
        tib = size / 1024
        return min(base * tib, top), min(burst * tib, top)
    return 40.0, 90.0
