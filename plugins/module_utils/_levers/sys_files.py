# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of kernel parameters, and of files of /sys that hold one word. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Iterable, List, Tuple

from .._facts import clock, hugepages, memory, sys_files, sysctl
from .._facts.sys_files import SysFile
from .._parameters import RESERVED_PORTS
from .._plan import Value
from .base import Beside, KernelFile, Key, Lever, put, unwritable

_PORTS = re.compile(r"[0-9,-]{0,4000}", re.ASCII)
_VALUE = re.compile(r"[A-Za-z0-9_-]{1,32}(?: [0-9]{1,20}){0,2}", re.ASCII)

# 0% is no value of the option, and yet a host may have it and get it back.
_LIMIT = re.compile(r"(?:0|[1-9][0-9]?|100)%|[1-9][0-9]{0,18}", re.ASCII)


class Sysctl(KernelFile):
    """A kernel parameter that a concern or a profile sets; `where` is its key. One space separates a value's words."""

    def has_place(self, where: str) -> bool:
        return where in (*sysctl.KEYS, sysctl.KERNEL_NAMES)

    def fits(self, where: str, value: Value) -> bool:
        pattern = _PORTS if where == RESERVED_PORTS else _VALUE
        return isinstance(value, str) and pattern.fullmatch(value) is not None

    def path(self) -> str:
        return sysctl.path(self.where)

    def read(self) -> Value:
        text = self.host.text(self.path(), 4096)
        return " ".join(text.split()) if text is not None else None

    def write(self, value: Value) -> None:
        put(self.host, self.path(), str(value), f"{value} for {self.where}")


class DirtyLimit(Lever):
    """A limit of dirty file cache: a share such as 20%, or bytes. `where` is dirty or dirty_background.

    Each has a file of its own, and the kernel makes the other 0, which nobody can write there.
    """

    def has_place(self, where: str) -> bool:
        return where in sysctl.DIRTY

    def fits(self, where: str, value: Value) -> bool:
        return isinstance(value, str) and _LIMIT.fullmatch(value) is not None

    def read(self) -> Value:
        return memory.dirty(self.host, self.where)

    def write(self, value: Value) -> None:
        for key, number in writes(self.where, value):
            put(self.host, sysctl.path(key), number, f"{number} for {key}")

    def obstacle(self) -> str:
        return unwritable(self.host, sysctl.path(f"vm.{self.where}_ratio"))


def writes(where: str, value: Value) -> List[Tuple[str, str]]:
    """The kernel parameters that set a limit, each with its value."""
    key, number = memory.dirty_parameter(where, str(value))
    # While bytes are used the share reads 0, and to the kernel another 0 is no change, so the bytes would stay.
    return [(key, "1"), (key, number)] if number == "0" else [(key, number)]


_SYSCTL, _MIN_FREE = Sysctl("sysctl"), "vm.min_free_kbytes"


class OneWord(KernelFile):
    """A word in a file of /sys."""

    def __init__(self, file: SysFile, chosen: Value = None) -> None:
        """`chosen` is what every kernel chooses by itself, if it is always the same."""
        super().__init__(file.lever)
        self.file, self.files, self.chosen = file, file.paths, chosen

    def choice(self) -> Value:
        return self.chosen

    def here(self) -> SysFile:
        """The file of the place."""
        return self.file

    def path(self) -> str:
        return self.here().path(self.host)

    def fits(self, where: str, value: Value) -> bool:
        return isinstance(value, str) and re.fullmatch(self.file.form, value, re.ASCII) is not None

    def read(self) -> Value:
        return self.here().read(self.host)

    def word(self, value: Value) -> str:
        return self.here().at_boot[self.path()].get(str(value), str(value))

    def meaning(self, word: str) -> Value:
        return self.here().meaning(self.host, word)


class ClockSource(OneWord):
    """The counter from which the kernel takes the time."""

    def choice(self) -> Value:
        return clock.observe(self.host).kernel_choice

    def fitting(self, original: Value, beside: Beside) -> Value:
        facts = clock.observe(self.host)
        return original if original in (facts.available or (original,)) else facts.kernel_choice


class Transparent(OneWord):
    """A choice of transparent huge pages."""

    def choice(self) -> Value:
        return hugepages.kernel_choice(self.host)[self.file.name]


class StartsKhugepaged(Transparent):
    """A choice with which the kernel starts or stops khugepaged, and moves vm.min_free_kbytes.

    It raises the number to what huge pages need, and since Linux 5.16 it lowers it when khugepaged ends. A number
    that it lowers is set again, because packets may need the memory, and network_stack may have set it.
    """

    disturbing = True

    def min_free(self) -> Sysctl:
        """The place of that number."""
        return _SYSCTL.at(self.host, _MIN_FREE)

    def disturbs(self) -> Iterable[Key]:
        return ((_SYSCTL.what, _MIN_FREE),)

    def moves(self, before: Value, after: Value) -> bool:
        return (before == "never") is not (after == "never")

    def write(self, value: Value) -> None:
        before = self.min_free().read()
        super().write(value)
        if before is not None and int(str(self.min_free().read() or before)) < int(str(before)):
            self.min_free().write(before)


class OfSize(OneWord):
    """Who gets transparent huge pages of the size `where`."""

    def has_place(self, where: str) -> bool:
        return re.fullmatch(hugepages.SIZE, where, re.ASCII) is not None

    def here(self) -> SysFile:
        return sys_files.thp_of_size(self.where)


LEVERS = (
    _SYSCTL,
    DirtyLimit("memory.dirty"),
    ClockSource(sys_files.CLOCKSOURCE),
    StartsKhugepaged(sys_files.THP),
    Transparent(sys_files.THP_DEFRAG),
    StartsKhugepaged(sys_files.THP_SHMEM),
    Transparent(sys_files.KHUGEPAGED_DEFRAG),
    OfSize(sys_files.thp_of_size("*"), "never"),
    OneWord(sys_files.MAX_PTES_NONE),
    OneWord(sys_files.KSM),
    OneWord(sys_files.TURBO, "enabled"),
    OneWord(sys_files.PROFILE),
)
