# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever for configuration files of nearmetal. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
from typing import Iterable, Iterator, List, Mapping, Optional, Tuple

from .._error import Damaged, NearmetalError
from .._facts import memory, sysctl
from .._facts.hugepages import choice
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
from .base import NearmetalValues, file_commands, impossible, no_place
from .capabilities import Batch, NamedByPath, Place, SetsOthers
from .registry import LEVERS as ALL_LEVERS

# File → the command that makes its reader notice a change.
_READ_AGAIN = {
    SERVICE: ("systemctl", "daemon-reload"),
    TIMER: ("systemctl", "daemon-reload"),
    GENERATOR: ("systemctl", "daemon-reload"),
    COMPUTE_GENERATOR: ("systemctl", "daemon-reload"),
}
# Files whose folders seldom exist without nearmetal, so an empty one is removed.
_OWN_FOLDER = (GENERATOR, COMPUTE_GENERATOR, COMPUTE_CPUS, NETWORKD)
# Lines of _planning/native.py.
_PARAMETER = r"^([a-z0-9_.-]{1,100}) = ([ -~]{1,100})$"
_WRITE = r"^w! (/sys/[A-Za-z0-9_./*-]{1,200}) - - - - ([ -~]{1,100})$"
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


class FileValues(NearmetalValues):
    """Texts of files of nearmetal."""

    def remembered(self, value: Value) -> Value:
        if value is None:
            return None
        import hashlib  # imported late: a plan without files doesn't need it

        return hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()


class NativeFile(SetsOthers, Batch):
    """A configuration file of nearmetal in a directory of the distribution; `where` is its path.

    A reader of several files that are written in one go is notified once.
    """

    values = FileValues()

    def check(self, where: str, value: Value) -> None:
        if not is_nearmetal_file(where):
            raise no_place(self, where)
        if value is not None and not isinstance(value, str):
            raise impossible(self, value, where)

    def read(self, host: WritableHost, where: str) -> Value:
        """The file's text; None when there is none. Raises Damaged, so that the other concerns go on."""
        try:
            data = store.read_file(host, where)
        except NearmetalError as error:
            raise Damaged(masked(host, where) or str(error)) from None
        return data.decode("utf-8", "replace") if data is not None else None

    def write_all(self, host: WritableHost, values: Mapping[str, Value]) -> None:
        for where, value in values.items():
            if value is None:
                store.remove_file(host, where)
            else:
                mode = 0o755 if where in PROGRAMS else 0o644
                store.replace_file(host, where, str(value).encode(), mode=mode, folder_mode=0o755)
        for command in dict.fromkeys(filter(None, map(_read_again, values))) if host.booted() else ():
            host.command(command)

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        text = None if value is None else str(value)
        again = _read_again(where)
        made = file_commands(where, text, "755" if text is not None and where in PROGRAMS else "")
        return [*made, " ".join(again)] if again else made

    def obstacle(self, host: WritableHost, where: str) -> str:
        present = self.read(host, where)
        if isinstance(present, str) and not marked(present):
            return f"{where} exists and nearmetal didn't write it: move it away and run again"
        return read_only(host, where)

    def temporary(self, host: WritableHost, where: str) -> Iterable[str]:
        return (store.temporary_path(where),)

    def folder(self, where: str) -> str:
        return os.path.dirname(where) if where in _OWN_FOLDER else ""

    def sets(self, host: WritableHost, where: str) -> Iterable[Place]:
        present = self._read_nearmetal_file(host, where) if where.endswith(".rules") else None
        return () if present is None else self.would_set(host, where, str(present))

    def would_set(self, host: WritableHost, where: str, text: str) -> Iterable[Place]:
        if where.endswith(".conf"):
            return _set_by_lines(host, text)
        if not where.endswith(".rules"):
            return ()
        from .block import set_by_rules

        return set_by_rules(host, text)

    def set_at_boot(self, host: WritableHost, where: str) -> Iterable[Place]:
        if where.endswith(".rules"):
            return self.sets(host, where)
        present = self._read_nearmetal_file(host, where) if where.endswith(".conf") else None
        return () if present is None else self.would_set(host, where, str(present))

    def _read_nearmetal_file(self, host: WritableHost, where: str) -> Value:
        """The file's text; None when it can't be read, which its own concern reports."""
        try:
            return self.read(host, where)
        except Damaged:
            return None


def _read_again(where: str) -> Optional[Tuple[str, ...]]:
    """The command that makes the reader of a file notice a change; None where it needs none."""
    return _RULES_AGAIN if where.endswith(".rules") else _READ_AGAIN.get(where)


def _set_by_lines(host: WritableHost, text: str) -> Iterator[Place]:
    """The places that hold what a file of sysctl.d or tmpfiles.d with this text sets."""
    for key, value in re.findall(_PARAMETER, text, re.ASCII | re.MULTILINE):
        if key in sysctl.KEYS and (host.text(sysctl.path(key), 4096) or "").split() == value.split():
            yield "sysctl", key
        limit = key[len("vm.") :].rpartition("_")[0]
        if limit in sysctl.DIRTY and (memory.dirty(host, limit) or "").rstrip("%") == value:
            yield "memory.dirty", limit
    for path, word in re.findall(_WRITE, text, re.ASCII | re.MULTILINE):
        for lever in ALL_LEVERS.values():
            if isinstance(lever, NamedByPath) and path in lever.paths:
                lines = [line for line in map(host.line, lever.files(host, path)) if line is not None]
                if lines and all((choice(line)[0] or line) == word for line in lines):
                    yield lever.what, ""
                break


LEVERS = (NativeFile("files"),)
