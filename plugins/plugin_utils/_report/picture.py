# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an untrusted host says for its picture: its layout, and the CPUs of its queues. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .._clean import NAME, Budget, mapping, mappings, whole

MOST = 4096  # cores, or devices, of a host
MOST_QUEUES = 1024  # of a NIC, and NICs of a host
LISTS = 2048  # characters of a list of CPUs
_SETS = ("cpus", "nodes", "rps", "xps")
_Read = Callable[[Any, Budget], Any]  # a value of a form; what a host says in another form counts as nothing


def _name(value: Any, budget: Budget) -> str:
    return budget.text(value or "", NAME)


def _number(value: Any, _budget: Budget) -> Optional[int]:
    return whole(value)


def _list(value: Any, budget: Budget) -> str:
    return budget.text(value, LISTS) if isinstance(value, str) else ""


def _lists(value: Any, budget: Budget) -> List[str]:
    return [_list(entry, budget) for entry in value[:MOST]] if isinstance(value, (list, tuple)) else []


def _rows(**parts: _Read) -> _Read:
    """A list of mappings with these parts."""
    return lambda value, budget: [_parts(parts, row, budget) for row in mappings(value, MOST)]


def _parts(parts: Mapping[str, _Read], row: Mapping[str, Any], budget: Budget) -> Dict[str, Any]:
    return {name: read(row.get(name), budget) for name, read in parts.items()}


_LAYOUT: Mapping[str, _Read] = {
    "sockets": _lists,
    "nodes": _rows(id=_number, cpus=_list, memory=_number),
    "cores": _lists,
    "online": _list,
    "offline": _list,
    "memory": _number,
    "caches": _rows(name=_name, size=_number, cpus=_number, shared=_lists),
    "nics": _rows(
        name=_name,
        place=_name,
        driver=_name,
        node=_number,
        up=lambda value, _budget: value is not False,
        queues=_number,
        default_route=lambda value, _budget: value is True,
    ),
    "disks": _rows(
        name=_name,
        kind=_name,
        place=_name,
        node=_number,
        below=lambda value, budget: [text[:NAME] for text in _lists(value, budget)],
    ),
}


def layout_of(topology: Any, budget: Budget) -> Dict[str, Any]:
    """The layout of a result's `topology`; parts of another form are left out. Empty without one."""
    found = mapping(topology)
    return _parts(_LAYOUT, found, budget) if found else {}


def queue_map_of(queue_map: Any, budget: Budget) -> Tuple[Mapping[str, Any], ...]:
    """The NICs of a result's `queue_map`; entries of another form are left out."""
    return tuple(
        {
            **_parts({"name": _name, "place": _name, "node": _number}, nic, budget),
            "queues": [
                {"queue": row["queue"], **_parts({"now": _cpus, "wanted": _cpus}, row, budget)}
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
