# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What services use of the CPUs, of sockets and of their open files. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from .._number import is_number, process_numbers
from .._programs.registry import NAMES, program_of
from . import running, services
from .host import Host
from .listening import Place, Sockets, of_process
from .packages import version_of

# A service of more processes than this has its listening ones among the oldest.
_LOOKED_AT = 64
# The share of the last five minutes, in percent, in which some thread waited for a CPU (accounting/psi.rst).
_PRESSURE = re.compile(r"some avg10=[0-9.]{1,8} avg60=[0-9.]{1,8} avg300=([0-9]{1,3})\.([0-9]{2}) .*", re.ASCII)
_LIMIT = re.compile(r"^(Max [a-z ]{4,20}?) +([0-9]{1,20}|unlimited) ", re.ASCII | re.MULTILINE)
_FILES = "Max open files"


class ServiceLoad(NamedTuple):
    """A running service. None is what the host doesn't say, such as to a reader without root."""

    threads: Optional[int]
    waiting: Optional[int]  # per mille of the last five minutes in which some thread of it waited for a CPU
    processes: int
    listeners: Optional[Mapping[int, Tuple[int, int]]]  # port → sockets, and processes that have one of them
    programs: Mapping[str, str]  # known ones that it runs → version, where it matters and is known, or ""
    limits: Mapping[str, int]  # of the first process that runs one, as /proc/PID/limits names them; not those without
    files: Optional[Tuple[int, int]]  # open, and the limit, of the process that is nearest to its limit


def observe(host: Host) -> Mapping[str, ServiceLoad]:
    """Running service → its load."""
    tables: Dict[Optional[str], Sockets] = {}
    return {unit: _load(host, group, tables) for unit, group in services.groups(host)}


def _load(host: Host, group: str, tables: Dict[Optional[str], Sockets]) -> ServiceLoad:
    pids = process_numbers((host.text(f"{group}/cgroup.procs") or "").split())
    pressure = _PRESSURE.match(host.text(f"{group}/cpu.pressure", 4096) or "")
    open_of = {pid: [*filter(is_number, host.names(f"/proc/{pid}/fd"))] for pid in pids[:_LOOKED_AT]}
    programs = {pid: found for pid in open_of for found in [running.program_of(host, pid)] if found[0]}
    return ServiceLoad(
        threads=_threads(host, group),
        waiting=int(pressure[1]) * 10 + int(pressure[2]) // 10 if pressure is not None else None,
        processes=len(pids),
        listeners=_listeners(host, open_of, tables) if any(open_of.values()) else None,
        programs={name: version or _version(host, pid, name) for pid, (name, version) in programs.items()},
        limits=_limits(host, min(programs)) if programs else {},
        files=_files(host, open_of),
    )


def _version(host: Host, pid: int, process: str) -> str:
    """The version of a process's package, if its program asks by version."""
    if not running.of_package(host, pid):
        return ""
    programs = [program for program in map(program_of, NAMES) if process in program.processes]
    asking = [program for program in programs if any(wish.since or wish.before for wish in program.wishes)]
    return next((version for program in asking for version in [version_of(host, program.packages)] if version), "")


def _threads(host: Host, group: str) -> Optional[int]:
    threads = host.number(f"{group}/pids.current")
    if threads is not None:
        return threads
    # With version 1 of control groups each controller has a tree of its own.
    return host.number(f"{group.replace('/cgroup/systemd/', '/cgroup/pids/')}/pids.current")


def _listeners(
    host: Host, open_of: Mapping[int, List[str]], tables: Dict[Optional[str], Sockets]
) -> Mapping[int, Tuple[int, int]]:
    """For each port the most sockets that one address has, and how many processes have one of them."""
    held: Dict[Place, Set[Tuple[str, int]]] = {}
    for pid, names in open_of.items():
        for inode, place in of_process(host, pid, names, tables).items():
            held.setdefault(place, set()).add((inode, pid))
    listeners: Dict[int, Tuple[int, int]] = {}
    for (_address, port), pairs in sorted(held.items()):
        most, processes = listeners.get(port, (0, 0))
        inodes, pids = map(set, zip(*pairs))
        listeners[port] = (max(most, len(inodes)), max(processes, len(pids)))
    return listeners


def _files(host: Host, open_of: Mapping[int, List[str]]) -> Optional[Tuple[int, int]]:
    files = ((len(names), _limits(host, pid).get(_FILES, 0)) for pid, names in open_of.items() if names)
    return max((pair for pair in files if pair[1]), key=lambda pair: pair[0] / pair[1], default=None)


def _limits(host: Host, pid: int) -> Mapping[str, int]:
    """The soft limits of a process that are numbers."""
    found = _LIMIT.findall(host.text(f"/proc/{pid}/limits", 4096) or "")
    return {name: int(number) for name, number in found if number != "unlimited"}
