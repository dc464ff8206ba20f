# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture of a host, drawn from its facts alone. Pure. PRIVATE to the collection.

Each CPU is drawn once, whatever the kernel's sets are: a CPU that two of them claim is in the first.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Set, Tuple

from ..._facts.facts import Facts
from ..._facts.nic import Nic
from ..._facts.topology import Cpus, Node, TopologyFacts
from .colors import DARK, LIGHT
from .drawing import GAP, PAD, Item, boxed, document, flow, label, paragraph, stack, width_of, words
from .scene import (
    ANSWERS,
    HELPS,
    MAY,
    Scene,
    cache_words,
    disk_node,
    disk_words,
    large_cache,
    named_cache,
    nic_words,
    node_words,
    scene_of,
    sentences,
    summary,
    title_of,
    visible,
)

ROOM = 1160  # pixels between the page's edges
IDLE, OFFLINE = "idle", "offline"
_ABREAST = 8  # threads of a core beside each other
_LEGEND = (
    (ANSWERS, "handles the interrupts of a queue"),
    (MAY, "may handle interrupts, as one of several CPUs"),
    (HELPS, "helps with received packets (RPS)"),
    (IDLE, "no work of the network"),
    (OFFLINE, "offline"),
)
_NO_NODE = "Devices that the kernel puts near no NUMA node"


def picture(panels: Sequence[Tuple[str, Facts]]) -> str:
    """The SVG of a host in one state or several, each with its name. Their topology and platform must be observed."""
    scenes = [(name, scene_of(facts)) for name, facts in panels]
    first = scenes[0][1]
    title = title_of(first.facts)
    parts = [words(title, "title"), paragraph(summary(first), ROOM, "muted")]
    parts.append(_legend({style for _name, scene in scenes for style in _styles(scene)}))
    parts.append(_abreast(scenes))
    description = " ".join(f"{name}: {'. '.join(sentences(scene))}." for name, scene in scenes)
    return document(title, f"{summary(first)}. {description}", stack(parts, 2 * GAP), LIGHT, DARK)


def _abreast(scenes: Sequence[Tuple[str, Scene]]) -> Item:
    """The states beside each other, so that a reader compares them line by line; below each other if too wide."""
    for room in (ROOM // len(scenes) - 2 * GAP, ROOM):
        panels = []
        for name, scene in scenes:
            heading = [words(f"{name[:1].upper()}{name[1:]}", "title")] if len(scenes) > 1 else []
            panels.append(stack([*heading, _host(scene, room)], 2 * GAP))
        if max(panel.width for panel in panels) <= room:
            return flow(panels, ROOM, 4 * GAP)
    return stack(panels, 2 * GAP)


def _styles(scene: Scene) -> Set[str]:
    """The styles of the CPUs that are drawn."""
    online, offline = scene.topology.cpus_online or (), scene.topology.cpus_offline
    duties = {_duty(scene, cpu)[0] for cpu in online}
    return {*duties, OFFLINE} if offline else duties


def _legend(styles: Set[str]) -> Item:
    rows = [(label("7", style, 24), words(text, "muted")) for style, text in _LEGEND if style in styles]
    return flow([flow(row, ROOM) for row in rows], ROOM, 3 * GAP)


def _duty(scene: Scene, cpu: int) -> Tuple[str, str]:
    return scene.duties.get(cpu, (IDLE, ""))


def _host(scene: Scene, room: int) -> Item:
    """Sockets with their nodes, or where a node has several sockets, nodes with theirs; then what is near none."""
    topology = scene.topology
    nodes, online = topology.nodes, topology.cpus_online or ()
    sockets = topology.sockets or ()
    disjoint = sum(map(len, sockets)) == len({cpu for socket in sockets for cpu in socket})
    nested = all(not node.cpus or any(set(node.cpus) <= set(socket) for socket in sockets) for node in nodes)
    large = large_cache(topology)
    small = [cache_words(topology, cache) for cache in topology.caches if cache is not large]
    parts: List[Item] = []
    if disjoint and nested:
        for number, cpus in _split(online, sockets):
            parts.append(_socket(topology, number, _nodes(scene, cpus, room - 2 * PAD)))
    else:
        parts += _nodes(scene, online, room)
    with_cpus = {number for number, _cpus in _split(online, [node.cpus for node in nodes])}
    parts += [_node(scene, node, (), room) for number, node in enumerate(nodes) if number not in with_cpus]
    offline = topology.cpus_offline or ()
    if offline:
        cells = flow([label(str(cpu), OFFLINE, _cell(topology)) for cpu in offline], room - 2 * PAD, 2)
        parts.append(boxed(stack([words("Offline CPUs", "heading"), cells]), "cache"))
    homeless = _devices(scene, None, room - 2 * PAD)
    if homeless:
        parts.append(boxed(stack([words(_NO_NODE, "heading"), *homeless]), "node"))
    about = paragraph("; ".join(small), room, "muted") if online else words("The kernel lists no CPUs.", "muted")
    return stack([about, flow(parts, room, 2 * GAP)], 2 * GAP)


def _nodes(scene: Scene, cpus: Cpus, room: int) -> List[Item]:
    """These CPUs in boxes of their nodes; those without a node have no box."""
    nodes = scene.topology.nodes
    parts = []
    for number, node_cpus in _split(cpus, [node.cpus for node in nodes]):
        parts.append(_cores(scene, node_cpus, room) if number is None else _node(scene, nodes[number], node_cpus, room))
    return parts


def _socket(topology: TopologyFacts, number: Optional[int], parts: Sequence[Item]) -> Item:
    if number is None:
        name = "CPUs of which the kernel names no socket"
    else:
        name = f"Socket {number + 1} of {topology.sockets_count}"
    return boxed(stack([words(name, "heading"), *parts]), "socket")


def _node(scene: Scene, node: Node, cpus: Cpus, room: int) -> Item:
    """A node with its sockets, if there are several, its cores, NICs and disks."""
    inner = room - 2 * PAD
    sockets = _split(cpus, scene.topology.sockets or ())
    if len(sockets) > 1:
        parts = [
            _socket(scene.topology, number, [_cores(scene, socket_cpus, inner - 2 * PAD)])
            for number, socket_cpus in sockets
        ]
    else:
        parts = [_cores(scene, socket_cpus, inner) for _number, socket_cpus in sockets]
    rows = [words(node_words(node), "heading"), flow(parts, inner), *_devices(scene, node.id, inner)]
    return boxed(stack(rows), "node")


def _cores(scene: Scene, cpus: Cpus, room: int) -> Item:
    """The cores in boxes of the largest cache that several share."""
    topology = scene.topology
    large = large_cache(topology)
    boxes = []
    for number, mine in _split(cpus, large.shared if large is not None else ()):
        cores = [_core(scene, core) for _number, core in _split(mine, topology.cores or ())]
        if large is None or number is None:
            boxes += cores
            continue
        name, whole = named_cache(topology, large.name), len(large.shared[number])
        name += f", one for {whole} CPUs, of which these are {len(mine)}" if len(mine) < whole else ""
        boxes.append(boxed(stack([words(name, "muted"), flow(cores, room - 2 * PAD)]), "cache"))
    return flow(boxes, room)


def _core(scene: Scene, cpus: Cpus) -> Item:
    cells = []
    for cpu in cpus:
        style, work = _duty(scene, cpu)
        cells.append(label(str(cpu), style, _cell(scene.topology), f"CPU {cpu}: {work}" if work else ""))
    return boxed(flow(cells, _ABREAST * (_cell(scene.topology) + 2), 2), "core", pad=2)


def _cell(topology: TopologyFacts) -> int:
    """The width of a CPU, the same for all."""
    longest = max((*(topology.cpus_online or ()), *(topology.cpus_offline or ())), default=0)
    return max(width_of(str(longest)) + PAD, 22)


def _devices(scene: Scene, node: Optional[int], room: int) -> List[Item]:
    """The NICs and disks of a node; None: those near none that there is."""
    facts, known = scene.facts, {numa_node.id for numa_node in scene.topology.nodes}
    only = next(iter(known)) if len(known) == 1 else None

    def belongs_to_node(home: Optional[int]) -> bool:
        return (home if home in known else only) == node

    nics = [nic for nic in (facts.network.nics if facts.network is not None else ()) if belongs_to_node(nic.node)]
    disks = [disk for disk in visible(facts) if belongs_to_node(disk_node(facts, disk))]
    parts = [_nic(scene, nic, room) for nic in nics]
    if disks:
        parts.append(flow([label(disk_words(disk), "disk", about=disk.place) for disk in disks], room))
    return parts


def _nic(scene: Scene, nic: Nic, room: int) -> Item:
    queues = flow([label(text, "queue") for text in scene.queues[nic.place]], room - 2 * PAD)
    return boxed(stack([words(nic_words(scene, nic), "heading"), queues]), "nic")


def _split(cpus: Cpus, sets: Sequence[Cpus]) -> List[Tuple[Optional[int], Cpus]]:
    """The CPUs by the first set that has them, with its number; last and with None those that none has."""
    remaining, groups = set(cpus), []
    for number, members in enumerate(sets):
        members_left = remaining.intersection(members)
        if members_left:
            groups.append((number, tuple(sorted(members_left))))
            remaining -= members_left
    last: List[Tuple[Optional[int], Cpus]] = [(None, tuple(sorted(remaining)))] if remaining else []
    return [*groups, *last]
