# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The offline table of instance types: answers of DescribeInstanceTypes, for runs without IAM permissions.

`python -m dev.tables.types` writes data.py. PRIVATE to the collection.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict, fields
from typing import Any, Dict, Iterable, List, Mapping, Optional

from .data import DATA
from .facts import CardFacts, TypeFacts

# The table's columns, in order. `source` and `reference` follow from where a row stands.
_COLUMNS = tuple(field.name for field in fields(TypeFacts) if field.name not in ("source", "reference"))


def _accelerated(name: str, memory_mib: Optional[int], iops: int, mb_s: float, reference: str) -> TypeFacts:
    return TypeFacts(
        instance_type=name,
        current_generation=False,
        hypervisor="xen",
        virtualization_types=("hvm",),
        architectures=("x86_64",),
        manufacturer="Intel",
        vcpus=64,
        cores=32,
        threads_per_core=2,
        memory_mib=memory_mib,
        ebs_optimized="default",
        ebs_baseline_iops=iops,
        ebs_maximum_iops=iops,
        ebs_baseline_mb_s=mb_s,
        ebs_maximum_mb_s=mb_s,
        ena="supported",
        placement_strategies=("cluster", "partition", "spread"),
        source="sources",
        reference=reference,
    )


def _withdrawn(name: str, vcpus: int, memory_gib: int, manufacturer: str = "Intel", nitro: bool = False) -> TypeFacts:
    return TypeFacts(
        instance_type=name,
        current_generation=False,
        hypervisor="nitro" if nitro else "xen",
        virtualization_types=("hvm",),
        architectures=("x86_64",),
        manufacturer=manufacturer,
        vcpus=vcpus,
        cores=vcpus // 2,
        threads_per_core=2,
        memory_mib=memory_gib * 1024,
        ena="required" if nitro else "supported",
        source="sources",
        reference="AWS's public type pages and its table of CPU options",
    )


# Types that the source documents name and the API no longer lists: only figures with a source.
# EBS limits are those of AWS's talk of 2017; the rest is from AWS's public type pages.
_RETIRED = (
    _accelerated("f1.16xlarge", 976 * 1024, 75000, 1750.0, "AWS, 2017"),
    _accelerated("g3.16xlarge", 488 * 1024, 80000, 1750.0, "AWS, 2017"),
    _accelerated("p2.16xlarge", None, 65000, 1250.0, "AWS, 2017"),
    _accelerated("p3.16xlarge", 488 * 1024, 80000, 1750.0, "AWS, 2017"),
    TypeFacts(
        "i3.metal",
        current_generation=False,
        bare_metal=True,
        virtualization_types=("hvm",),
        architectures=("x86_64",),
        manufacturer="Intel",
        vcpus=72,
        cores=36,
        threads_per_core=2,
        memory_mib=512 * 1024,
        ebs_optimized="default",
        ebs_nvme="required",
        ebs_baseline_iops=80000,  # AWS's table of 2023; the review of 2018 saw 64,000 (StorageReview, 2018)
        ebs_maximum_iops=80000,
        ebs_baseline_mb_s=2375.0,
        ebs_maximum_mb_s=2375.0,
        instance_store_gb=15200,
        instance_store_nvme="required",
        ena="required",
        network_performance="25 Gigabit",
        placement_strategies=("cluster", "partition", "spread"),
        source="sources",
        reference="StorageReview, 2018",
    ),
    TypeFacts(
        "hs1.8xlarge",
        current_generation=False,
        hypervisor="xen",
        virtualization_types=("hvm", "paravirtual"),
        architectures=("x86_64",),
        manufacturer="Intel",
        memory_mib=117 * 1024,
        ena="unsupported",
        source="sources",
        reference="Aerospike, 2014",
    ),
    _withdrawn("dl1.24xlarge", 96, 768, nitro=True),
    _withdrawn("f1.2xlarge", 8, 122),
    _withdrawn("f1.4xlarge", 16, 244),
    _withdrawn("g3.4xlarge", 16, 122),
    _withdrawn("g3.8xlarge", 32, 244),
    _withdrawn("g4ad.2xlarge", 8, 32, "AMD", nitro=True),
    _withdrawn("g4ad.8xlarge", 32, 128, "AMD", nitro=True),
    _withdrawn("p2.xlarge", 4, 61),
    _withdrawn("p2.8xlarge", 32, 488),
    _withdrawn("p3.2xlarge", 8, 61),
    _withdrawn("u-9tb1.112xlarge", 448, 9 * 1024, nitro=True),
    _withdrawn("u-12tb1.112xlarge", 448, 12 * 1024, nitro=True),
    _withdrawn("u-18tb1.112xlarge", 448, 18 * 1024, nitro=True),
    _withdrawn("u-24tb1.112xlarge", 448, 24 * 1024, nitro=True),
)


def pack(types: Iterable[TypeFacts]) -> bytes:
    """The table's rows as compressed columns: equal values are stored once, and rows point at them."""
    rows = [asdict(kind) for kind in sorted(types, key=lambda kind: kind.instance_type)]
    columns = []
    for name in _COLUMNS:
        cells = [json.dumps(row[name], separators=(",", ":")) for row in rows]
        distinct = sorted(set(cells), key=lambda cell: (-cells.count(cell), cell))
        place = {cell: index for index, cell in enumerate(distinct)}
        columns.append([name, [json.loads(cell) for cell in distinct], [place[cell] for cell in cells]])
    return zlib.compress(json.dumps(columns, separators=(",", ":")).encode(), 9)


def unpack(packed: bytes) -> Dict[str, TypeFacts]:
    """The inverse of `pack`, by name."""
    columns: Dict[str, List[Any]] = {}
    for name, values, places in json.loads(zlib.decompress(packed)):
        columns[name] = [values[index] for index in places]
    columns["cards"] = [tuple(CardFacts(**card) for card in cards) for cards in columns["cards"]]
    types: Dict[str, TypeFacts] = {}
    for cells in zip(*columns.values()):
        row: Dict[str, Any] = {
            name: tuple(cell) if isinstance(cell, list) else cell for name, cell in zip(columns, cells)
        }
        types[row["instance_type"]] = TypeFacts(source="table", **row)
    return types


_read: Dict[str, TypeFacts] = {}


def offline_types() -> Mapping[str, TypeFacts]:
    """Every type of the table and the retired types of the source documents, by name."""
    if not _read:
        _read.update((kind.instance_type, kind) for kind in _RETIRED)
        _read.update(unpack(base64.b85decode("".join(DATA))))
    return _read
