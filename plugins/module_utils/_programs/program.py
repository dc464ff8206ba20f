# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program is: what its maintainers ask of its host, by version. Data only. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple


class Page(NamedTuple):
    """A page or a source file of the maintainers, by its name in sources.json, and when it was read."""

    reference: str
    read: str
    again: str  # a gate fails from the day after this one, until somebody has read it again


class Check(NamedTuple):
    """What a program looks at when it starts, by its source: a limit of its process, or a parameter of the kernel."""

    what: str  # as /proc/PID/limits names it, "Max open files", or a key of sysctl
    least: int  # UNLIMITED: no number is enough
    page: Page
    otherwise: str = "it warns at its start"


UNLIMITED = 1 << 62


class Wish(NamedTuple):
    """What the maintainers ask of one knob. Of a limit it is at least or at most this much, unless it is exact."""

    knob: str  # memory.swappiness
    value: Any
    reason: str
    page: Page
    also: Tuple[Any, ...] = ()  # other values that suit the program as well
    since: str = ""  # the first version for which it holds
    before: str = ""  # the first version for which it doesn't hold any more
    architecture: str = ""  # as the kernel names it: aarch64
    exact: bool = False  # of a limit: not more and not less
    checked: bool = False  # the program itself looks at it when it starts

    def holds(self, version: str) -> bool:
        """Whether it holds for a version that is known."""
        now = _numbers(version)
        return (not self.since or now >= _numbers(self.since)) and (not self.before or now < _numbers(self.before))

    def suits(self, value: Any) -> bool:
        """Whether the program is content with this exact value."""
        return str(value) in map(str, (self.value, *self.also))


class Program(NamedTuple):
    """A program, and the workload that is for programs of its kind."""

    title: str
    workload: str
    wishes: Tuple[Wish, ...] = ()
    processes: Tuple[str, ...] = ()  # by which a host shows that it runs
    packages: Tuple[str, ...] = ()  # of the distribution or its maintainers
    option: str = ""  # of Java, by which a process shows that it runs with it
    checks: Tuple[Check, ...] = ()
    left: str = ""  # what its maintainers ask for that nearmetal leaves to its operator

    def asks(self, version: str, architecture: Any) -> Tuple[List[Wish], List[Wish]]:
        """The wishes that hold for this version and architecture, and those of which an unknown version decides."""
        here = [wish for wish in self.wishes if wish.architecture in ("", architecture)]
        if version:
            return [wish for wish in here if wish.holds(version)], []
        return [one for one in here if not one.since + one.before], [one for one in here if one.since + one.before]


def _numbers(version: str) -> Tuple[int, ...]:
    parts = [int(part) for part in version.split(".")]
    return (*parts, *(0 for _part in range(4 - len(parts))))
