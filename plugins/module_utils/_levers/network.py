# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of NICs: interrupts and steering, per queue. PRIVATE to the collection.

`where` is the NIC's place. Interrupt numbers are looked up at each write: a
reset of the device renews them.
"""

from __future__ import annotations

import errno
import os
from abc import abstractmethod
from typing import Dict, Iterable, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import interrupts, irqbalance_process, network, nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.nic import Nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import Table
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import cpulist, cpumask
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value

_MOST_QUEUES = 1024
_BUSES = ("pci", "virtio", "xen", "vmbus")


def nic_at(host: WritableHost, where: str) -> Optional[Nic]:
    """The NIC at a place; None when it is gone."""
    return next((one for one in nic.observe(host, interrupts.observe(host)) if one.place == where), None)


def demand_nic(host: WritableHost, where: str) -> Nic:
    """The NIC at a place; NearmetalError when it is gone."""
    found = nic_at(host, where)
    if found is None:
        raise NearmetalError(f"no network interface is at {where} any more")
    return found


def moved_interrupts(host: WritableHost, places: Iterable[str]) -> Iterable[Tuple[str, str]]:
    """Lever and place of the interrupts that move with a change of these NICs; irqbalance moves them anyway."""
    if irqbalance_process.arguments(host) is not None:
        return ()
    return tuple(("network.affinity", place) for place in places)


def nic_gone(host: WritableHost, where: str) -> bool:
    """Whether the device left the host; one whose interface was lent to a container is still there."""
    return nic_at(host, where) is None and not any(host.exists(f"/sys/bus/{bus}/devices/{where}") for bus in _BUSES)


def refused(error: OSError, what: str) -> NearmetalError:
    """The kernel's refusal as one sentence."""
    name = errno.errorcode.get(error.errno or 0, "error")
    return NearmetalError(f"the kernel refused {what} ({name}: {os.strerror(error.errno or 0)})")


class QueueTable(Table):
    """A value per queue of one NIC: `label` → CPUs as a kernel list, or a number of flows."""

    def check(self, where: str, value: Value) -> None:
        if not nic.PLACE.fullmatch(where):
            raise NearmetalError(f"{self.what} has no place {where!r}")
        if not isinstance(value, dict) or len(value) > 2 * _MOST_QUEUES:
            raise NearmetalError(f"{self.what} can't be {value!r}")
        for label, entry in value.items():
            kind, _dash, number = str(label).rpartition("-")
            if kind not in ("", "rx", "tx") or not number.isdigit() or int(number) >= _MOST_QUEUES:
                raise NearmetalError(f"{self.what}: {label!r} is no queue")
            self.check_entry(entry)

    def check_entry(self, entry: object) -> None:
        """Raise NearmetalError unless the entry is a kernel list."""
        if not isinstance(entry, str):
            raise NearmetalError(f"{self.what} can't be {entry!r}")
        cpulist.parse(entry)

    def same(self, now: Value, value: Value) -> bool:
        """A table holds when each of its entries does that has a queue; other queues are no concern of it.

        Queues go between a run and its way back; whether a run got those it asked for is seen by its next plan.
        """
        if not isinstance(now, dict) or not isinstance(value, dict):
            return now == value
        return all(now.get(label, entry) == entry for label, entry in value.items())

    def gone(self, host: WritableHost, where: str) -> bool:
        return nic_gone(host, where)

    def away(self, host: WritableHost, where: str, element: str) -> bool:
        found = nic_at(host, where)
        path = self.paths(host, found).get(element) if found is not None else None
        return found is None or (path is not None and host.exists(path))

    def obstacle(self, host: WritableHost, where: str) -> str:
        found = nic_at(host, where)
        if found is None:
            return f"no network interface is at {where} any more"
        path = self.paths(host, found).get(next(iter(self.paths(host, found)), ""), found.folder)
        return "" if host.writable(path) else f"{path} can't be written here: run on the host itself"

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        paths = self.paths(host, demand_nic(host, where))
        now = self.read(host, where)
        for label, entry in dict(value if isinstance(value, Mapping) else {}).items():
            if label not in paths or (isinstance(now, Mapping) and now.get(label) == entry):
                continue
            try:
                host.write_value(paths[label], self.text(entry))
            except OSError as error:
                raise self.trouble(error, f"{entry} for queue {label} of {where}") from None

    def trouble(self, error: OSError, what: str) -> NearmetalError:
        """What a failed write means."""
        return refused(error, what)

    @abstractmethod
    def paths(self, host: WritableHost, one: Nic) -> Dict[str, str]:
        """Queue label → the file to write."""

    def text(self, entry: object) -> str:
        """What is written for an entry."""
        return f"{cpumask.render(cpulist.parse(str(entry)))}\n"


class Affinity(QueueTable):
    """The CPU that each queue interrupts."""

    def read(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return network.wanted(network.affinity(host, found)) if found is not None else None

    def paths(self, host: WritableHost, one: Nic) -> Dict[str, str]:
        return {vector.label: f"{interrupts.IRQ}/{vector.irq}/smp_affinity_list" for vector in one.vectors}

    def text(self, entry: object) -> str:
        return f"{entry}\n"

    def away(self, host: WritableHost, where: str, element: str) -> bool:
        found = nic_at(host, where)
        if found is None or element in self.paths(host, found):
            return True
        # An interface that is down has given its interrupts back; the kernel remembers where they were to go.
        kind, _dash, number = element.rpartition("-")
        return int(number) in found.tx if kind == "tx" else int(number) in found.rx

    def trouble(self, error: OSError, what: str) -> NearmetalError:
        # EIO before Linux 6.12, EPERM since: the driver let the kernel place it.
        if error.errno in (errno.EIO, errno.EPERM):
            return NearmetalError(f"{what}: the kernel manages this interrupt itself, nobody can move it")
        return refused(error, what)

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        default = host.line(f"{interrupts.IRQ}/default_smp_affinity")
        if found is None or default is None:
            return None
        cpus = cpulist.render(cpumask.parse(default))
        return {vector.label: cpus for vector in found.vectors}


class Rps(QueueTable):
    """The CPUs that share the packets of each receive queue."""

    def read(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return network.steering(host, found).rps if found is not None else None

    def paths(self, host: WritableHost, one: Nic) -> Dict[str, str]:
        return {f"rx-{queue}": f"{one.folder}/queues/rx-{queue}/rps_cpus" for queue in one.rx}

    def partly(self, now: Value, original: Value, value: Value) -> bool:
        # The kernel leaves out CPUs that are isolated, since Linux 5.9.
        return bool(now) and set(network.cpus(str(now))) < set(network.cpus(str(value)))

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return {f"rx-{queue}": "" for queue in found.rx} if found is not None else None


class Rfs(QueueTable):
    """The number of flows that each receive queue remembers."""

    def check_entry(self, entry: object) -> None:
        if isinstance(entry, bool) or not isinstance(entry, int) or not 0 <= entry <= 1 << 30:
            raise NearmetalError(f"{self.what} can't be {entry!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return network.steering(host, found).rfs if found is not None else None

    def paths(self, host: WritableHost, one: Nic) -> Dict[str, str]:
        return {f"rx-{queue}": f"{one.folder}/queues/rx-{queue}/rps_flow_cnt" for queue in one.rx}

    def text(self, entry: object) -> str:
        return f"{entry}\n"

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return {f"rx-{queue}": 0 for queue in found.rx} if found is not None else None


class Xps(QueueTable):
    """The CPUs that send through each transmit queue."""

    def read(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return network.steering(host, found).xps if found is not None else None

    def paths(self, host: WritableHost, one: Nic) -> Dict[str, str]:
        return {f"tx-{queue}": f"{one.folder}/queues/tx-{queue}/xps_cpus" for queue in one.tx}


class Bql(QueueTable):
    """The bytes in flight that each transmit queue is always allowed."""

    def check_entry(self, entry: object) -> None:
        if isinstance(entry, bool) or not isinstance(entry, int) or not 0 <= entry < 1 << 32:
            raise NearmetalError(f"{self.what} can't be {entry!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return network.bql(host, found) if found is not None else None

    def paths(self, host: WritableHost, one: Nic) -> Dict[str, str]:
        return {f"tx-{queue}": network.bql_file(one, queue, "limit_min") for queue in one.tx}

    def text(self, entry: object) -> str:
        return f"{entry}\n"

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return {f"tx-{queue}": 0 for queue in found.tx} if found is not None else None


LEVERS = (
    Affinity("network.affinity"),
    Rps("network.rps"),
    Rfs("network.rfs"),
    Xps("network.xps"),
    Bql("network.bql"),
)
