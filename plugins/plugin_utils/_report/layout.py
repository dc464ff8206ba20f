# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's sockets, nodes, cores and devices, as its result has them, for the picture. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from .._clean import NAME, Budget

MOST = 4096  # cores, or devices, of a host
LISTS = 2048  # characters of a list of CPUs


def of_result(topology: Any, budget: Budget) -> Dict[str, Any]:
    """The layout of a result's `topology`; parts of another form are left out. Empty without one."""
    if not isinstance(topology, Mapping) or not topology:
        return {}
    return {
        "sockets": _lists(topology.get("sockets"), budget),
        "nodes": [
            {
                "id": _number(node.get("id")),
                "cpus": _list(node.get("cpus"), budget),
                "memory": _number(node.get("memory")),
            }
            for node in _mappings(topology.get("nodes"))
        ],
        "cores": _lists(topology.get("cores"), budget),
        "offline": _list(topology.get("offline"), budget),
        "caches": [
            {
                "name": budget.text(cache.get("name") or "", NAME),
                "size": _number(cache.get("size")),
                "shared": _lists(cache.get("shared"), budget),
            }
            for cache in _mappings(topology.get("caches"))
        ],
        "nics": _devices(topology.get("nics"), ("name", "place", "driver"), budget),
        "disks": _devices(topology.get("disks"), ("name", "kind"), budget),
    }


def _devices(devices: Any, names: "tuple[str, ...]", budget: Budget) -> List[Dict[str, Any]]:
    return [
        {**{name: budget.text(device.get(name) or "", NAME) for name in names}, "node": _number(device.get("node"))}
        for device in _mappings(devices)
    ]


def _list(value: Any, budget: Budget) -> str:
    return budget.text(value, LISTS) if isinstance(value, str) else ""


def _lists(value: Any, budget: Budget) -> List[str]:
    return [_list(entry, budget) for entry in value[:MOST]] if isinstance(value, (list, tuple)) else []


def _mappings(value: Any) -> List[Mapping[str, Any]]:
    return [entry for entry in value[:MOST] if isinstance(entry, Mapping)] if isinstance(value, (list, tuple)) else []


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
