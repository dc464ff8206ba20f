# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a picture of a host says: its parts in words, and which CPUs do the network's work. Pure. PRIVATE.

It is made of the same data that a run returns: `_facts/layout.py` and `_facts/layout.py`. On the controller an
untrusted host wrote them.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..._error import NearmetalError
from ..._facts.network import listed
from ..._parse import cpulist
from ..._words import counted

MOST_ROWS = 128  # of the queues of a NIC, after those with the same CPUs were joined
_MOST_IDS = 1 << 16  # in all lists of CPUs that differ; a true host has some thousand
_MOST_CPUS = 4096  # that are drawn
ANSWERS, MAY, HELPS = "answers", "may", "helps"
# The heaviest first.
_WORK = {ANSWERS: "handles the interrupts of", MAY: "may handle the interrupts of", HELPS: "helps with"}
_KINDS = {"ebs": "EBS", "instance_store": "instance store", "xvd": "Xen", "virtio": "virtio"}
_SHOWN = 4  # names of a longer list

Row = Mapping[str, Any]
_LISTED = ("sockets", "nodes", "cores", "caches", "nics", "disks")
_NOTHING: Row = {**dict.fromkeys(_LISTED, ()), "online": "", "offline": "", "memory": None}


class _Lists(Dict[str, FrozenSet[int]]):
    """The CPUs of each kernel list; none for a text that is none, or for more than any host has."""

    left = _MOST_IDS

    def __missing__(self, text: str) -> FrozenSet[int]:
        found: FrozenSet[int] = frozenset()
        if self.left > 0:
            with suppress(NearmetalError):
                found = frozenset(cpulist.parse(text))
        self.left -= len(found)
        return self.setdefault(text, found)


class Sets(NamedTuple):
    """Sets of CPUs, such as those of the sockets."""

    members: Sequence[FrozenSet[int]]
    first: Mapping[int, int]  # CPU → the number of the first set that has it

    def split(self, cpus: Iterable[int]) -> List[Tuple[Optional[int], List[int]]]:
        """The CPUs by their sets, with the number of each; last and with None those that none has."""
        groups: Dict[Optional[int], List[int]] = {}
        for cpu in cpus:
            groups.setdefault(self.first.get(cpu), []).append(cpu)
        return sorted(groups.items(), key=lambda group: (group[0] is None, group[0]))


class Scene(NamedTuple):
    """One state of the host."""

    layout: Row
    lists: Mapping[str, FrozenSet[int]]
    sockets: Sets
    cores: Sets
    node_cpus: Sets
    large: Optional[Row]  # the cache of the highest level, if it belongs to more than one core
    large_cpus: Sets
    online: Sequence[int]
    offline: Sequence[int]
    devices: Mapping[Optional[int], Sequence[Row]]  # node → its NICs and disks; None: those near none that there is
    queues: Mapping[str, Sequence[str]]  # place of a NIC → what its queues say
    duties: Mapping[int, Tuple[str, str]]  # CPU → its style, and for whom it works


def scene_of(layout: Row, queue_map: Iterable[Row], state: str = "now") -> Scene:
    """What is drawn of a host, `now` or as it is `wanted`."""
    lists, layout = _Lists(), {**_NOTHING, **layout}
    cores = _sets(lists, layout["cores"])
    last = max(layout["caches"], key=lambda cache: str(cache["name"]), default={"shared": ()})
    scene = Scene(
        layout=layout,
        lists=lists,
        sockets=_sets(lists, layout["sockets"]),
        cores=cores,
        node_cpus=_sets(lists, [node["cpus"] for node in layout["nodes"]]),
        large=last if last["shared"] else None,
        large_cpus=_sets(lists, last["shared"]),
        online=sorted(lists[layout["online"]] or cores.first)[:_MOST_CPUS],  # an earlier nearmetal gave the cores alone
        offline=sorted(lists[layout["offline"]])[:_MOST_CPUS],
        devices=_by_node({node["id"] for node in layout["nodes"]}, [*layout["nics"], *layout["disks"]]),
        queues={},
        duties={},
    )
    up = {nic["place"] for nic in scene.layout["nics"] if nic.get("up") is not False}
    maps = list(queue_map)
    return scene._replace(
        queues={nic["place"]: _queues(scene, nic, state) for nic in maps},
        duties=_duties(scene, [nic for nic in maps if nic["place"] in up], state),
    )


def _sets(lists: Mapping[str, FrozenSet[int]], texts: Iterable[str]) -> Sets:
    members = [lists[text] for text in texts]
    first: Dict[int, int] = {}
    for number, cpus in enumerate(members):
        for cpu in cpus:
            first.setdefault(cpu, number)
    return Sets(members, first)


def _by_node(nodes: Set[Optional[int]], devices: Iterable[Row]) -> Dict[Optional[int], List[Row]]:
    only = next(iter(nodes)) if len(nodes) == 1 else None
    found: Dict[Optional[int], List[Row]] = {}
    for device in devices:
        found.setdefault(device["node"] if device["node"] in nodes else only, []).append(device)
    return found


def _duties(scene: Scene, nics: Iterable[Row], state: str) -> Dict[int, Tuple[str, str]]:
    """The heaviest duty of each CPU, and the queues that it works for."""
    queues: Dict[Tuple[str, str], List[str]] = {}
    for nic in nics:
        for row in filter(lambda row: row[state], nic["queues"]):
            answering, helping = (row[state][name] or "" for name in ("cpus", "rps"))
            for style, text in ((ANSWERS if len(scene.lists[answering]) == 1 else MAY, answering), (HELPS, helping)):
                queues.setdefault((style, text), []).append(f"{nic['name']} queue {row['queue']}")
    duties: Dict[int, Dict[str, List[List[str]]]] = {}
    for (style, text), names in queues.items():
        for cpu in scene.lists[text]:
            duties.setdefault(cpu, {}).setdefault(style, []).append(names)
    return {
        cpu: (
            next(style for style in _WORK if style in styles),
            "; ".join(f"{words} {_some(*styles[style])}" for style, words in _WORK.items() if style in styles),
        )
        for cpu, styles in duties.items()
    }


def _some(*lists: Sequence[str]) -> str:
    names = [name for listing in lists for name in listing[:_SHOWN]][:_SHOWN]
    rest = sum(map(len, lists)) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _queues(scene: Scene, nic: Row, state: str) -> Tuple[str, ...]:
    """What each queue says; neighbors that say the same are one."""
    said = [(row["queue"], work(scene, nic, row[state])) for row in nic["queues"] if row[state]]
    folded = []
    for text, group in groupby(said, key=lambda row: row[1]):
        numbers = [number for number, _text in group]
        folded.append(f"queue{'s' if len(numbers) > 1 else ''} {listed(numbers)} → {text}")
    remaining = len(folded) - MOST_ROWS
    return (*folded[:MOST_ROWS], *((f"and {remaining} more",) if remaining > 0 else ()))


def work(scene: Scene, nic: Row, served: Optional[Mapping[str, Optional[str]]]) -> str:
    """Whose CPUs work for a queue: the interrupt's, those that help, those that send."""
    if served is None:
        return "no such queue"
    answering = scene.lists[served["cpus"] or ""]
    text = "CPU not known"
    if answering:
        text = f"CPU {next(iter(answering))}" if len(answering) == 1 else f"one of CPUs {served['cpus']}"
    if len(answering) == len(scene.online) > 1:
        text = "any CPU"
    elif nic["node"] is not None and len(scene.layout["nodes"]) > 1 and served["nodes"] not in (None, str(nic["node"])):
        text += f" on node {served['nodes']}"
    text += f" · helpers {served['rps']}" if served["rps"] else ""
    return f"{text} · sends for {served['xps']}" if served["xps"] else text


def summary(scene: Scene) -> str:
    """How many there are of everything."""
    layout = scene.layout
    counts = [
        _count(len(scene.sockets.members), "socket"),
        _count(len(layout["nodes"]), "NUMA node"),
        _count(len(scene.cores.members), "core"),
        _count(len(scene.online), "online CPU"),
        f"{_size(layout['memory'])} of memory" if layout["memory"] is not None else "",
        _count(len(layout["nics"]), "NIC"),
        _count(len(layout["disks"]), "disk"),
    ]
    return ", ".join(filter(None, counts))


def sentences(scene: Scene) -> List[str]:
    """What is drawn, in words for those who can't see it."""
    parts = [node_words(scene, number) for number in range(len(scene.layout["nodes"]))]
    parts += [cache_words(scene, cache) for cache in scene.layout["caches"]]
    parts += [f"Offline CPUs {listed(scene.offline)}"] if scene.offline else []
    for nic in scene.layout["nics"]:
        queues = "; ".join(scene.queues.get(nic["place"], ()))
        parts.append(f"{nic_words(nic)}{f': {queues}' if queues else ''}")
    return [*parts, *(f"Disk {disk_words(disk)}{place_words(disk)}" for disk in scene.layout["disks"])]


def place_words(device: Row) -> str:
    """Where a device is."""
    return f" at node {device['node']}" if device["node"] is not None else ""


def nic_words(nic: Row) -> str:
    """A NIC with its driver, place and queues."""
    parts = ("NIC", nic["name"], f"({nic['driver']})" if nic["driver"] else "", f"{nic['place']}{place_words(nic)}")
    queues = nic.get("queues")
    more = (
        "" if queues is None else counted(queues, "queue"),
        "down" if nic.get("up") is False else "",
        "default route" if nic.get("default_route") else "",
    )
    return ", ".join(filter(None, (" ".join(filter(None, parts)), *more)))


def disk_words(disk: Row) -> str:
    """A disk with its kind, or what it is made of."""
    if disk.get("below"):
        return f"{disk['name']} on {_some(disk['below'])}"
    return " ".join(filter(None, (disk["name"], _KINDS.get(disk["kind"], disk["kind"]))))


def node_words(scene: Scene, number: int) -> str:
    """A node with its memory and CPUs."""
    node, cpus = scene.layout["nodes"][number], scene.layout["nodes"][number]["cpus"]
    memory = f", {_size(node['memory'])}" if node["memory"] is not None else ""
    return f"NUMA node {node['id']}{memory}, {f'CPUs {cpus}' if cpus else 'no online CPUs'}"


def cache_words(scene: Scene, cache: Row) -> str:
    """A cache with its size, and how many CPUs share it."""
    most = cache.get("cpus") or max((len(scene.lists[text]) for text in cache["shared"]), default=None)
    core = max(map(len, scene.cores.members), default=0)
    owner = "CPU" if most == 1 else "core" if most in (None, core) else f"{most} CPUs"
    return f"{named_cache(cache)} per {owner}"


def named_cache(cache: Row) -> str:
    """A cache with its size."""
    return f"{cache['name']} {'of unknown size' if cache['size'] is None else _size(cache['size'])}"


def _count(number: int, noun: str) -> str:
    return counted(number, noun) if number else ""


def _size(amount: int) -> str:
    """Bytes in the largest unit of which there is one."""
    value, units = amount / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        del units[0]
    return f"{value:.4g} {units[0]}"
