# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's queues and their CPUs, in the form of report.json. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from .._clean import NAME, Budget

MOST = 1024  # queues of a NIC, and NICs of a host
_SETS = ("cpus", "nodes", "rps", "xps")


def of_result(queue_map: Any, budget: Budget) -> Tuple[Mapping[str, Any], ...]:
    """The NICs of a result's `queue_map`; entries of another form are left out."""
    return tuple(_nic(nic, budget) for nic in _mappings(queue_map))


def _nic(nic: Mapping[str, Any], budget: Budget) -> Dict[str, Any]:
    rows = [row for row in _mappings(nic.get("queues")) if _number(row.get("queue")) is not None]
    return {
        "name": budget.text(nic.get("name") or "", NAME),
        "place": budget.text(nic.get("place") or "", NAME),
        "node": _number(nic.get("node")),
        "queues": [
            {
                "queue": row["queue"],
                "now": _served(row.get("now"), budget),
                "wanted": _served(row.get("wanted"), budget),
            }
            for row in rows
            if not budget.exhausted()
        ],
    }


def _served(cpu_sets: Any, budget: Budget) -> Optional[Dict[str, Optional[str]]]:
    if not isinstance(cpu_sets, Mapping):
        return None
    return {name: budget.text(cpu_sets[name]) if isinstance(cpu_sets.get(name), str) else None for name in _SETS}


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 65535 else None


def _mappings(value: Any) -> List[Mapping[str, Any]]:
    return [entry for entry in value[:MOST] if isinstance(entry, Mapping)] if isinstance(value, (list, tuple)) else []
