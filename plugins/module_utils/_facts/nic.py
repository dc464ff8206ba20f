# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network interfaces of a host and the interrupts of their queues. PRIVATE to the collection.

A NIC's place is its device ("0000:00:05.0", "virtio0", "vif-0"): it stays when the
interface is renamed, and interrupt numbers change with every reset.
"""

from __future__ import annotations

import os
import re
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from .._number import is_number
from .._parse import irq_name
from .._parse.interrupts import Interrupts
from . import interrupts
from .host import Host
from .interface import NET, devices, is_up
from .interrupts import Vector

PLACE = re.compile(
    r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|virtio[0-9]{1,5}|vif-[0-9]{1,5}|[0-9a-f-]{36}", re.ASCII
)
_ETHERNET = "1"
_QUEUE = re.compile(r"(rx|tx)-([0-9]{1,4})", re.ASCII)
# Drivers of NICs on the PCI bus. Their bare interface name is the mailbox's or the link's interrupt, never a queue's.
PCI_DRIVERS = ("ixgbevf", "ixgbe", "igb", "igbvf", "ena", "i40e", "iavf", "ice", "mlx5_core", "mlx4_en", "bnxt_en")
# Drivers that, at a reset, take the address that the interface was given for the permanent one.
_REPLACE_ADDRESS = ("ixgbevf", "igbvf")
_OWN_ADDRESS = "0"  # NET_ADDR_PERM of the kernel: nobody has given it another one


class Nic(NamedTuple):
    """One interface with hardware behind it."""

    name: str
    place: str
    ifindex: int  # ascending in the order in which interfaces appeared
    up: bool  # an interface that is down carries no traffic
    driver: Optional[str]
    node: Optional[int]  # the NUMA node; None: near none in particular
    rx: Tuple[int, ...]  # queues that carry traffic now, ascending
    tx: Tuple[int, ...]
    vectors: Tuple[Vector, ...]  # interrupts of these queues
    surplus: Tuple[int, ...]  # interrupts that no queue uses now

    @property
    def folder(self) -> str:
        """The device's directory in /sys."""
        return "{}/{}".format(NET, self.name)


def observe(host: Host, table: Interrupts, place: str = "") -> Tuple[Nic, ...]:
    """Every interface with hardware behind it, or the one at a place, in the order in which they appeared."""
    by_name = interrupts.queues(table)
    nics = (
        _nic(host, table, by_name, name, found)
        for name, found in devices(host).items()
        if place in ("", found) and host.line(f"{NET}/{name}/type") == _ETHERNET
    )
    return tuple(sorted(nics, key=lambda nic: (nic.ifindex, nic.name)))


def name_at(host: Host, place: str) -> Optional[str]:
    """The name of the interface at a place; None when there is none."""
    return next((name for name, found in devices(host).items() if found == place), None)


def replaces_address(host: Host, name: str) -> bool:
    """Whether the interface was given an address that its driver takes for the permanent one."""
    driver = host.target(f"{NET}/{name}/device/driver")
    assigned = host.line("{}/{}/addr_assign_type".format(NET, name))
    return driver in _REPLACE_ADDRESS and assigned not in (None, _OWN_ADDRESS)


def uppers(host: Host) -> Dict[str, Tuple[str, ...]]:
    """Bonds, VLANs, bridges: interface → the interfaces directly below it."""
    entries = {name: host.names(f"{NET}/{name}") for name in host.names(NET)}
    lower = {name: tuple(entry[6:] for entry in entries[name] if entry.startswith("lower_")) for name in entries}
    return {name: members for name, members in lower.items() if members}


def queue_numbers(host: Host, name: str) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """The receive and transmit queues that the kernel uses now."""
    matches = [_QUEUE.fullmatch(entry) for entry in host.names("{}/{}/queues".format(NET, name))]
    numbers: Dict[str, List[int]] = {"rx": [], "tx": []}
    for match in matches:
        if match is not None:
            numbers[match.group(1)].append(int(match.group(2)))
    return tuple(sorted(numbers["rx"])), tuple(sorted(numbers["tx"]))


def _nic(host: Host, table: Interrupts, by_name: Dict[str, Tuple[Vector, ...]], name: str, place: str) -> Nic:
    folder = "{}/{}".format(NET, name)
    driver = host.target(folder + "/device/driver") or None
    rx, tx = queue_numbers(host, name)
    owned = _owned(host, folder)
    aliases = (name, place, place.replace("vif-", "vif"), _parent(host, folder))
    vectors = interrupts.numbered(driver, _vectors(table, by_name, owned, aliases))
    if not vectors and driver not in PCI_DRIVERS:
        bare = [line.number for line in table.lines if line.number >= 0 and name in line.names]
        vectors = tuple(Vector(number, irq_name.BOTH, queue) for queue, number in enumerate(sorted(bare)))
    live = {"rx": set(rx), "tx": set(tx), "both": set(rx) | set(tx)}
    used = tuple(vector for vector in vectors if vector.queue in live[vector.kind])
    nameless = {line.number for line in table.lines if line.number in owned and not line.names}
    node = host.line(folder + "/device/numa_node") or host.line(folder + "/device/../numa_node") or ""
    return Nic(
        name=name,
        place=place,
        ifindex=host.number(folder + "/ifindex") or 0,
        up=is_up(host, name),
        driver=driver,
        node=int(node) if is_number(node) else None,
        rx=rx,
        tx=tx,
        vectors=used,
        surplus=tuple(sorted(nameless | {vector.irq for vector in vectors if vector not in used})),
    )


def _owned(host: Host, folder: str) -> Set[int]:
    """The interrupts that the kernel lists for the device, or for the PCI device that carries virtio.

    Empty on Xen since Linux 5.17, where only the interrupts' names say whose they are.
    """
    for path in ("/device/msi_irqs", "/device/../msi_irqs"):
        names = host.names(folder + path)
        numbers = {int(name) for name in names if is_number(name)}
        if numbers:
            return numbers
    return set()


def _vectors(
    table: Interrupts, by_name: Dict[str, Tuple[Vector, ...]], owned: Set[int], aliases: Tuple[str, ...]
) -> Tuple[Vector, ...]:
    """The device's queue interrupts: those that it owns, whatever their names, else those with one of its names."""
    found_vectors = []
    for line in table.lines:
        if line.number in owned:
            names = [irq_name.queue_of(name) for name in line.names]
            found_vectors += [Vector(line.number, queue.kind, queue.queue) for queue in names if queue is not None]
    if found_vectors:
        return interrupts.ordered(found_vectors)
    return next((by_name[alias] for alias in aliases if alias in by_name), ())


def _parent(host: Host, folder: str) -> str:
    """The PCI address above the device, "" when there is none."""
    return os.path.basename(os.path.dirname(os.path.realpath(host.real(folder + "/device"))))
