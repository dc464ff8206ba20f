# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPUs that serve each queue of each NIC, as found and as planned, for a picture. Pure. PRIVATE."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .facts import Facts
from .network import NetworkFacts, cpus, listed
from .topology import TopologyFacts


def queue_map(present_facts: Facts, planned: Facts) -> List[Dict[str, Any]]:
    """An entry per NIC, with its queues; sets of CPUs and nodes are kernel lists. None is what the host doesn't say."""
    present, wanted = present_facts.network, planned.network
    if present is None or wanted is None or present_facts.topology is None or planned.topology is None:
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
