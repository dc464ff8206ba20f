# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a picture shows: a host's sockets, nodes, cores, caches, NICs, disks, and the CPUs of each queue. PRIVATE."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .block import BlockFacts
from .disk import DISK, OTHER, PATH, STACKED, Disk
from .facts import UNOBSERVED, Facts
from .network import NetworkFacts, cpus, listed
from .nic import Nic
from .topology import Cache, TopologyFacts


def layout(facts: Facts) -> Dict[str, Any]:
    """Plain data; sets of CPUs are kernel lists. Empty without the facts of the topology."""
    topology = facts.topology
    if topology is UNOBSERVED:
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
        "nics": [_nic(network, nic) for nic in network.nics] if network is not UNOBSERVED else [],
        "disks": [_disk(block, disk) for disk in block.disks if disk.layer != PATH] if block is not UNOBSERVED else [],
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


def queue_map(present_facts: Facts, planned: Facts) -> List[Dict[str, Any]]:
    """An entry per NIC, with its queues; sets of CPUs and nodes are kernel lists. None is what the host doesn't say."""
    present, wanted = present_facts.network, planned.network
    if present is UNOBSERVED or present_facts.topology is UNOBSERVED:
        return []
    nics = []
    for nic in present.nics:
        counts = present.queues.get(nic.place, len(nic.rx)), wanted.queues.get(nic.place, len(nic.rx))
        rows = [
            {
                "queue": queue,
                "now": _cpus_of(present, present_facts.topology, nic.place, queue) if queue < counts[0] else None,
                "wanted": _cpus_of(wanted, planned.topology, nic.place, queue) if queue < counts[1] else None,
            }
            for queue in range(max(counts))
        ]
        nics.append({"name": nic.name, "place": nic.place, "node": nic.node, "queues": rows})
    return nics


def _cpus_of(network: NetworkFacts, topology: TopologyFacts, place: str, queue: int) -> Dict[str, Optional[str]]:
    """The CPUs of one queue: those of its interrupts, with their nodes, of RPS and of XPS."""
    labels = (str(queue), f"rx-{queue}", f"tx-{queue}")
    tables = (network.effective.get(place, {}), network.affinity.get(place, {}))
    texts = [next((table[label] for table in tables if label in table), None) for label in labels]
    answering = {cpu for text in texts for cpu in cpus(text)}
    nodes = [node.id for node in topology.nodes if answering.intersection(node.cpus)]
    return {
        "cpus": listed(answering) if answering else None,
        "nodes": listed(nodes) if nodes else None,
        "rps": network.rps.get(place, {}).get(f"rx-{queue}"),
        "xps": network.xps.get(place, {}).get(f"tx-{queue}"),
    }
