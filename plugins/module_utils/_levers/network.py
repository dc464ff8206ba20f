# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of NICs: interrupts and steering, per queue. PRIVATE to the collection.

`where` is the NIC's place. Interrupt numbers are looked up at each write: a
reset of the device renews them.
"""

from __future__ import annotations

import errno
from abc import abstractmethod
from typing import Callable, Dict, Iterable, Optional

from .._error import NearmetalError
from .._facts import ethtool, interrupts, irqbalance_process, network, nic
from .._facts.host import Host
from .._facts.interface import NET
from .._facts.nic import PLACE, Nic
from .._facts.topology import CPU
from .._number import is_number
from .._parse import cpulist, cpumask
from .._plan import Value
from .._words import shown
from .base import Beside, Key, Lever, TableOfFiles, impossible, refused

_MOST_QUEUES = 1024
_BUSES = ("pci", "virtio", "xen", "vmbus")


class OnNic(Lever):
    """Its place is a NIC's, or begins with it."""

    on_device = True
    places = PLACE

    @property
    def place(self) -> str:
        """The NIC's own place."""
        return self.where.partition("/")[0]

    def nic(self) -> Optional[Nic]:
        """The NIC at the place; None when there is none."""
        return next(iter(nic.observe(self.host, interrupts.observe(self.host), self.place)), None)

    def require_nic(self) -> Nic:
        """The NIC at the place. Raises NearmetalError when there is none."""
        interface = self.nic()
        if interface is None:
            raise NearmetalError(self.absent())
        return interface

    def absent(self) -> str:
        """The sentence for a NIC that has left the host."""
        return f"no network interface is at {self.place} any more"

    def interrupts(self) -> Iterable[Key]:
        """The interrupts that a change of the NIC resets; none while irqbalance runs, which moves them anyway."""
        return () if irqbalance_process.arguments(self.host) is not None else (("network.affinity", self.place),)

    def obstacle(self) -> str:
        return "" if nic.name_at(self.host, self.place) is not None else self.absent()

    def detached(self) -> bool:
        """Whether the device left the host; one whose interface was given to a container has not."""
        return self.nic() is None and not any(
            self.host.exists(f"/sys/bus/{bus}/devices/{self.place}") for bus in _BUSES
        )

    def identity(self) -> str:
        """The permanent address; empty where the driver lets a bond or an operator change that too."""
        name = nic.name_at(self.host, self.place)
        if name is None or nic.replaces_address(self.host, name):
            return ""
        return ethtool.permanent_address(self.host, name) or ""

    def attachment(self) -> str:
        name = nic.name_at(self.host, self.place)
        return (self.host.line(f"{NET}/{name}/ifindex") or "") if name is not None else ""

    def device_name(self) -> str:
        return nic.name_at(self.host, self.place) or self.where


class QueueTable(TableOfFiles, OnNic):
    """A value per queue of one NIC: `label` → CPUs as a kernel list, or a number of flows."""

    def fits(self, where: str, value: Value) -> bool:
        if not isinstance(value, dict) or len(value) > 2 * _MOST_QUEUES:
            return False
        for label, entry in value.items():
            kind, _dash, number = str(label).rpartition("-")
            if kind not in ("", "rx", "tx") or not is_number(number) or int(number) >= _MOST_QUEUES:
                raise NearmetalError(f"{self.what}: {shown(label)} isn't a queue")
            self.check_entry(entry)
        return True

    def check_entry(self, entry: object) -> None:
        """Raise NearmetalError unless the entry is a kernel list."""
        if not isinstance(entry, str):
            raise impossible(self, entry)
        cpulist.parse(entry)

    def may_return(self, element: str) -> bool:
        interface = self.nic()
        path = self.files_of(interface).get(element) if interface is not None else None
        return interface is None or (path is not None and self.host.exists(path))

    def obstacle(self) -> str:
        return super().obstacle() if self.nic() is not None else self.absent()

    def refusal(self, error: OSError, name: str, part: Value, path: str) -> NearmetalError:
        return refused(error, f"{part} for queue {name} of {self.where}")

    def paths(self) -> Dict[str, str]:
        return self.files_of(self.require_nic())

    @abstractmethod
    def files_of(self, interface: Nic) -> Dict[str, str]:
        """Queue label → the file to write."""


class Affinity(QueueTable):
    """The CPU that each queue interrupts."""

    def fitting(self, original: Value, beside: Beside) -> Value:
        """An interrupt of CPUs that are all offline stays where the kernel has moved it."""
        online = frozenset(beside.online or cpulist.parse(self.host.line(f"{CPU}/online") or ""))
        tables = self.elements(original).items()
        return {label: cpus for label, cpus in tables if not online or online.intersection(cpulist.parse(str(cpus)))}

    def read(self) -> Value:
        interface = self.nic()
        return network.wanted(network.affinity(self.host, interface)) if interface is not None else None

    def files_of(self, interface: Nic) -> Dict[str, str]:
        return {vector.label: f"{interrupts.IRQ}/{vector.irq}/smp_affinity_list" for vector in interface.vectors}

    def may_return(self, element: str) -> bool:
        interface = self.nic()
        if interface is None or element in self.files_of(interface):
            return True
        kind, _dash, number = element.rpartition("-")
        if any(vector.queue == int(number) for vector in interface.vectors):
            # The driver gave the queue's interrupts other names, and with them new ones.
            return False
        # An interface that is down has freed its interrupts; the kernel remembers their affinity.
        return int(number) in interface.tx if kind == "tx" else int(number) in interface.rx

    def refusal(self, error: OSError, name: str, part: Value, path: str) -> NearmetalError:
        # EIO before Linux 6.12, EPERM since then: the driver leaves the interrupt to the kernel.
        if error.errno in (errno.EIO, errno.EPERM):
            attempt = f"{part} for queue {name} of {self.where}"
            return NearmetalError(f"{attempt}: the kernel manages this interrupt itself, so nobody can move it")
        return super().refusal(error, name, part, path)

    def choice(self) -> Value:
        interface = self.nic()
        default = self.host.line(f"{interrupts.IRQ}/default_smp_affinity")
        if interface is None or default is None:
            return None
        cpus = cpulist.render(cpumask.parse(default))
        return {vector.label: cpus for vector in interface.vectors}


class QueueFile(QueueTable):
    """A file of each receive or each transmit queue, with the kernel's `default` where that is known."""

    def __init__(self, what: str, side: str, file: str, table: Callable[[Host, Nic], Value], default: Value) -> None:
        super().__init__(what)
        self.side, self.file, self.table, self.default = side, file, table, default

    def read(self) -> Value:
        interface = self.nic()
        return self.table(self.host, interface) if interface is not None else None

    def word(self, part: Value) -> str:
        return cpumask.render(cpulist.parse(str(part)))

    def files_of(self, interface: Nic) -> Dict[str, str]:
        labels = [f"{self.side}-{queue}" for queue in (interface.rx if self.side == "rx" else interface.tx)]
        return {label: f"{interface.folder}/queues/{label}/{self.file}" for label in labels}

    def choice(self) -> Value:
        interface = self.nic()
        return dict.fromkeys(self.files_of(interface), self.default) if interface and self.default is not None else None


class Rps(QueueFile):
    """The CPUs that share the packets of each receive queue."""

    def partial_write(self, present: Value, original: Value, value: Value) -> bool:
        # The kernel leaves out CPUs that are isolated, since Linux 5.9.
        return bool(present) and set(network.cpus(str(present))) < set(network.cpus(str(value)))


class QueueNumber(QueueFile):
    """A number per queue: flows that it remembers, or bytes in flight that it is always allowed."""

    def check_entry(self, entry: object) -> None:
        if isinstance(entry, bool) or not isinstance(entry, int) or not 0 <= entry < 1 << 32:
            raise impossible(self, entry)

    def word(self, part: Value) -> str:
        return str(part)


LEVERS = (
    Affinity("network.affinity"),
    Rps("network.rps", "rx", "rps_cpus", lambda host, interface: network.steering(host, interface).rps, ""),
    QueueNumber("network.rfs", "rx", "rps_flow_cnt", lambda host, interface: network.steering(host, interface).rfs, 0),
    QueueFile("network.xps", "tx", "xps_cpus", lambda host, interface: network.steering(host, interface).xps, None),
    QueueNumber("network.bql", "tx", "byte_queue_limits/limit_min", network.bql, 0),
)
