# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about CPUs, caches, NUMA nodes and memory. PRIVATE to the collection.

Everything comes from /sys/devices/system/{cpu,node} and /proc/meminfo. Nothing is
computed from numbers of CPUs: siblings, sockets and nodes are what the kernel lists.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from .._error import NearmetalError
from .._parse import cpulist, cpumask, kernel_counters
from .host import Host

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"

# CPU ids, ascending.
Cpus = Tuple[int, ...]

_CPU_NAME = re.compile(r"cpu([0-9]{1,5})", re.ASCII)
_NODE_NAME = re.compile(r"node([0-9]{1,5})", re.ASCII)
_CACHE_NAME = re.compile(r"index[0-9]{1,3}", re.ASCII)
_LEVELS = ("1", "2", "3", "4")
_CACHE_SIZE = re.compile(r"([0-9]{1,9})K", re.ASCII)
_CACHE_KINDS = {"Data": "d", "Instruction": "i", "Unified": ""}
# sparc has no cache directory: one file per level, and no word of sharing.
_SPARC_CACHES = (("L1d", "l1_dcache_size"), ("L1i", "l1_icache_size"), ("L2", "l2_cache_size"))


class Cache(NamedTuple):
    """All caches of one level and kind: "L1d", "L1i", "L2", "L3"."""

    name: str
    shared: Tuple[Cpus, ...]  # per cache: the online CPUs that share it


class Node(NamedTuple):
    """One NUMA node that the kernel has online."""

    id: int
    cpus: Cpus  # online CPUs; empty: a node of memory only, or one without a list of CPUs
    cpulist: Optional[str]  # the kernel's text, with CPUs that are offline or absent; None: there is no list
    memory: Optional[int]  # bytes
    distances: Optional[Tuple[int, ...]]  # to each node of TopologyFacts.nodes, in that order; 10 is local


class TopologyFacts(NamedTuple):
    """CPUs, caches, nodes and memory. None is what the host doesn't say."""

    cpus_online: Optional[Cpus]
    cpus_offline: Optional[Cpus]  # present, not online
    cpus_present: Optional[Cpus]
    cpus_possible: Optional[Cpus]  # larger than present on Xen and VMware
    sockets: Optional[Tuple[Cpus, ...]]  # online CPUs per socket
    cores: Optional[Tuple[Cpus, ...]]  # online SMT siblings per core
    caches: Tuple[Cache, ...]  # empty: the kernel lists none (many virtual machines)
    nodes: Tuple[Node, ...]  # empty: a kernel without NUMA, not a host without memory
    memory: Optional[int]  # bytes, MemTotal
    cache_sizes: Mapping[str, int] = {}  # name of a cache → bytes, of the first CPU that runs

    @property
    def sockets_count(self) -> Optional[int]:
        """How many sockets have online CPUs; EC2 types have more nodes than sockets, or fewer."""
        return len(self.sockets) if self.sockets is not None else None

    @property
    def threads_per_core_max(self) -> Optional[int]:
        """The most online siblings of one core."""
        return max(map(len, self.cores)) if self.cores else None

    @property
    def threads_per_core_min(self) -> Optional[int]:
        """The fewest online siblings of one core; they are fewer than the most where single siblings are offline."""
        return min(map(len, self.cores)) if self.cores else None

    @property
    def memory_only_nodes(self) -> Tuple[int, ...]:
        """Ids of the nodes that have a list of CPUs, none of which is online."""
        return tuple(node.id for node in self.nodes if not node.cpus and node.cpulist is not None)

    def siblings(self, cpu: int) -> Cpus:
        """The online CPUs of this CPU's core, itself among them; empty when not known."""
        for core in self.cores or ():
            if cpu in core:
                return core
        return ()

    def as_dict(self) -> Dict[str, Any]:
        """Plain JSON: sets of CPUs as kernel lists, so that 384 CPUs stay below 64 KiB."""
        return {
            "cpus_online": _list(self.cpus_online),
            "cpus_offline": _list(self.cpus_offline),
            "cpus_present": _list(self.cpus_present),
            "cpus_possible": _list(self.cpus_possible),
            "cpus_online_count": len(self.cpus_online) if self.cpus_online is not None else None,
            "sockets_count": self.sockets_count,
            "cores_count": len(self.cores) if self.cores is not None else None,
            "threads_per_core_max": self.threads_per_core_max,
            "threads_per_core_min": self.threads_per_core_min,
            "sockets": _lists(self.sockets),
            "cores": _lists(self.cores),
            "caches": {cache.name: _lists(cache.shared) for cache in self.caches},
            "cache_sizes": dict(self.cache_sizes),
            "nodes": [
                {
                    "id": node.id,
                    "cpus": _list(node.cpus) if node.cpulist is not None else None,
                    "cpulist": node.cpulist,
                    "memory": node.memory,
                    "distances": list(node.distances) if node.distances is not None else None,
                }
                for node in self.nodes
            ],
            "nodes_count": len(self.nodes),
            "memory_only_nodes": list(self.memory_only_nodes),
            "memory": self.memory,
        }


def observe(host: Host) -> TopologyFacts:
    """Read the topology; about 15 short files per core, each shared set once."""
    directories = cpu_ids(host)
    online = _online(host, directories)
    present = _listed(host, CPU + "/present")
    if present is None and directories:
        present = directories
    cores = _cores(host, online)
    return TopologyFacts(
        cpus_online=online,
        cpus_offline=tuple(sorted(set(present) - set(online))) if present is not None and online is not None else None,
        cpus_present=present,
        cpus_possible=_listed(host, CPU + "/possible"),
        sockets=_sockets(host, online, cores),
        cores=cores,
        caches=_caches(host, online or (), cores or ()),
        nodes=_nodes(host, online or ()),
        memory=_memory(host.text("/proc/meminfo")),
        cache_sizes=_cache_sizes(host, online or ()),
    )


@lru_cache(maxsize=4096)
def _parsed(parse: Callable[[str], Cpus], text: Optional[str]) -> Optional[Cpus]:
    """The set in a text, which is the same for many CPUs; None without a text, or when it isn't a set."""
    try:
        return parse(text) if text is not None else None
    except NearmetalError:
        return None


def _listed(host: Host, path: str) -> Optional[Cpus]:
    """The set in a list file; None when it can't be read, is empty, or isn't a list."""
    return _parsed(cpulist.parse, host.line(path))


def _masked(host: Host, path: str) -> Optional[Cpus]:
    """The same of a file with a mask, which may have no CPU."""
    return _parsed(cpumask.parse, host.line(path))


def _first(host: Host, *names: str) -> Optional[Cpus]:
    """The set of the first file that has one; a name ending in "list" is of a list, any other of a mask.

    Callers name the mask first: it is older than the list (Linux 2.6.26), recordings of old
    kernels lack the list, and some kernels for AMD family 15h write a wrong shared_cpu_list.
    """
    sets = (_listed(host, name) if name.endswith("list") else _masked(host, name) for name in names)
    return next(filter(None, sets), None)


def _siblings(host: Host, cpu: int, *names: str) -> Cpus:
    """The set of the first of these files of a CPU, or of its list beside it."""
    files = (f"{CPU}/cpu{cpu}/topology/{name}{end}" for name in names for end in ("", "_list"))
    return _first(host, *files) or ()


def _online(host: Host, directories: Cpus) -> Optional[Cpus]:
    """cpu/online; without it each cpuN whose own `online` isn't 0 (CPU 0 often has no such file)."""
    online = _listed(host, CPU + "/online")
    if online:
        return online
    if not directories:
        return None
    return tuple(cpu for cpu in directories if host.line("{}/cpu{}/online".format(CPU, cpu)) != "0")


def _cores(host: Host, online: Optional[Cpus]) -> Optional[Tuple[Cpus, ...]]:
    """The sets that the kernel lists as siblings; a CPU that no list names has no core.

    core_id doesn't help: AMD family 15h gives the two siblings of a core different ones.
    """
    alive = frozenset(online or ())
    cores: Dict[Cpus, None] = {}
    counted: Set[int] = set()
    for cpu in online or ():
        if cpu in counted:
            continue
        core = tuple(other for other in _siblings(host, cpu, "thread_siblings", "core_cpus") if other in alive)
        if core:
            cores[core] = None
            counted.update(core)
    return tuple(sorted(cores)) or None


def _sockets(host: Host, online: Optional[Cpus], cores: Optional[Tuple[Cpus, ...]]) -> Optional[Tuple[Cpus, ...]]:
    """The sets that the kernel lists as one package.

    physical_package_id doesn't decide: outside x86 it is constant or odd. Each core is
    asked, so a package whose cores disagree counts as several.
    """
    alive = frozenset(online or ())
    sockets: Dict[Cpus, Cpus] = {}
    for cpu in (core[0] for core in cores) if cores is not None else online or ():
        listed = _siblings(host, cpu, "core_siblings", "package_cpus")
        if listed and listed not in sockets:
            sockets[listed] = tuple(other for other in listed if other in alive)
    return tuple(sorted(filter(None, set(sockets.values())))) or None


def _caches(host: Host, online: Cpus, cores: Tuple[Cpus, ...]) -> Tuple[Cache, ...]:
    """The caches of each level; a CPU is asked only if its core's first CPU has a cache that doesn't cover it."""
    alive = frozenset(online)
    core_of = {cpu: core for core in cores for cpu in core}
    shared: Dict[str, Set[Cpus]] = {}
    covered: Dict[str, Set[int]] = {}
    kinds_of: Dict[int, FrozenSet[str]] = {}
    for cpu in online:
        leader = core_of.get(cpu, (cpu,))[0]
        if leader != cpu and kinds_of.get(leader) and all(cpu in covered[name] for name in kinds_of[leader]):
            continue
        kinds = set()
        for name, listed in _caches_of(host, cpu):
            kinds.add(name)
            # The kernel of ia64 leaves the map of some caches empty. A cache is shared by its core at least.
            cpus = tuple(other for other in listed if other in alive) or core_of.get(cpu, (cpu,))
            shared.setdefault(name, set()).add(cpus)
            covered.setdefault(name, set()).update(cpus)
        kinds_of[cpu] = frozenset(kinds)
    return tuple(Cache(name, tuple(sorted(shared[name]))) for name in sorted(shared))


def _caches_of(host: Host, cpu: int) -> List[Tuple[str, Cpus]]:
    """Name and sharing CPUs of each cache of one CPU."""
    caches = []
    for name, path in _cache_folders(host, cpu):
        cpus = _first(host, path + "shared_cpu_map", path + "shared_cpu_list")
        if cpus is not None or _masked(host, path + "shared_cpu_map") == ():
            caches.append((name, cpus or ()))
    if not caches:
        caches = [(name, (cpu,)) for name, size in _SPARC_CACHES if host.exists(f"{CPU}/cpu{cpu}/{size}")]
    return caches


def _cache_folders(host: Host, cpu: int) -> Iterator[Tuple[str, str]]:
    """Name, such as L1d, and folder of each cache of one CPU."""
    folder = f"{CPU}/cpu{cpu}/cache"
    for index in filter(_CACHE_NAME.fullmatch, host.names(folder)):
        path = f"{folder}/{index}/"
        level, kind = host.line(path + "level"), _CACHE_KINDS.get(host.line(path + "type") or "")
        if level in _LEVELS and kind is not None:
            yield f"L{level}{kind}", path


def largest_cache_kib(host: Host, cpu: int) -> int:
    """The size of the largest cache that one CPU uses, alone or with others; 0 where the kernel names none."""
    folder = f"{CPU}/cpu{cpu}/cache"
    sizes = (_CACHE_SIZE.fullmatch(host.line(f"{folder}/{name}/size") or "") for name in host.names(folder))
    return max((int(size[1]) for size in sizes if size), default=0)


def _cache_sizes(host: Host, online: Cpus) -> Mapping[str, int]:
    """Name → bytes of the caches of the first CPU that runs: EC2 has no type whose cores differ."""
    folders = sorted(folder for cpu in online[:1] for folder in _cache_folders(host, cpu))
    sizes = ((name, _CACHE_SIZE.fullmatch(host.line(path + "size") or "")) for name, path in folders)
    return {name: int(size[1]) * 1024 for name, size in sizes if size is not None}


def _nodes(host: Host, online: Cpus) -> Tuple[Node, ...]:
    """The nodes with a directory, which the kernel makes for each online node."""
    alive = frozenset(online)
    ids = _numbered(host.names(NODE), _NODE_NAME)
    nodes = []
    for number in ids:
        folder = "{}/node{}".format(NODE, number)
        raw = host.line(folder + "/cpulist")
        listed = _first(host, folder + "/cpulist", folder + "/cpumap") or _numbered(host.names(folder), _CPU_NAME)
        has_list = listed or any(host.exists("{}/{}".format(folder, name)) for name in ("cpulist", "cpumap"))
        nodes.append(
            Node(
                id=number,
                cpus=tuple(cpu for cpu in listed if cpu in alive),
                cpulist=raw or (cpulist.render(listed) if has_list else None),
                memory=_memory(host.text(folder + "/meminfo")),
                distances=_distances(host.line(folder + "/distance"), len(ids)),
            )
        )
    return tuple(nodes)


def _memory(text: Optional[str]) -> Optional[int]:
    """MemTotal in bytes, of /proc/meminfo or of a node's meminfo."""
    return kernel_counters.parse_meminfo(text).get("MemTotal") if text is not None else None


def _distances(text: Optional[str], nodes: int) -> Optional[Tuple[int, ...]]:
    """One number per node; None for a text of another form."""
    words = (text or "").split()
    if len(words) != nodes or not all(re.fullmatch(r"[0-9]{1,3}", word, re.ASCII) for word in words):
        return None
    return tuple(int(word) for word in words)


def cpu_ids(host: Host) -> Cpus:
    """The CPUs that have a directory, ascending."""
    return _numbered(host.names(CPU), _CPU_NAME)


def node_names(host: Host) -> List[str]:
    """The names of the nodes that the kernel has online: node0, node1, …"""
    return [name for name in host.names(NODE) if _NODE_NAME.fullmatch(name)]


def _numbered(names: List[str], pattern: "re.Pattern[str]") -> Cpus:
    """The ids in names such as cpu12 or node3, ascending."""
    matches = (pattern.fullmatch(name) for name in names)
    return tuple(sorted(int(match.group(1)) for match in matches if match is not None))


def _list(cpus: Optional[Cpus]) -> Optional[str]:
    return cpulist.render(cpus) if cpus is not None else None


def _lists(sets: Optional[Tuple[Cpus, ...]]) -> Optional[List[str]]:
    return [cpulist.render(cpus) for cpus in sets] if sets is not None else None
