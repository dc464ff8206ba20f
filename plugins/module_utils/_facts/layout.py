# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's sockets, nodes, cores, caches, NICs and disks in a few kilobytes, for a picture of it. Pure. PRIVATE."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .block import BlockFacts
from .disk import DISK, OTHER, PATH, STACKED, Disk
from .facts import Facts
from .network import NetworkFacts, listed
from .nic import Nic
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
        "online": listed(topology.cpus_online or ()),
        "offline": listed(topology.cpus_offline or ()),
        "memory": topology.memory,
        "caches": [_cache(topology, cache) for cache in topology.caches],
        "nics": [_nic(network, nic) for nic in network.nics] if network is not None else [],
        "disks": [_disk(block, disk) for disk in block.disks if disk.layer != PATH] if block is not None else [],
    }


def _nic(network: NetworkFacts, nic: Nic) -> Dict[str, Any]:
    own = {name: getattr(nic, name) for name in ("name", "place", "node", "driver", "up")}
    return {**own, "queues": network.queues.get(nic.place), "default_route": network.carries_default(nic)}


def _cache(topology: TopologyFacts, cache: Cache) -> Dict[str, Any]:
    """A cache with its size and how many CPUs share it; which they are only where they are more than one core."""
    size: Optional[int] = topology.cache_sizes.get(cache.name)
    cores = set(topology.cores or ())
    shared: List[str] = []
    if any(len(cpus) > 1 and cpus not in cores for cpus in cache.shared):
        shared = [listed(cpus) for cpus in cache.shared]
    return {"name": cache.name, "size": size, "cpus": max(map(len, cache.shared)), "shared": shared}


def _disk(block: BlockFacts, disk: Disk) -> Dict[str, Any]:
    """A disk with its kind, or what it is made of; a stacked one is at a node if all that it is made of is there."""
    node = disk.node
    if disk.layer != DISK:
        parts = block.below(disk.name)
        nodes = {part.node for part in block.disks if part.name in parts and part.layer in (DISK, PATH)}
        node = nodes.pop() if len(nodes) == 1 else None
    kind = disk.model if disk.kind == OTHER else disk.kind
    below = list(disk.below) if disk.layer == STACKED else []
    return {"name": disk.name, "kind": kind or "", "node": node, "place": disk.place, "below": below}
