# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture of a host, for `nearmetal topology` and for the page of a report. Pure. PRIVATE to the collection.

Each CPU is drawn once, whatever the kernel's sets are: a CPU that two of them claim is in the first.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from .drawing import Look, Part, box, label, row, stack, text
from .scene import ANSWERS, HELPS, MAY, Scene, cache_words, disk_words, named_cache, nic_words, node_words

IDLE, OFFLINE = "idle", "offline"
_LEGEND = {
    ANSWERS: "handles the interrupts of a queue",
    MAY: "may handle interrupts, as one of several CPUs",
    HELPS: "helps with received packets (RPS)",
    IDLE: "no work of the network",
    OFFLINE: "offline",
}
_NO_NODE = "Devices that the kernel puts near no NUMA node"
# Text has a contrast of at least 4.5 with what is below it (WCAG 2.1, 1.4.3). Work is marked by strokes, not by color
# alone.
# Each color is for a light page, and for a dark one.
LOOKS = {
    "page": Look(("#ffffff", "#0e1217")),
    "text": Look(("#161b22", "#e7ecf2")),
    "muted": Look(("#566070", "#9aa7b8")),
    "title": Look(("#161b22", "#e7ecf2"), more=" font-size: 16px; font-weight: 700;"),
    "heading": Look(("#161b22", "#e7ecf2"), more=" font-weight: 700;"),
    "socket": Look(("#f5f6f8", "#161c24"), ("#8a94a3", "#5d6b7d")),
    "node": Look(("#ffffff", "#0e1217"), ("#8a94a3", "#5d6b7d")),
    "cache": Look(("#f5f6f8", "#161c24"), ("#c3cad3", "#37424f")),
    "core": Look(("#ffffff", "#0e1217"), ("#8a94a3", "#5d6b7d")),
    "nic": Look(("#eef4fc", "#122033"), ("#6f9bd8", "#3f6ea8")),
    "answers": Look(("#1c5fc4", "#7fb0ff"), ("#1c5fc4", "#7fb0ff")),
    "answers-text": Look(("#ffffff", "#04122a"), more=" font-weight: 700;"),
    "may": Look(("#cfe1f9", "#1d3a66"), ("#1c5fc4", "#7fb0ff")),
    "may-text": Look(("#0d2f63", "#e1edff")),
    "helps": Look(("#ffffff", "#0e1217"), ("#1c5fc4", "#7fb0ff"), " stroke-dasharray: 3 2;"),
    "helps-text": Look(("#0d2f63", "#cfe1ff")),
    "idle": Look(("#e3e7ec", "#2a333f"), ("#e3e7ec", "#2a333f")),
    "idle-text": Look(("#161b22", "#e7ecf2")),
    "offline": Look(("#ffffff", "#0e1217"), ("#c3cad3", "#37424f"), " stroke-dasharray: 1 3;"),
    "offline-text": Look(("#566070", "#9aa7b8"), more=" text-decoration: line-through;"),
    "queue": Look(("#ffffff", "#0e1217"), ("#6f9bd8", "#3f6ea8")),
    "queue-text": Look(("#161b22", "#e7ecf2")),
    "disk": Look(("#f4efe2", "#2a2413"), ("#b59b5b", "#8a7433")),
    "disk-text": Look(("#3a2d08", "#f3e6bf")),
}


def panels(states: Sequence[Tuple[str, Scene]]) -> List[Part]:
    """A legend, and a host in one state or several, which a reader compares line by line, each with its name."""
    styles = {style for _name, scene in states for style in _styles(scene)}
    legend = [row((label("7", style), text(words, "muted"))) for style, words in _LEGEND.items() if style in styles]
    drawn = []
    for name, scene in states:
        heading = [text(f"{name[:1].upper()}{name[1:]}", "title")] if len(states) > 1 else []
        drawn.append(stack([*heading, *_host(scene)], "panel"))
    return [row(legend, "legend"), Part("columns", "panels", parts=tuple(drawn))]


def _styles(scene: Scene) -> List[str]:
    """The styles of the CPUs that are drawn."""
    return [*(_duty(scene, cpu)[0] for cpu in scene.online), *([OFFLINE] if scene.offline else [])]


def _duty(scene: Scene, cpu: int) -> Tuple[str, str]:
    return scene.duties.get(cpu, (IDLE, _LEGEND[IDLE]))


def _host(scene: Scene) -> List[Part]:
    """Sockets with their nodes, or where a node has several sockets, nodes with theirs; then what is near none."""
    sockets, nodes = scene.sockets, scene.node_cpus
    disjoint = sum(map(len, sockets.members)) == len(sockets.first)
    nested = all(len({sockets.first.get(cpu, -1 - cpu) for cpu in cpus}) < 2 for cpus in nodes.members)
    if disjoint and nested:
        parts = [_socket(scene, number, _nodes(scene, cpus)) for number, cpus in sockets.split(scene.online)]
    else:
        parts = _nodes(scene, scene.online)
    with_cpus = {number for number, _cpus in nodes.split(scene.online)}
    parts += [_node(scene, number, ()) for number in range(len(scene.layout["nodes"])) if number not in with_cpus]
    if scene.offline:
        cells = [_label(scene, cpu, OFFLINE) for cpu in scene.offline]
        parts.append(box("cache", text("Offline CPUs", "heading"), row(cells, "cpus")))
    homeless = _devices(scene, None)
    if homeless:
        parts.append(box("node", text(_NO_NODE, "heading"), *homeless))
    small = "; ".join(cache_words(scene, cache) for cache in scene.layout["caches"] if cache is not scene.large)
    return [text(small if scene.online else "The kernel lists no CPUs.", "muted"), row(parts, "sockets")]


def _nodes(scene: Scene, cpus: Sequence[int]) -> List[Part]:
    """These CPUs in boxes of their nodes; those without a node have no box."""
    groups = scene.node_cpus.split(cpus)
    return [_cores(scene, some) if number is None else _node(scene, number, some) for number, some in groups]


def _socket(scene: Scene, number: Optional[int], parts: Sequence[Part]) -> Part:
    unnamed = "CPUs of which the kernel names no socket"
    name = unnamed if number is None else f"Socket {number + 1} of {len(scene.sockets.members)}"
    return box("socket", text(name, "heading"), *parts)


def _node(scene: Scene, number: int, cpus: Sequence[int]) -> Part:
    """A node with its sockets, if there are several, its cores, NICs and disks."""
    sockets = [(socket, _cores(scene, some)) for socket, some in scene.sockets.split(cpus)]
    parts = [_socket(scene, socket, [cores]) if len(sockets) > 1 else cores for socket, cores in sockets]
    devices = _devices(scene, scene.layout["nodes"][number]["id"])
    return box("node", text(node_words(scene, number), "heading"), row(parts), *devices)


def _cores(scene: Scene, cpus: Sequence[int]) -> Part:
    """The cores in boxes of the largest cache that several share."""
    boxes: List[Part] = []
    for number, mine in scene.large_cpus.split(cpus):
        cores = [box("core", row([_label(scene, cpu) for cpu in core], "cpus")) for _n, core in scene.cores.split(mine)]
        if scene.large is None or number is None:
            boxes += cores
            continue
        name, whole = named_cache(scene.large), len(scene.large_cpus.members[number])
        name += f", one for {whole} CPUs, of which these are {len(mine)}" if len(mine) < whole else ""
        boxes.append(box("cache", text(name, "muted"), row(cores)))
    return row(boxes)


def _label(scene: Scene, cpu: int, style: str = "") -> Part:
    duty, work = _duty(scene, cpu)
    longest = max((*scene.online[-1:], *scene.offline[-1:]))
    return label(str(cpu), style or duty, f"CPU {cpu}: {style or work}", len(str(longest)))


def _devices(scene: Scene, node: Optional[int]) -> List[Part]:
    """The NICs and disks of a node; None: those near none that there is."""
    parts, disks = [], []
    for device in scene.devices.get(node, ()):
        if "driver" in device:
            queues = [label(words, "queue") for words in scene.queues.get(device["place"], ())]
            parts.append(box("nic", text(nic_words(device), "heading"), *([row(queues)] if queues else [])))
        else:
            disks.append(label(disk_words(device), "disk", device.get("place", "")))
    return [*parts, *([row(disks)] if disks else [])]
