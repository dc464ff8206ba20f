# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of memory. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import List, Tuple

from .._facts import memory
from .._facts.sysctl import DIRTY, path
from .._plan import Value
from .base import KernelValue, Lever, put, unwritable

# 0% is no value of the option, and yet a host may have it and get it back.
_LIMIT = re.compile(r"(?:0|[1-9][0-9]?|100)%|[1-9][0-9]{0,18}", re.ASCII)


class DirtyLimit(Lever):
    """A limit of dirty file cache: a share such as 20%, or bytes. `where` is dirty or dirty_background.

    Each has a file of its own, and the kernel makes the other 0, which nobody can write there.
    """

    def has_place(self, where: str) -> bool:
        return where in DIRTY

    def fits(self, where: str, value: Value) -> bool:
        return isinstance(value, str) and _LIMIT.fullmatch(value) is not None

    def read(self) -> Value:
        return memory.dirty(self.host, self.where)

    def write(self, value: Value) -> None:
        for key, number in writes(self.where, value):
            put(self.host, path(key), number, f"{number} for {key}")

    def obstacle(self) -> str:
        return unwritable(self.host, path(f"vm.{self.where}_ratio"))


def writes(where: str, value: Value) -> List[Tuple[str, str]]:
    """The kernel parameters that set a limit, each with its value."""
    key, number = memory.dirty_parameter(where, str(value))
    # While bytes are used the share reads 0, and to the kernel another 0 is no change, so the bytes would stay.
    return [(key, "1"), (key, number)] if number == "0" else [(key, number)]


LEVERS = (DirtyLimit("memory.dirty"), KernelValue("memory.ksm", memory.KSM, "[012]"))
