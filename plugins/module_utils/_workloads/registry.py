# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workloads by name. PRIVATE to the collection."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Callable, Iterator, Mapping, Tuple

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


class _Workloads(Mapping[str, Workload]):
    """Name → workload, each loaded on first use: a run names few, and loading all costs a small host milliseconds."""

    def __init__(self, names: Tuple[str, ...], load: Callable[[str], Workload]) -> None:
        self._names, self._load = names, load

    def __getitem__(self, name: str) -> Workload:
        if name not in self._names:
            raise KeyError(name)
        return self._load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


# What each named workload chooses itself; it inherits the other options.
OWN: Mapping[str, Workload] = _Workloads(_NAMED, _own)
WORKLOADS: Mapping[str, Workload] = _Workloads(("base", *_NAMED), _whole)
