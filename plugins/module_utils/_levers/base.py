# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lever is: how one `what` of an action is read, compared, checked and written. PRIVATE to the collection.

An action or a journal entry names a lever and a place, never a path; so a
tampered journal can ask for nothing that is not in the list of levers.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from copy import copy
from typing import AbstractSet, Dict, Iterable, List, Mapping, NamedTuple, Optional, Pattern, Tuple, TypeVar

from .._error import NearmetalError
from .._host.host import WritableHost
from .._plan import Value
from .._words import shown


class Values:
    """How values of one kind are compared and divided into elements; only a table has several. Pure."""

    partial = False  # a value may name only some elements of its place, and leaves the others as they are

    def same(self, present: Value, value: Value) -> bool:
        """Whether a place that reads `present` holds `value`."""
        return present == value

    def same_element(self, present: Value, value: Value) -> bool:
        """Whether an element that reads `present` holds `value`."""
        return self.same(present, value)

    def applied(self, present: Value, before: Value, after: Value) -> bool:
        """Whether the change from `before` to `after` is in effect at a place that reads `present`."""
        return self.same(present, after)

    def partial_write(self, present: Value, original: Value, value: Value) -> bool:
        """Whether an interrupted write of `value` may have left `present`."""
        return False

    def original(self, before: Value) -> Value:
        """What restore brings back, given the value before nearmetal's first change."""
        return before

    def remembered(self, value: Value) -> Value:
        """What the journal keeps of a value that nearmetal wrote, enough to recognize it again."""
        return value

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        """Element → value; a set also has those of the elements `names` that aren't in it."""
        return {"": value}

    def composed(self, elements: Mapping[str, Value], value: Value) -> Value:
        """The value that has these elements; a set has its other elements from `value`."""
        return elements.get("", value)


class TableValues(Values):
    """A value per element, in a mapping."""

    partial = True

    def same(self, present: Value, value: Value) -> bool:
        """Whether the elements that the place still has hold `value`: queues and CPUs may have left since."""
        if not isinstance(present, Mapping):
            return present == value
        return all(present.get(name, part) == part for name, part in self.elements(value).items())

    def same_element(self, present: Value, value: Value) -> bool:
        return present == value

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        return dict(value) if isinstance(value, Mapping) else {}

    def composed(self, elements: Mapping[str, Value], value: Value) -> Value:
        return dict(elements)


class SetValues(TableValues):
    """A set of elements: a value decides about every element, in the set or not."""

    partial = False

    def same(self, present: Value, value: Value) -> bool:
        return present == value

    def applied(self, present: Value, before: Value, after: Value) -> bool:
        """Only the elements that changed count: another write of the run may move the others, as smt/control does."""
        names = {**self.elements(before), **self.elements(after)}
        earlier, goal = self.elements(before, names), self.elements(after, names)
        changed = [name for name in names if earlier[name] != goal[name]]
        now = self.elements(present, changed)
        return all(now.get(name) == goal[name] for name in changed)  # one may have left


class NearmetalValues(Values):
    """Values of what only nearmetal makes, such as its files: without a journal entry it is a leftover, no original."""

    def original(self, before: Value) -> Value:
        return None


Key = Tuple[str, str]  # the name of a lever, and where it acts
Bound = TypeVar("Bound", bound="Lever")


class Beside(NamedTuple):
    """The other places of a host, where they aren't as the host shows them."""

    after: Mapping[Key, Value] = {}  # what the run sets there
    online: AbstractSet[int] = frozenset()  # the CPUs that are online then; empty: those that are now


ALONE = Beside()


class Lever(Values, ABC):
    """One way to set a knob; bound to a host and to where it acts (`at`) it is a place.

    What only some levers can do has a neutral answer here.
    """

    scope = "runtime"
    places: Pattern[str] = re.compile("")  # of a lever with one value for the host there is one, without a name
    disruptive = False  # a write disturbs traffic or a service
    batch = False  # places that follow each other in a plan are written in one go
    shared = False  # one write for all concerns of a run, before everything else
    declining = False  # only a write shows which values its driver takes: it raises Declined for the others
    disturbing = False  # a write moves other places, so it comes before theirs, on the way back too
    creates = False  # whether a higher value makes elements in the tables there, which a lower one takes away
    on_device = False  # its places are devices, which may be detached and attached
    waits_for = "needs_reboot"  # the status of a value that is on disk and not yet in force
    hides: Tuple[Key, ...] = ()  # places whose elements its value hides, and which come back with another value
    files: Tuple[str, ...] = ()  # its kernel files, as a file such as one of tmpfiles.d may name them

    host: WritableHost
    where = ""

    def __init__(self, what: str) -> None:
        self.what = what

    def at(self: Bound, host: WritableHost, where: str) -> Bound:
        """The place of the lever at `where` on this host."""
        place = copy(self)
        place.host, place.where = host, where
        return place

    def rehearse(self, values: Mapping[str, Value]) -> None:
        """Raise NearmetalError where a write of these values together, place → value, is known to fail."""

    def check(self, where: str, value: Value) -> None:
        """Raise NearmetalError unless the lever can set such a `value` at such a place."""
        if not self.has_place(where):
            raise NearmetalError(f"{self.what} has no place {shown(where)}")
        if not self.fits(where, value):
            raise impossible(self, value, where)

    def has_place(self, where: str) -> bool:
        """Whether there may be such a place."""
        return self.places.fullmatch(where) is not None

    @abstractmethod
    def fits(self, where: str, value: Value) -> bool:
        """Whether the value is of the kind that such a place takes. May raise NearmetalError with what is wrong."""

    @abstractmethod
    def read(self) -> Value:
        """The present value; None when absent."""

    @abstractmethod
    def write(self, value: Value) -> None:
        """Set the value. Raises NearmetalError when the host doesn't take it."""

    def write_all(self, values: Mapping[str, Value]) -> None:
        """Set the values at several places of this host (`where` → value)."""
        for where, value in values.items():
            self.at(self.host, where).write(value)

    @abstractmethod
    def obstacle(self) -> str:
        """Why the place can't be written, known before anything is changed; empty when it can."""

    def present_elements(self) -> Dict[str, Value]:
        """The elements that can be read now; of a set those in it and not."""
        present = self.read()
        return {} if present is None and self.scope == "runtime" else self.elements(present)

    def may_return(self, element: str) -> bool:
        """Whether an element that can't be read now may come back with the value that it went with."""
        return True

    def cpu_of(self, element: str) -> Optional[int]:
        """The CPU without which the element can't be read; None for an element that needs none."""
        return None

    def completed(self, value: Value) -> Value:
        """A value from before nearmetal's change, with the elements that came to the place since it was read."""
        present = self.read() if isinstance(value, Mapping) else None
        return {**present, **value} if isinstance(present, Mapping) and isinstance(value, Mapping) else value

    def choice(self) -> Value:
        """What the kernel or its driver would choose by itself; None when that can't be known without a reboot."""
        return None

    def fitting(self, original: Value, beside: Beside) -> Value:
        """What comes back of an original: that itself where the place takes it, or else what the kernel chooses.

        None, or of a table an element left out, where the place stays as it is.
        """
        return original

    def disturbs(self) -> Iterable[Key]:
        """The other places that a write may change."""
        return ()

    def moves(self, before: Value, after: Value) -> bool:
        """Whether a change between these values moves them; `after` is None where it isn't known."""
        return True

    def kernel_chosen(self) -> Iterable[Key]:
        """Those of them that have what the kernel chose with the present value."""
        return ()

    def hidden(self, value: Value) -> AbstractSet[str]:
        """What a value hides of other places."""
        return frozenset()

    def detached(self) -> bool:
        """Whether the place left the host with its device: nothing is to be taken back there."""
        return False

    def identity(self) -> str:
        """What distinguishes the device at the place from another one; empty where the kernel doesn't say."""
        return ""

    def exchanged(self, device: str) -> bool:
        """Whether the device at the place isn't the one with this identity; False where either isn't known."""
        return bool(device) and self.identity() not in ("", device)

    def attachment(self) -> str:
        """The kernel's number for the device, another one each time it is attached; empty where there is none."""
        return ""

    def device_name(self) -> str:
        """The kernel's name for the device at the place now; the place itself where there is none."""
        return self.where

    def pending(self, value: Value) -> str:
        """Why `value` on disk isn't in force yet, and what brings it into force; empty when it is in force."""
        return ""

    def temporary(self) -> Iterable[str]:
        """Files that a killed run may have left beside the place."""
        return ()

    def folder(self) -> str:
        """The folder that a run made for the place, and that goes with the last file in it; empty for none."""
        return ""

    def files_at(self, path: str) -> List[str]:
        """The kernel files that one of its `files` stands for on this host."""
        return [path]

    def meaning(self, word: str) -> Value:
        """The lever's value for what a file writes to its path; None for what the kernel doesn't take."""
        return word


class InOneGo(Lever):
    """Places that follow each other in a plan are written in one go."""

    batch = True

    def write(self, value: Value) -> None:
        self.write_all({self.where: value})


class KernelFile(Lever):
    """A value in one kernel file."""

    @abstractmethod
    def path(self) -> str:
        """The file. Raises NearmetalError when its device has left."""

    def word(self, value: Value) -> str:
        """What is written to the file for a value."""
        return str(value)

    def write(self, value: Value) -> None:
        put(self.host, self.path(), self.word(value))

    def obstacle(self) -> str:
        return unwritable(self.host, self.path())


class TableOfFiles(TableValues, Lever):
    """A table whose elements have a kernel file each."""

    @abstractmethod
    def paths(self) -> Dict[str, str]:
        """Element → its file, of those that take a value now, in the order of writes.

        Raises NearmetalError when the device has left.
        """

    def word(self, part: Value) -> str:
        """What is written to the file of an element."""
        return str(part)

    def changes(self, paths: Mapping[str, str], value: Value) -> Dict[str, Value]:
        """The elements of a value that differ now, of those with these files."""
        present = self.present_elements()
        parts = self.elements(value, present)
        return {name: parts[name] for name in paths if name in parts and present.get(name) != parts[name]}

    def write(self, value: Value) -> None:
        paths = self.paths()
        for name, part in self.changes(paths, value).items():
            try:
                self.host.write_value(paths[name], f"{self.word(part)}\n")
            except OSError as error:
                raise self.refusal(error, name, part, paths[name]) from None

    def refusal(self, error: OSError, name: str, part: Value, path: str) -> NearmetalError:
        """The error for an element whose value the kernel refused, and which may have left meanwhile."""
        return refused(error, f"{self.word(part)} in {path}")

    def obstacle(self) -> str:
        return next((unwritable(self.host, path) for path in self.paths().values()), "")


def impossible(lever: Lever, value: object, where: str = "") -> NearmetalError:
    """The error for a value that the lever can't set."""
    return NearmetalError(f"{lever.what} {where}".strip() + f" can't be {shown(value)}")


def put(host: WritableHost, path: str, text: str, attempt: str = "") -> None:
    """Write one value to a kernel file. Raises NearmetalError with the `attempt` that the kernel refused."""
    try:
        host.write_value(path, f"{text}\n")
    except OSError as error:
        raise refused(error, attempt or f"{text} in {path}") from None


def refused(error: OSError, attempt: str) -> NearmetalError:
    """The error for what the kernel refused, as one sentence."""
    name = errno.errorcode.get(error.errno or 0, "error")
    return NearmetalError(f"the kernel refused {attempt} ({name}: {os.strerror(error.errno or 0)})")


def unwritable(host: WritableHost, path: str) -> str:
    """Why a kernel file can't be written; empty when it can."""
    if host.writable(path):
        return ""
    return f"{path} can't be written (a container, or a read-only /sys): run on the host itself"
