# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on this host: known programs, their processes and the ports on which they listen. PRIVATE.

The host may have tens of thousands of processes and as many connections. So a process costs one short read; more is
read only of known programs, of their first processes, and of the beginning of each table.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from .._number import process_numbers
from .._parse import program
from . import listening
from .host import Host

_MOST_PROCESSES = 65536
_FIRST_PROCESSES = 8  # of a program: they listen, or their children inherited it from them
_COMM = 64
# The main class comes after the class path.
_COMMAND_LINE = 1024 * 1024


class Program(NamedTuple):
    """A known program that runs."""

    name: str
    processes: int
    contained: int  # processes in a PID namespace of their own, as in a container
    ports: Tuple[int, ...]  # TCP ports on which it listens
    version: str = ""  # in the name of its jar or its archive's folder; empty: none, or not the same for all processes
    packaged: bool = True  # each of its processes may run what a package of this host brings
    collectors: Tuple[str, ...] = ()  # the options with which Java was started for one that we know


class RunningFacts(NamedTuple):
    """The known programs by name, and the number of processes that were looked at."""

    programs: Tuple[Program, ...]
    processes: int


def observe(host: Host) -> RunningFacts:
    """Observe the known programs that run. A process that ends meanwhile isn't counted."""
    pids = process_numbers(host.names("/proc"))[:_MOST_PROCESSES]
    pids_of: Dict[str, List[int]] = {}
    versions: Dict[str, Set[str]] = {}
    for pid in pids:
        name, version = program_of(host, pid)
        if name:
            pids_of.setdefault(name, []).append(pid)
            versions.setdefault(name, set()).add(version)
    outside = host.link("/proc/1/ns/pid") if pids_of else None
    tables: Dict[Optional[str], listening.Sockets] = {}
    programs = []
    for name, numbers in sorted(pids_of.items()):
        spaces = [host.link(f"/proc/{pid}/ns/pid") for pid in numbers]
        contained = sum(outside is not None and space not in (None, outside) for space in spaces)
        ports: Set[int] = set()
        for pid in numbers[:_FIRST_PROCESSES]:
            sockets = listening.of_process(host, pid, host.names(f"/proc/{pid}/fd"), tables)
            ports.update(port for _address, port in sockets.values())
        packaged = not contained and all(of_package(host, pid) for pid in numbers[:_FIRST_PROCESSES])
        version = versions[name].pop() if len(versions[name]) == 1 else ""
        on_java = numbers[:_FIRST_PROCESSES] if program.is_on_java(name) else []
        words = "".join(host.text(f"/proc/{pid}/cmdline", _COMMAND_LINE) or "" for pid in on_java)
        options = tuple(sorted({*program.collectors(words)}))
        programs.append(Program(name, len(numbers), contained, tuple(sorted(ports)), version, packaged, options))
    return RunningFacts(tuple(programs), len(pids))


def program_of(host: Host, pid: int) -> Tuple[str, str]:
    """The known program that a process runs, and the version in names of its files; empty where there is none."""
    name = program.by_comm(host.text(f"/proc/{pid}/comm", _COMM) or "")
    if name is None:
        return "", ""
    # A kernel thread and a process that has ended run no file.
    executable = host.link(f"/proc/{pid}/exe")
    if executable is None or program.is_interpreter(program.file_name(executable)):
        return "", ""
    words = (host.text(f"/proc/{pid}/cmdline", _COMMAND_LINE) or "") if name == "java" else ""
    name = program.on_java(words) if name == "java" else name
    return name, program.version_in(name, executable) or program.version_in(name, words)


def of_package(host: Host, pid: int) -> bool:
    """Whether a process may run what a package of this host brings: not what a container, a snap or a user has."""
    spaces = [host.link(f"/proc/{each}/ns/pid") for each in (1, pid)]
    executable, words = host.link(f"/proc/{pid}/exe"), host.text(f"/proc/{pid}/cmdline", _COMMAND_LINE)
    return program.is_packaged(executable or "", words or "") and (None in spaces or spaces[0] == spaces[1])
