# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever of kernel parameters. PRIVATE to the collection."""

from __future__ import annotations

import re

from .._facts import sysctl
from .._parameters import RESERVED_PORTS
from .._plan import Value
from .base import KernelFile, put

_PORTS = re.compile(r"[0-9,-]{0,4000}", re.ASCII)
_VALUE = re.compile(r"[A-Za-z0-9_-]{1,32}(?: [0-9]{1,20}){0,2}", re.ASCII)


class Sysctl(KernelFile):
    """A kernel parameter that a concern manages; `where` is its key. One space separates the words of a value."""

    def has_place(self, where: str) -> bool:
        return where in sysctl.KEYS

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


LEVERS = (Sysctl("sysctl"),)
