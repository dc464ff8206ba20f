# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of files of /sys that hold one word. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Iterable

from .._facts import clock, hugepages, sys_files
from .._facts.sys_files import SysFile
from .._plan import Value
from .base import Beside, KernelFile, Key
from .sysctl import Sysctl

_SYSCTL, _MIN_FREE = Sysctl("sysctl"), "vm.min_free_kbytes"


class OneWord(KernelFile):
    """A word in a file of /sys."""

    def __init__(self, file: SysFile) -> None:
        super().__init__(file.lever)
        self.file, self.files = file, file.paths

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

    def choice(self) -> Value:
        return "never"


class Turbo(OneWord):
    """Turbo, which every driver begins with."""

    def choice(self) -> Value:
        return "enabled"


LEVERS = (
    ClockSource(sys_files.CLOCKSOURCE),
    StartsKhugepaged(sys_files.THP),
    Transparent(sys_files.THP_DEFRAG),
    StartsKhugepaged(sys_files.THP_SHMEM),
    Transparent(sys_files.KHUGEPAGED_DEFRAG),
    OfSize(sys_files.thp_of_size("*")),
    OneWord(sys_files.MAX_PTES_NONE),
    OneWord(sys_files.KSM),
    Turbo(sys_files.TURBO),
    OneWord(sys_files.PROFILE),
)
