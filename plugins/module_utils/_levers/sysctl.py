# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of kernel parameters. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import List, Tuple

from .._facts import memory, sysctl
from .._parameters import RESERVED_PORTS
from .._plan import Value
from .base import KernelFile, Lever, put, unwritable

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


LEVERS = (Sysctl("sysctl"), DirtyLimit("memory.dirty"))
