# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only some levers can do or have to do, each as a class to mix in. PRIVATE to the collection."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import AbstractSet, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from .._host.host import WritableHost
from .._plan import Value
from .base import Lever, TableValues, Values, demand_no_place, echo, impossible, put, unwritable

Place = Tuple[str, str]  # the name of a lever, and where


class Choosing(Lever):
    """The kernel or its driver has a choice of its own, which can be known without a reboot."""

    @abstractmethod
    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        """What the kernel would choose by itself; None when that can't be known now."""


class Beside(NamedTuple):
    """The other places of a host, where they aren't as the host shows them."""

    after: Mapping[Place, Value] = {}  # what the run sets there
    online: AbstractSet[int] = frozenset()  # the CPUs that are online then; empty: those that are now


ALONE = Beside()


class Limited(Lever):
    """What it takes depends on what the host offers now, and on other places."""

    @abstractmethod
    def fitting(self, host: WritableHost, where: str, original: Value, beside: Beside) -> Value:
        """What comes back of an original: that itself where the place takes it, or else what the kernel chooses.

        None, or of a table an element left out, where the place stays as it is.
        """


class Table(Lever):
    """Its place holds a value per element."""

    values: Values = TableValues()

    def may_return(self, host: WritableHost, where: str, element: str) -> bool:
        """Whether an element that can't be read now may come back with the value that it went with."""
        return True

    def cpu_of(self, element: str) -> Optional[int]:
        """The CPU without which the element can't be read; None for an element that needs none."""
        return None


class ElementSet(Table):
    """Its place holds a set of elements."""

    @abstractmethod
    def present_elements(self, host: WritableHost, where: str) -> Dict[str, Value]:
        """The elements that can be read now, in the set or not."""


class Batch(Lever):
    """Places that follow each other in a plan are written in one go."""

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        self.write_all(host, {where: value})

    @abstractmethod
    def write_all(self, host: WritableHost, values: Mapping[str, Value]) -> None:
        """Set the values at several places (`where` → value)."""


class Shared(Batch):
    """One write for all concerns of a run, before everything else."""


class Disturbing(Lever):
    """A write makes the kernel or a driver change other places, so it comes before theirs, on the way back too."""

    creates = False  # whether a higher value makes elements in the tables there, which a lower one takes away

    @abstractmethod
    def disturbs(self, host: WritableHost, where: str) -> Iterable[Place]:
        """The places that may change."""

    def moves(self, before: Value, after: Value) -> bool:
        """Whether a change between these values moves them; `after` is None where it isn't known."""
        return True

    def kernel_chosen(self, host: WritableHost, where: str) -> Iterable[Place]:
        """The places that have what the kernel chose with the present value."""
        return ()


class Hiding(Lever):
    """Its value hides elements of other levers' tables, which come back with another value."""

    tables: Tuple[Place, ...] = ()  # places whose elements it hides

    @abstractmethod
    def hidden(self, value: Value) -> AbstractSet[str]:
        """What a value hides."""


class Declining(Lever):
    """Only a write shows which values its driver takes: it raises Declined for the others."""


class OnDevice(Lever):
    """Its places are devices, which may be detached and attached."""

    @abstractmethod
    def detached(self, host: WritableHost, where: str) -> bool:
        """Whether the device left the host: nothing is to be taken back there."""

    @abstractmethod
    def identity(self, host: WritableHost, where: str) -> str:
        """What distinguishes the device from another one at the same place; empty where the kernel doesn't say."""

    def is_another(self, host: WritableHost, where: str, device: str) -> bool:
        """Whether the device at the place has another identity than `device`; False where that isn't known."""
        return self.identity(host, where) not in ("", device)

    @abstractmethod
    def attachment(self, host: WritableHost, where: str) -> str:
        """The kernel's number for the device, another one each time it is attached; empty where there is none."""

    @abstractmethod
    def device_name(self, host: WritableHost, where: str) -> str:
        """The kernel's name for the device at the place now; the place itself where there is none."""


class OnDisk(Lever):
    """It writes files that act at boot."""

    scope = "boot"
    waits_for = "needs_reboot"  # the status of a value that is on disk and not yet in force

    def pending(self, host: WritableHost, where: str, value: Value) -> str:
        """Why `value` on disk isn't in force yet, and what brings it into force; empty when it is in force."""
        return ""

    def temporary(self, host: WritableHost, where: str) -> Iterable[str]:
        """Files that a killed run may have left beside the place."""
        return ()

    def folder(self, where: str) -> str:
        """The folder that a run made for the place, and that goes with the last file in it; empty for none."""
        return ""


class SetsOthers(OnDisk):
    """Programs of the distribution set other places from what it writes."""

    @abstractmethod
    def sets(self, host: WritableHost, where: str) -> Iterable[Place]:
        """Places that hold a value from the file at `where`, although no run of nearmetal wrote it there."""

    @abstractmethod
    def would_set(self, host: WritableHost, where: str, text: str) -> Iterable[Place]:
        """Places that hold what a file with this text at `where` would set at boot, or when a device is attached."""

    @abstractmethod
    def set_at_boot(self, host: WritableHost, where: str) -> Iterable[Place]:
        """Places that still hold the value that the file at `where` gave them at boot."""


class NamedByPath(Lever):
    """Its place is a kernel file, which a file such as one of tmpfiles.d can name by its path."""

    paths: Tuple[str, ...] = ()

    def files(self, host: WritableHost, path: str) -> List[str]:
        """The kernel files that one of its paths stands for on this host."""
        return [path]

    def meaning(self, host: WritableHost, word: str) -> Value:
        """The lever's value for what a file writes to its path; None for what the kernel doesn't take."""
        return word


class KernelValue(NamedByPath):
    """A one-word kernel file."""

    def __init__(self, what: str, path: str, pattern: str) -> None:
        super().__init__(what)
        self.paths = (path,)
        self.pattern = re.compile(pattern)

    def check(self, where: str, value: Value) -> None:
        demand_no_place(self, where)
        if not isinstance(value, str) or not self.pattern.fullmatch(value):
            raise impossible(self, value)

    def read(self, host: WritableHost, where: str) -> Value:
        text = host.text(self.paths[0])
        return text.strip() if text is not None else None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        put(host, self.paths[0], str(value))

    def obstacle(self, host: WritableHost, where: str) -> str:
        return unwritable(host, self.paths[0])

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        return [echo(self.paths[0], value)]


def write_all(lever: Lever, host: WritableHost, values: Mapping[str, Value]) -> None:
    """Set the values at several places (`where` → value)."""
    if isinstance(lever, Batch):
        lever.write_all(host, values)
        return
    for where, value in values.items():
        lever.write(host, where, value)


def kernel_choice(lever: Lever, host: WritableHost, where: str) -> Value:
    """What the kernel would choose by itself; None when that can't be known without a reboot."""
    return lever.kernel_choice(host, where) if isinstance(lever, Choosing) else None


def fitting(lever: Lever, host: WritableHost, where: str, original: Value, beside: Beside) -> Value:
    """What comes back of an original, as Limited says."""
    return lever.fitting(host, where, original, beside) if isinstance(lever, Limited) else original


def disturbed_by(lever: Lever, host: WritableHost, where: str) -> Iterable[Place]:
    """The other places that a write may change."""
    return lever.disturbs(host, where) if isinstance(lever, Disturbing) else ()


def detached(lever: Lever, host: WritableHost, where: str) -> bool:
    """Whether the place left the host with its device."""
    return isinstance(lever, OnDevice) and lever.detached(host, where)


def identity(lever: Lever, host: WritableHost, where: str) -> str:
    """What distinguishes the device at the place from another one; empty where the kernel doesn't say."""
    return lever.identity(host, where) if isinstance(lever, OnDevice) else ""


def attachment(lever: Lever, host: WritableHost, where: str) -> str:
    """The kernel's number for the device at the place, another one each time it is attached; empty without one."""
    return lever.attachment(host, where) if isinstance(lever, OnDevice) else ""


def exchanged(lever: Lever, host: WritableHost, where: str, device: str) -> bool:
    """Whether the place of `device` has another device now; False where no device is known."""
    return bool(device) and isinstance(lever, OnDevice) and lever.is_another(host, where, device)


def device_name(lever: Lever, host: WritableHost, where: str) -> str:
    """The kernel's name for the device that is at the place now."""
    return lever.device_name(host, where) if isinstance(lever, OnDevice) else where


def may_return(lever: Lever, host: WritableHost, where: str, element: str) -> bool:
    """Whether an element that can't be read now may come back with the value that it went with."""
    return not isinstance(lever, Table) or lever.may_return(host, where, element)


def cpu_of(lever: Lever, element: str) -> Optional[int]:
    """The CPU without which the element can't be read; None for an element that needs none."""
    return lever.cpu_of(element) if isinstance(lever, Table) else None


def returning(lever: Lever, elements: Iterable[str], cpus: AbstractSet[int]) -> List[str]:
    """Those of the elements that can be read when these CPUs are online."""
    return [name for name in elements if cpu_of(lever, name) in cpus]


def present_elements(lever: Lever, host: WritableHost, where: str) -> Dict[str, Value]:
    """The elements that can be read now."""
    if isinstance(lever, ElementSet):
        return lever.present_elements(host, where)
    present = lever.read(host, where)
    return {} if present is None and lever.scope == "runtime" else lever.values.elements(present)


def completed(lever: Lever, host: WritableHost, where: str, value: Value) -> Value:
    """A value from before nearmetal's change, with the elements that came to the place since it was read."""
    present = lever.read(host, where) if isinstance(lever, Table) and isinstance(value, Mapping) else None
    return {**present, **value} if isinstance(present, Mapping) and isinstance(value, Mapping) else value
