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
from abc import ABC, abstractmethod
from typing import Dict, Iterable, List, Mapping, Optional, Sequence

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
        return all(now[name] == goal[name] for name in changed)


class NearmetalValues(Values):
    """Values of what only nearmetal makes, such as its files: without a journal entry it is a leftover, no original."""

    def original(self, before: Value) -> Value:
        return None


class Lever(ABC):
    """One way to set a knob. What only some levers can do is in capabilities.py."""

    values = Values()  # how its values are compared
    scope = "runtime"
    disruptive = False  # a write disturbs traffic or a service

    def __init__(self, what: str) -> None:
        self.what = what

    @abstractmethod
    def check(self, where: str, value: Value) -> None:
        """Raise NearmetalError unless the lever can set such a `value` at such a place."""

    @abstractmethod
    def read(self, host: WritableHost, where: str) -> Value:
        """The present value; None when absent."""

    @abstractmethod
    def write(self, host: WritableHost, where: str, value: Value) -> None:
        """Set the value. Raises NearmetalError when the host doesn't take it."""

    @abstractmethod
    def obstacle(self, host: WritableHost, where: str) -> str:
        """Why the place can't be written, known before anything is changed; empty when it can."""

    @abstractmethod
    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        """Shell commands that set the value, for people to read; empty where only nearmetal can set it."""


def no_place(lever: Lever, where: str) -> NearmetalError:
    """The error for a place that the lever doesn't have."""
    return NearmetalError(f"{lever.what} has no place {shown(where)}")


def demand_no_place(lever: Lever, where: str) -> None:
    """Raise NearmetalError unless `where` is empty, as for a lever with one value for the host."""
    if where:
        raise no_place(lever, where)


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


def quoted(text: object) -> str:
    """A text as one word of the shell."""
    import shlex  # imported late: only a run that shows commands needs it

    return shlex.quote(str(text))


def echo(path: str, text: object) -> str:
    """The command that writes a value to a kernel file."""
    return f"echo {quoted(text)} > {quoted(path)}"


def echo_each(text: object, variable: str, words: Sequence[object], path: str) -> str:
    """The command that writes one value to several kernel files; `path` names the variable of the loop."""
    if len(words) == 1:
        return echo(path.replace(f"${variable}", str(words[0])), text)
    return f"for {variable} in {_listed(words)}; do echo {quoted(text)} > {path}; done"


def _listed(words: Sequence[object]) -> str:
    """The words of a loop; many numbers in a row by their first and last."""
    if len(words) > 4 and isinstance(words[0], int) and list(words) == list(range(words[0], words[0] + len(words))):
        return f"$(seq {words[0]} {words[-1]})"
    return " ".join(map(str, words))


def file_commands(path: str, text: Optional[str], mode: str = "") -> List[str]:
    """The commands that write a file with this text, or remove it."""
    if text is None:
        return [f"rm -f {quoted(path)}"]
    mark = "EOF"
    while mark in text.splitlines():
        mark += "_"
    end = "" if text.endswith("\n") else "\n"
    made = [
        f"mkdir -p {quoted(os.path.dirname(path))}",
        f"cat > {quoted(path)} <<'{mark}'\n{text}{end}{mark}",
    ]
    return [*made, f"chmod {mode} {quoted(path)}"] if mode else made


def unwritable(host: WritableHost, path: str) -> str:
    """Why a kernel file can't be written; empty when it can."""
    if host.writable(path):
        return ""
    return f"{path} can't be written (a container, or a read-only /sys): run on the host itself"
