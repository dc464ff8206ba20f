# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's sockets, nodes, cores, caches, NICs and disks in a few kilobytes, for a picture of it. Pure. PRIVATE."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .facts import Facts
from .network import listed
from .topology import Cache, TopologyFacts


def layout(facts: Facts) -> Dict[str, Any]:
    """Plain data; sets of CPUs are kernel lists. Empty without the facts of the topology."""
    topology = facts.topology
    if topology is None:
        return {}
    network, block = facts.network, facts.block
    return {
        "sockets": [listed(cpus) for cpus in topology.sockets or ()],
        "nodes": [{"id": node.id, "cpus": listed(node.cpus), "memory": node.memory} for node in topology.nodes],
        "cores": [listed(cpus) for cpus in topology.cores or ()],
        "offline": listed(topology.cpus_offline or ()),
        "caches": [_cache(topology, cache) for cache in topology.caches],
        "nics": [
            {"name": nic.name, "place": nic.place, "node": nic.node, "driver": nic.driver}
            for nic in (network.nics if network is not None else ())
        ],
        "disks": [
            {"name": disk.name, "kind": disk.kind or disk.model, "node": disk.node}
            for disk in (block.disks if block is not None else ())
            if disk.is_hardware
        ],
    }


def _cache(topology: TopologyFacts, cache: Cache) -> Dict[str, Any]:
    """A cache with its size; whom it belongs to only where that is more than one core."""
    size: Optional[int] = topology.cache_sizes.get(cache.name)
    cores = set(topology.cores or ())
    shared: List[str] = []
    if any(len(cpus) > 1 and cpus not in cores for cpus in cache.shared):
        shared = [listed(cpus) for cpus in cache.shared]
    return {"name": cache.name, "size": size, "shared": shared}
