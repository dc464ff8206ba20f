# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lever is: how one `what` of an action is read, checked and written. PRIVATE to the collection.

An action or a journal entry names a lever and a place, never a path; so a
tampered journal can ask for nothing that is not in the list of levers.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from typing import Dict, Iterable, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value


class Lever(ABC):
    """One way to move a knob. Subclasses say how."""

    scope = "runtime"
    waits_for = "needs_reboot"  # the status of what is on disk and not yet in force
    shared = False  # one write for all concerns of a run, before everything else
    partial = False  # a value may speak of some elements of its place, and then leaves the others as they are
    grouped = False  # places that follow each other in a plan are written in one go
    first = False  # its write may set others anew: on the way back too it comes before them

    def __init__(self, what: str) -> None:
        self.what = what

    @abstractmethod
    def check(self, where: str, value: Value) -> None:
        """Raise NearmetalError unless `where` and `value` are of the kind this lever moves."""

    @abstractmethod
    def read(self, host: WritableHost, where: str) -> Value:
        """The present value; None when absent."""

    @abstractmethod
    def write(self, host: WritableHost, where: str, value: Value) -> None:
        """Set the value; NearmetalError when the host doesn't take it."""

    def write_all(self, host: WritableHost, values: Mapping[str, Value]) -> None:
        """Set the values at several places (`where` → value); a shared lever does it in one go."""
        for where, value in values.items():
            self.write(host, where, value)

    def same(self, now: Value, value: Value) -> bool:
        """Whether the place, which reads `now`, holds `value`."""
        return now == value

    @abstractmethod
    def obstacle(self, host: WritableHost, where: str) -> str:
        """Why it can't be written here, known before anything is changed; empty when nothing stands in the way."""

    def gone(self, host: WritableHost, where: str) -> bool:
        """Whether the place itself left the host, as a disk does that was detached: nothing is to be taken back."""
        return False

    def temporary(self, host: WritableHost, where: str) -> Iterable[str]:
        """Files that a run which was killed may have left beside the place."""
        return ()

    def also(self, host: WritableHost, where: str) -> Iterable[Tuple[str, str]]:
        """Levers and places that hold a value because of what is here, although no run of ours wrote it there."""
        return ()

    def disturbs(self, host: WritableHost, where: str) -> Iterable[Tuple[str, str]]:
        """Levers and places that the kernel or a driver may set anew when this place is written."""
        return ()

    def at_boot(self, host: WritableHost, where: str) -> Iterable[Tuple[str, str]]:
        """Levers and places that still hold what was set at boot because of what is here."""
        return ()

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        """What the kernel would choose by itself; None when that takes a reboot to learn."""
        return None

    def pending(self, host: WritableHost, where: str, value: Value) -> str:
        """What the next boot brings when the value is `value` on disk; empty when it holds already."""
        return ""

    def original(self, before: Value) -> Value:
        """What restore brings back, given the value before our first change."""
        return before

    def whole(self, host: WritableHost, where: str, value: Value) -> Value:
        """A value from before our change, with what came to the place since it was read."""
        return value

    def remembered(self, value: Value) -> Value:
        """What the journal keeps of a value of ours, enough to recognise it again."""
        return value

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        """The value element by element; a set says of the elements `names` too that they aren't in it."""
        return {"": value}

    def seen(self, host: WritableHost, where: str) -> Dict[str, Value]:
        """The elements that can be read now."""
        now = self.read(host, where)
        return {} if now is None and self.scope == "runtime" else self.elements(now)

    def composed(self, elements: Mapping[str, Value], others: Value) -> Value:
        """The value that has these elements; a set has its other elements from the value `others`."""
        return elements.get("", others)

    def alike(self, now: Value, value: Value) -> bool:
        """Whether an element that reads `now` holds `value`."""
        return self.same(now, value)

    def partly(self, now: Value, original: Value, value: Value) -> bool:
        """Whether an interrupted write of `value` may have left `now`."""
        return False

    def away(self, host: WritableHost, where: str, element: str) -> bool:
        """Whether an element that can't be read now may come back with the value that it went with."""
        return True


class Table(Lever):
    """A value per element: a mapping, unless the lever says how."""

    partial = True

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        return dict(value) if isinstance(value, Mapping) else {}

    def composed(self, elements: Mapping[str, Value], others: Value) -> Value:
        return dict(elements)

    def alike(self, now: Value, value: Value) -> bool:
        return now == value

    def whole(self, host: WritableHost, where: str, value: Value) -> Value:
        now = self.read(host, where)
        return {**now, **value} if isinstance(now, Mapping) and isinstance(value, Mapping) else value


class KernelValue(Lever):
    """A one-word kernel file."""

    def __init__(self, what: str, path: str, pattern: str) -> None:
        super().__init__(what)
        self.path = path
        self.pattern = re.compile(pattern)

    def check(self, where: str, value: Value) -> None:
        if where:
            raise NearmetalError(f"{self.what} has no place {where!r}")
        if not isinstance(value, str) or not self.pattern.fullmatch(value):
            raise NearmetalError(f"{self.what} can't be {value!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        text = host.text(self.path)
        return text.strip() if text is not None else None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        try:
            host.write_value(self.path, f"{value}\n")
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "error")
            raise NearmetalError(
                f"the kernel refused {value} in {self.path} ({name}: {os.strerror(error.errno or 0)})"
            ) from None

    def obstacle(self, host: WritableHost, where: str) -> str:
        if host.writable(self.path):
            return ""
        return f"{self.path} can't be written here (a container, or a read-only /sys): run on the host itself"
