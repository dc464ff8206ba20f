# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever for configuration files of nearmetal. PRIVATE to the collection."""

from __future__ import annotations

import os
from typing import Iterable, Mapping, Optional, Tuple

from .._error import Damaged, NearmetalError
from .._facts.native_files import (
    COMPUTE_CPUS,
    COMPUTE_GENERATOR,
    GENERATOR,
    NETWORKD,
    PROGRAMS,
    SERVICE,
    TIMER,
    is_nearmetal_file,
    marked,
)
from .._host import store
from .._host.host import WritableHost
from .._plan import Value
from .base import InOneGo, NearmetalValues

# File → the command that makes its reader notice a change.
_READ_AGAIN = {
    SERVICE: ("systemctl", "daemon-reload"),
    TIMER: ("systemctl", "daemon-reload"),
    GENERATOR: ("systemctl", "daemon-reload"),
    COMPUTE_GENERATOR: ("systemctl", "daemon-reload"),
}
# Files whose folders seldom exist without nearmetal, so an empty one is removed.
_OWN_FOLDER = (GENERATOR, COMPUTE_GENERATOR, COMPUTE_CPUS, NETWORKD)
_RULES_AGAIN = ("udevadm", "control", "--reload")


def read_only(host: WritableHost, path: str) -> str:
    """Why no file can be made at `path`; empty when one can."""
    folder = os.path.dirname(path)
    while not host.exists(folder):
        folder = os.path.dirname(folder)
    return "" if host.writable(folder) else f"{folder} is read-only: use persist: false"


def masked(host: WritableHost, path: str) -> str:
    """That a link in the place of a unit masks it, and what to do; empty when none does."""
    if host.link(path) != "/dev/null":
        return ""
    return f"{path} is masked: run `systemctl unmask {os.path.basename(path)}`, and run again"


class NativeFile(NearmetalValues, InOneGo):
    """A configuration file of nearmetal in a directory of the distribution; `where` is its path.

    A reader of several files that are written in one go is notified once.
    """

    scope = "boot"

    def remembered(self, value: Value) -> Value:
        if value is None:
            return None
        import hashlib  # imported late: a plan without files doesn't need it

        return hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()

    def has_place(self, where: str) -> bool:
        return is_nearmetal_file(where)

    def fits(self, where: str, value: Value) -> bool:
        return value is None or isinstance(value, str)

    def read(self) -> Value:
        """The file's text; None when there is none. Raises Damaged, so that the other concerns go on."""
        try:
            data = store.read_file(self.host, self.where)
        except NearmetalError as error:
            raise Damaged(masked(self.host, self.where) or str(error)) from None
        return data.decode("utf-8", "replace") if data is not None else None

    def write_all(self, values: Mapping[str, Value]) -> None:
        for where, value in values.items():
            if value is None:
                store.remove_file(self.host, where)
            else:
                mode = 0o755 if where in PROGRAMS else 0o644
                store.replace_file(self.host, where, str(value).encode(), mode=mode, folder_mode=0o755)
        for command in dict.fromkeys(filter(None, map(read_again, values))) if self.host.booted() else ():
            self.host.command(command)

    def obstacle(self) -> str:
        present = self.read()
        if isinstance(present, str) and not marked(present):
            return f"{self.where} exists and nearmetal didn't write it: move it away and run again"
        return read_only(self.host, self.where)

    def temporary(self) -> Iterable[str]:
        return (store.temporary_path(self.where),)

    def folder(self) -> str:
        return os.path.dirname(self.where) if self.where in _OWN_FOLDER else ""


def read_again(where: str) -> Optional[Tuple[str, ...]]:
    """The command that makes the reader of a file notice a change; None where it needs none."""
    return _RULES_AGAIN if where.endswith(".rules") else _READ_AGAIN.get(where)


LEVERS = (NativeFile("files"),)
