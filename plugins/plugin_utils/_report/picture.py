# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an untrusted host says for its picture: its layout, and the CPUs of its queues. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from .._clean import NAME, Budget, mapping, mappings, whole

MOST = 4096  # cores, or devices, of a host
MOST_QUEUES = 1024  # of a NIC, and NICs of a host
LISTS = 2048  # characters of a list of CPUs
_SETS = ("cpus", "nodes", "rps", "xps")


def layout_of(topology: Any, budget: Budget) -> Dict[str, Any]:
    """The layout of a result's `topology`; parts of another form are left out. Empty without one."""
    found = mapping(topology)
    if not found:
        return {}
    return {
        "sockets": _lists(found.get("sockets"), budget),
        "nodes": [
            {"id": whole(node.get("id")), "cpus": _list(node.get("cpus"), budget), "memory": whole(node.get("memory"))}
            for node in mappings(found.get("nodes"), MOST)
        ],
        "cores": _lists(found.get("cores"), budget),
        "online": _list(found.get("online"), budget),
        "offline": _list(found.get("offline"), budget),
        "memory": whole(found.get("memory")),
        "caches": [
            {
                **_named(cache, ("name",), budget),
                "size": whole(cache.get("size")),
                "cpus": whole(cache.get("cpus")),
                "shared": _lists(cache.get("shared"), budget),
            }
            for cache in mappings(found.get("caches"), MOST)
        ],
        "nics": [
            {
                **_named(nic, ("name", "place", "driver"), budget),
                "node": whole(nic.get("node")),
                "up": nic.get("up") is not False,
                "queues": whole(nic.get("queues")),
                "default_route": nic.get("default_route") is True,
            }
            for nic in mappings(found.get("nics"), MOST)
        ],
        "disks": [
            {
                **_named(disk, ("name", "kind", "place"), budget),
                "node": whole(disk.get("node")),
                "below": [text[:NAME] for text in _lists(disk.get("below"), budget)],
            }
            for disk in mappings(found.get("disks"), MOST)
        ],
    }


def queue_map_of(queue_map: Any, budget: Budget) -> Tuple[Mapping[str, Any], ...]:
    """The NICs of a result's `queue_map`; entries of another form are left out."""
    return tuple(
        {
            **_named(nic, ("name", "place"), budget),
            "node": whole(nic.get("node")),
            "queues": [
                {
                    "queue": row["queue"],
                    "now": _cpus(row.get("now"), budget),
                    "wanted": _cpus(row.get("wanted"), budget),
                }
                for row in mappings(nic.get("queues"), MOST_QUEUES)
                if whole(row.get("queue"), 65535) is not None and not budget.exhausted()
            ],
        }
        for nic in mappings(queue_map, MOST_QUEUES)
    )


def _cpus(sets: Any, budget: Budget) -> Optional[Dict[str, Optional[str]]]:
    if not isinstance(sets, Mapping):
        return None
    return {name: budget.text(sets[name]) if isinstance(sets.get(name), str) else None for name in _SETS}


def _named(part: Mapping[str, Any], names: Sequence[str], budget: Budget) -> Dict[str, str]:
    return {name: budget.text(part.get(name) or "", NAME) for name in names}


def _list(value: Any, budget: Budget) -> str:
    return budget.text(value, LISTS) if isinstance(value, str) else ""


def _lists(value: Any, budget: Budget) -> "list[str]":
    return [_list(entry, budget) for entry in value[:MOST]] if isinstance(value, (list, tuple)) else []
