# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where services run, and near which node devices are. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
from typing import Dict, FrozenSet, Iterator, Mapping, NamedTuple, Optional, Tuple

from .._error import NearmetalError
from .._number import process_numbers
from .._parse import cpulist, numa_maps
from .host import Host
from .interface import NET
from .systemd import TREES, UNIT_FOLDERS

NVME = "/sys/class/nvme"
PCI = "/sys/bus/pci/devices"

UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,120}(?:@[A-Za-z0-9_.:-]{0,100})?\.service", re.ASCII)
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)

_STATUS = re.compile(r"^(PPid|Cpus_allowed_list):\s*([0-9,-]{1,4096})$", re.ASCII | re.MULTILINE)
# A service of more processes than this has its main one among the oldest.
_LOOKED_AT = 16


class Process(NamedTuple):
    """The main process of a service."""

    pid: int
    cpus: Optional[str]  # CPUs on which it may run, as a kernel list
    policy: Optional[Tuple[str, Tuple[int, ...]]]  # of memory: ("bind", (1,)), ("default", ()); None: can't be read


class Device(NamedTuple):
    """A device on the PCI bus."""

    address: str
    node: Optional[int]  # None: near none in particular


# Kernel lists of CPUs or nodes, for planners, which import no parser.
listed, shown = cpulist.parse, cpulist.render


def units(host: Host) -> FrozenSet[str]:
    """The names of all unit files of services, with templates."""
    return frozenset(name for folder in UNIT_FOLDERS for name in host.names(folder) if name.endswith(".service"))


def observe(host: Host) -> Mapping[str, Process]:
    """Running service → its main process: the one in its control group that systemd started."""
    processes: Dict[str, Process] = {}
    for unit, group in groups(host):
        for pid in process_numbers((host.text(f"{group}/cgroup.procs") or "").split())[:_LOOKED_AT]:
            status = dict(_STATUS.findall(host.text(f"/proc/{pid}/status", 65536) or ""))
            if status.get("PPid") == "1":
                processes.setdefault(unit, Process(pid, status.get("Cpus_allowed_list"), _policy(host, pid)))
    return processes


def devices(host: Host) -> Mapping[str, Device]:
    """Name → device: interfaces, NVMe controllers, and PCI addresses."""
    addresses = filter(ADDRESS.fullmatch, host.names(PCI))
    devices_by_name = {address: Device(address, host.number(f"{PCI}/{address}/numa_node")) for address in addresses}
    for name in host.names(NET):
        path = os.path.realpath(host.real(f"{NET}/{name}/device"))
        # A virtio NIC has its PCI device above it.
        for address in (os.path.basename(path), os.path.basename(os.path.dirname(path))):
            if address in devices_by_name:
                devices_by_name.setdefault(name, devices_by_name[address])
    for name in host.names(NVME):
        address = host.line(f"{NVME}/{name}/address") or ""
        if address in devices_by_name:
            devices_by_name[name] = devices_by_name[address]
    return devices_by_name


def groups(host: Host) -> Iterator[Tuple[str, str]]:
    """Unit and control group of each service, two slices deep: system-getty.slice is in system.slice."""
    for root in TREES:
        for outer in (name for name in host.names(root) if name.endswith(".slice")):
            for name in host.names(f"{root}/{outer}"):
                inner = f"{root}/{outer}/{name}"
                if UNIT.fullmatch(name):
                    yield name, inner
                elif name.endswith(".slice"):
                    yield from ((unit, f"{inner}/{unit}") for unit in host.names(inner) if UNIT.fullmatch(unit))


def _policy(host: Host, pid: int) -> Optional[Tuple[str, Tuple[int, ...]]]:
    # So short a read makes the kernel walk the first mapping only; all of a large heap would take seconds.
    try:
        return numa_maps.policy(host.text(f"/proc/{pid}/numa_maps", 64) or "")
    except NearmetalError:
        return None
