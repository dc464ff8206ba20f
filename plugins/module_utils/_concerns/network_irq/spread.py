# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which queue's interrupt goes to which CPU. Pure. PRIVATE to the collection.

One queue per physical core, on the NIC's node first, then on other nodes;
second threads only when every core has one; a second queue for a CPU only when
every CPU has one. NICs share the CPUs in the order in which they appeared, so
another NIC moves no queue of those before it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._facts.topology import TopologyFacts


class Demand(NamedTuple):
    """What one NIC needs: a CPU for each of its queues."""

    place: str
    node: Optional[int]
    queues: int
    now: Mapping[int, int]  # queue → the only CPU that it is pinned to; queues that aren't pinned are absent


def spread(cpus: TopologyFacts, allowed: FrozenSet[int], demands: Sequence[Demand]) -> Dict[str, Dict[int, int]]:
    """Place → queue → CPU. Only `allowed` CPUs that are online are used; without any, no queue gets a CPU."""
    load: Counter[int] = Counter()
    placed = {}
    for require in demands:
        order = preference(cpus, allowed, require.node)
        slots = _slots(order, load, require.queues) if order else []
        placed[require.place] = _settle(slots, require)
        load.update(slots)
    return placed


def preference(cpus: TopologyFacts, allowed: FrozenSet[int], node: Optional[int]) -> Tuple[int, ...]:
    """The CPUs that may be used, the best for a NIC on this node first."""
    rank = {}
    for core in cpus.cores or tuple((cpu,) for cpu in cpus.cpus_online or ()):
        usable = sorted(cpu for cpu in core if cpu in allowed)
        rank.update({cpu: position for position, cpu in enumerate(usable)})
    distance = _distances(cpus, node)
    usable_online = [cpu for cpu in cpus.cpus_online or () if cpu in allowed]
    return tuple(sorted(usable_online, key=lambda cpu: (rank.get(cpu, 0), distance.get(cpu, 0), cpu)))


def _distances(cpus: TopologyFacts, node: Optional[int]) -> Dict[int, int]:
    """CPU → distance of its node from the NIC's node; empty when the NIC has no node, or its node no CPU that runs."""
    home = next((entry for entry in cpus.nodes if entry.id == node and entry.cpus), None)
    if home is None:
        return {}
    distances = {}
    for position, node_entry in enumerate(cpus.nodes):
        # Without a table of distances every other node is equally far.
        node_distance = home.distances[position] if home.distances is not None else 10 * (node_entry.id != home.id)
        distances.update(dict.fromkeys(node_entry.cpus, node_distance))
    return distances


def _slots(order: Sequence[int], load: Mapping[int, int], queues: int) -> List[int]:
    """A CPU per queue: always the least loaded, the most preferred of those."""
    heap = [(load.get(cpu, 0), position, cpu) for position, cpu in enumerate(order)]
    heapq.heapify(heap)
    slots = []
    for _queue in range(queues):
        used, position, cpu = heap[0]
        heapq.heapreplace(heap, (used + 1, position, cpu))
        slots.append(cpu)
    return slots


def _settle(slots: Sequence[int], require: Demand) -> Dict[int, int]:
    """Queue → slot: a queue that is pinned to a slot keeps it, the other queues take the open slots in order."""
    open_slots = list(slots)
    settled: Dict[int, int] = {}
    for queue in range(len(slots)):
        cpu = require.now.get(queue)
        if cpu in open_slots:
            open_slots.remove(cpu)
            settled[queue] = cpu
    moving = [queue for queue in range(len(slots)) if queue not in settled]
    return dict(sorted((*settled.items(), *zip(moving, open_slots))))
