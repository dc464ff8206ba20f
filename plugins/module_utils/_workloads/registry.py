# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workloads by name. PRIVATE to the collection."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Mapping

from .._loaded import Loaded
from . import base, common
from .workload import Workload, inherited

_NAMED = (
    "analytics",
    "burstable",
    "cache",
    "hpc",
    "in_memory_database",
    "jvm",
    "low_latency",
    "nvme_storage",
    "packet_appliance",
    "sap_hana",
    "web",
)


@lru_cache(maxsize=None)
def _own(name: str) -> Workload:
    workload: Workload = import_module(f"{__package__}.{name}").OWN
    return workload


@lru_cache(maxsize=None)
def _whole(name: str) -> Workload:
    return base.OWN if name == "base" else inherited(base.OWN, common.OWN, _own(name))


# What each named workload chooses itself; it inherits the other options.
OWN: Mapping[str, Workload] = Loaded(_NAMED, _own)
WORKLOADS: Mapping[str, Workload] = Loaded(("base", *_NAMED), _whole)
