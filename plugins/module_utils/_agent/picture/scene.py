# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a picture of a host says: its parts in words, and which CPUs do the network's work. Pure. PRIVATE."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._facts.disk import DISK, PATH, STACKED, Disk
from ..._facts.facts import Facts
from ..._facts.network import cpus as cpus_of
from ..._facts.network import listed
from ..._facts.nic import Nic
from ..._facts.queue_map import queue_map
from ..._facts.topology import Cache, Node, TopologyFacts

MOST_ROWS = 128  # of the queues of a NIC, after those with the same CPUs were joined
ANSWERS, MAY, HELPS = "answers", "may", "helps"
# The heaviest first.
_WORK = {ANSWERS: "handles the interrupts of", MAY: "may handle the interrupts of", HELPS: "helps with"}
_KINDS = {"ebs": "EBS", "instance_store": "instance store", "xvd": "Xen", "virtio": "virtio"}


class Scene(NamedTuple):
    """One state of the host."""

    facts: Facts
    topology: TopologyFacts
    queues: Mapping[str, Sequence[str]]  # place of a NIC → what its queues say
    duties: Mapping[int, Tuple[str, str]]  # CPU → its style, and for whom it works


def scene_of(facts: Facts) -> Scene:
    """What is drawn of a host."""
    topology = facts.topology or TopologyFacts(None, None, None, None, None, None, (), (), None)
    rows = {nic["place"]: nic["queues"] for nic in queue_map(facts, facts)}
    nics = facts.network.nics if facts.network is not None else ()
    return Scene(
        facts,
        topology,
        {nic.place: _queues(nic, rows.get(nic.place, ()), topology) for nic in nics},
        _duties([(nic, rows.get(nic.place, ())) for nic in nics if nic.up]),
    )


def _duties(nics: Iterable[Tuple[Nic, Sequence[Mapping[str, Any]]]]) -> Dict[int, Tuple[str, str]]:
    """The heaviest duty of each CPU, and all the queues that it works for."""
    duties: Dict[int, Dict[str, List[str]]] = {}
    for nic, rows in nics:
        for row in rows:
            answering = cpus_of(row["now"]["cpus"]) if row["now"] else ()
            helping = cpus_of(row["now"]["rps"]) if row["now"] else ()
            for style, cpus in ((ANSWERS if len(answering) == 1 else MAY, answering), (HELPS, helping)):
                for cpu in cpus:
                    duties.setdefault(cpu, {}).setdefault(style, []).append(f"{nic.name} queue {row['queue']}")
    return {
        cpu: (
            next(style for style in _WORK if style in styles),
            "; ".join(f"{words} {_some(styles[style])}" for style, words in _WORK.items() if style in styles),
        )
        for cpu, styles in duties.items()
    }


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _queues(nic: Nic, rows: Sequence[Mapping[str, Any]], topology: TopologyFacts) -> Tuple[str, ...]:
    """What each queue says; neighbors that say the same are one."""
    home = nic.node if len(topology.nodes) > 1 else None
    online = len(topology.cpus_online or ())
    answers = [(row["queue"], _work(row["now"], home, online)) for row in rows if row["now"]]
    folded = []
    for text, group in groupby(answers, key=lambda row: row[1]):
        numbers = [number for number, _text in group]
        folded.append(f"queue{'s' if len(numbers) > 1 else ''} {listed(numbers)} → {text}")
    remaining = len(folded) - MOST_ROWS
    return (*folded[:MOST_ROWS], *((f"and {remaining} more",) if remaining > 0 else ()))


def _work(now: Mapping[str, Optional[str]], home: Optional[int], online: int) -> str:
    """Whose CPUs work for a queue: the interrupt's, those that help, those that send."""
    answering = cpus_of(now["cpus"])
    text = "CPU not known"
    if answering:
        text = f"CPU {answering[0]}" if len(answering) == 1 else f"one of CPUs {now['cpus']}"
    if len(answering) == online > 1:
        text = "any CPU"
    elif home is not None and now["nodes"] not in (None, str(home)):
        text += f" on node {now['nodes']}"
    if now["rps"]:
        text += f" → helpers {now['rps']}"
    return f"{text} · sends for {now['xps']}" if now["xps"] else text


def title_of(facts: Facts) -> str:
    """The type of the host, or its class, with its architecture and kernel."""
    known = facts.platform
    if known is None:
        return "Topology of a host"
    kind = known.instance_type or f"a host of class {known.host_class}"
    return " · ".join(filter(None, (f"Topology of {kind}", known.architecture, known.kernel)))


def summary(scene: Scene) -> str:
    """How many there are of everything."""
    topology, facts = scene.topology, scene.facts
    cores = topology.cores
    counts = [
        _count(topology.sockets_count, "socket"),
        _count(len(topology.nodes), "NUMA node"),
        _count(len(cores) if cores is not None else None, "core"),
        _count(len(topology.cpus_online) if topology.cpus_online is not None else None, "online CPU"),
        f"{_size(topology.memory)} of memory" if topology.memory is not None else "",
        _count(len(facts.network.nics), "NIC") if facts.network is not None else "",
        _count(len(visible(facts)), "disk"),
    ]
    return ", ".join(filter(None, counts))


def sentences(scene: Scene) -> List[str]:
    """What is drawn, in words for those who can't see it."""
    topology, facts = scene.topology, scene.facts
    parts = [node_words(node) for node in topology.nodes]
    parts += [cache_words(topology, cache) for cache in topology.caches]
    parts += [f"Offline CPUs {listed(topology.cpus_offline)}"] if topology.cpus_offline else []
    for nic in facts.network.nics if facts.network is not None else ():
        queues = "; ".join(scene.queues[nic.place])
        parts.append(f"{nic_words(scene, nic)}{f': {queues}' if queues else ''}")
    return [*parts, *(f"Disk {disk_words(disk)}{_place(disk_node(facts, disk))}" for disk in visible(facts))]


def _place(node: Optional[int]) -> str:
    return f" at node {node}" if node is not None else ""


def nic_words(scene: Scene, nic: Nic) -> str:
    """A NIC with its driver, place and queues."""
    network = scene.facts.network
    queues = network.queues.get(nic.place) if network is not None else None
    route = network is not None and network.carries_default(nic)
    parts = ("NIC", nic.name, f"({nic.driver})" if nic.driver else "", f"{nic.place}{_place(nic.node)}")
    more = (_count(queues, "queue"), "" if nic.up else "down", "default route" if route else "")
    return ", ".join(filter(None, (" ".join(filter(None, parts)), *more)))


def visible(facts: Facts) -> Tuple[Disk, ...]:
    """The disks but for the paths of one that has several."""
    return tuple(disk for disk in facts.block.disks if disk.layer != PATH) if facts.block is not None else ()


def disk_words(disk: Disk) -> str:
    """A disk with its kind, or what it is made of."""
    if disk.layer == STACKED:
        return f"{disk.name} on {_some(disk.below)}" if disk.below else disk.name
    return " ".join(filter(None, (disk.name, _KINDS.get(disk.kind) or disk.model)))


def disk_node(facts: Facts, disk: Disk) -> Optional[int]:
    """The node of a disk; that of a stacked one if all that it is made of is there."""
    if disk.layer == DISK or facts.block is None:
        return disk.node
    below = facts.block.below(disk.name)
    nodes = {part.node for part in facts.block.disks if part.name in below and part.layer in (DISK, PATH)}
    return nodes.pop() if len(nodes) == 1 else None


def node_words(node: Node) -> str:
    """A node with its memory and CPUs."""
    memory = f", {_size(node.memory)}" if node.memory is not None else ""
    return f"NUMA node {node.id}{memory}, {f'CPUs {listed(node.cpus)}' if node.cpus else 'no online CPUs'}"


def large_cache(topology: TopologyFacts) -> Optional[Cache]:
    """The cache of the highest level, if it belongs to more than one core."""
    cores = {frozenset(core) for core in topology.cores or ()}
    last = max(topology.caches, key=lambda cache: cache.name, default=None)
    shared = last is not None and any(len(cpus) > 1 and frozenset(cpus) not in cores for cpus in last.shared)
    return last if shared else None


def cache_words(topology: TopologyFacts, cache: Cache) -> str:
    """A cache with its size, and how many CPUs share it."""
    most = max(map(len, cache.shared))
    core = topology.threads_per_core_max
    owner = "CPU" if most == 1 else "core" if most == core else f"{most} CPUs"
    return f"{named_cache(topology, cache.name)} per {owner}"


def named_cache(topology: TopologyFacts, name: str) -> str:
    """A cache with its size."""
    size = topology.cache_sizes.get(name)
    return f"{name} {_size(size)}" if size is not None else f"{name} of unknown size"


def _count(number: Optional[int], noun: str) -> str:
    return "" if number is None else f"{number} {noun}{'' if number == 1 else 's'}"


def _size(amount: int) -> str:
    """Bytes in the largest unit of which there is one."""
    value, units = amount / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        del units[0]
    return f"{value:.4g} {units[0]}"
