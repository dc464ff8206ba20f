# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts as data: tests/hosts/<name>.json laid out as files below a root.

A host file holds `files` (path → text) and `shape` (sockets, cores per socket,
threads per core, nodes), from which the topology files follow in the numbering
that x86 Linux uses: all first threads, then all second ones. `idle` and `frequency`
are there on hosts that choose their own power (files/power.py). Written by hand
after the manuals; no recording is copied.
"""

from __future__ import annotations

import fnmatch
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Tuple

from tests.support.files.counters import counter_files
from tests.support.files.memory import memory_files
from tests.support.files.power import frequency_files, idle_files
from tests.support.files.sysctls import sysctl_files
from tests.support.kernel.disks import disk_files
from tests.support.kernel.nics import nic_files

FOLDER = Path(__file__).resolve().parent.parent / "hosts"
CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"

# systemd has booted it, and the distribution has its own Python.
BOOTED = {
    "/run/systemd/system/units": "",
    "/usr/bin/python3.11": "",
    "/usr/lib/systemd/libsystemd-shared-252.so": "",
}


def names() -> Tuple[str, ...]:
    """The names of all hosts."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def files_of(name: str, changes: Optional[Dict[str, Optional[str]]] = None) -> Dict[str, str]:
    """Path → text of a host, with `changes` (None removes a file); a path with * is each file that matches."""
    return built(json.loads((FOLDER / f"{name}.json").read_text()), changes)


def built(host: Dict[str, Any], changes: Optional[Dict[str, Optional[str]]] = None) -> Dict[str, str]:
    """The same for a host that isn't in a file."""
    shape = host["shape"]
    files = {**BOOTED, **dict(_topology(**shape)), **dict(memory_files(shape["nodes"]))}
    files.update(counter_files(shape["nodes"], host.get("nics", [])))
    cpus = shape["sockets"] * shape["cores"] * shape["threads"]
    if "idle" in host:
        files.update(idle_files(cpus, **host["idle"]))
    if "frequency" in host:
        files.update(frequency_files(cpus, **host["frequency"]))
    if "nics" in host:
        files.update(nic_files(cpus, host["nics"]))
        files.update(sysctl_files("net"))
    if "disks" in host:
        files.update(disk_files(host["disks"]))
    files.update(host["files"])
    for name, text in (changes or {}).items():
        paths = fnmatch.filter(files, name) if "*" in name else [name]
        assert paths, f"the host has no file {name}"
        for path in paths:
            if text is None:
                del files[path]
            else:
                files[path] = text
    return files


def lay_out(root: Path, files: Dict[str, str]) -> None:
    """Write the files below the root; "-> target" is a symbolic link."""
    write(root, files)
    for folder in ("etc/tmpfiles.d", "etc/systemd/system", "etc/udev/rules.d", "var/lib", "run", "usr/bin"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (root / "usr/bin/python3").symlink_to("python3.11")


def write(root: Path, files: Dict[str, str]) -> None:
    """Write these files, except those that already have the right text."""
    made = set()
    for path, text in files.items():
        place = f"{root}/{path.lstrip('/')}"
        try:
            if os.readlink(place) == text[3:] if text.startswith("-> ") else _bytes(place) == text.encode():
                continue
        except OSError:
            folder = os.path.dirname(place)
            if folder not in made:
                os.makedirs(folder, exist_ok=True)
                made.add(folder)
        if text.startswith("-> "):
            with suppress(FileExistsError):
                os.symlink(text[3:], place)
        else:
            with open(place, "w", encoding="utf-8") as stream:
                stream.write(text)


def _bytes(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 22)
    finally:
        os.close(descriptor)


def _topology(sockets: int, cores: int, threads: int, nodes: int) -> Iterator[Tuple[str, str]]:
    total = sockets * cores * threads
    firsts = sockets * cores
    for name in ("online", "present", "possible"):
        yield f"{CPU}/{name}", f"0-{total - 1}\n" if total > 1 else "0\n"
    for cpu in range(total):
        core = cpu % firsts
        siblings = ",".join(str(core + firsts * thread) for thread in range(threads))
        yield f"{CPU}/cpu{cpu}/topology/physical_package_id", f"{core // cores}\n"
        yield f"{CPU}/cpu{cpu}/topology/core_siblings_list", f"{_together(core // cores, cores, firsts, threads)}\n"
        yield f"{CPU}/cpu{cpu}/topology/core_id", f"{core % cores}\n"
        yield f"{CPU}/cpu{cpu}/topology/thread_siblings_list", f"{siblings}\n"
        if cpu:
            yield f"{CPU}/cpu{cpu}/online", "1\n"
    per_node = firsts // nodes
    yield f"{NODE}/online", f"0-{nodes - 1}\n" if nodes > 1 else "0\n"
    for node in range(nodes):
        yield f"{NODE}/node{node}/cpulist", f"{_together(node, per_node, firsts, threads)}\n"
        yield f"{NODE}/node{node}/distance", " ".join("10" if other == node else "21" for other in range(nodes)) + "\n"
        yield f"{NODE}/node{node}/meminfo", f"Node {node} MemTotal:       8388608 kB\n"


def _together(number: int, cores: int, firsts: int, threads: int) -> str:
    """The cpu list of the socket or node `number` that has so many cores."""
    first = number * cores
    return ",".join(str(core + firsts * thread) for thread in range(threads) for core in range(first, first + cores))
