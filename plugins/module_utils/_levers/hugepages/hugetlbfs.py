# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever for mounts of reserved huge pages. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Iterable

from ..._error import Damaged
from ..._facts import hugetlbfs
from ..._facts.native_files import MARK
from ..._host import store
from ..._plan import Value
from ..base import Lever
from ..files import masked, read_only
from ..values import NearmetalValues

_FOREIGN = "exists and nearmetal didn't write it"


class MountValues(NearmetalValues):
    """Options of a mount of nearmetal."""

    def remembered(self, value: Value) -> Value:
        # A mount that somebody unmounted is still nearmetal's.
        return value[: -len(hugetlbfs.ABSENT)] if isinstance(value, str) and value.endswith(hugetlbfs.ABSENT) else value


class Mount(Lever):
    """A mount at the path `where`, now and at each boot; the value is its mount options."""

    values = MountValues()
    scope = "boot"

    def has_place(self, where: str) -> bool:
        return re.fullmatch(hugetlbfs.PATH, where, re.ASCII) is not None

    def fits(self, where: str, value: Value) -> bool:
        return value is None or bool(isinstance(value, str) and re.fullmatch(hugetlbfs.OPTIONS, value, re.ASCII))

    def read(self) -> Value:
        """Its mount options. Raises Damaged when somebody has removed or replaced its unit, but not the link to it."""
        options = hugetlbfs.nearmetal_mounts(self.host).get(self.where)
        name = hugetlbfs.unit_of(self.where)
        unit, wants = f"{hugetlbfs.FOLDER}/{name}", f"{hugetlbfs.WANTS}/{name}"
        if options is not None or self.host.link(wants) is None:
            return options
        if self.host.exists(unit):
            raise Damaged(masked(self.host, unit) or f"{unit} {_FOREIGN}: move it away and run again")
        raise Damaged(f"{wants} is left of a unit that somebody removed: unmount {self.where}, remove it and run again")

    def write(self, value: Value) -> None:
        value = self.values.remembered(value)  # a restored mount is mounted, even if it wasn't: it was wanted
        name = hugetlbfs.unit_of(self.where)
        unit, wants = f"{hugetlbfs.FOLDER}/{name}", f"{hugetlbfs.WANTS}/{name}"
        made = hugetlbfs.MADE in (self.host.text(unit, 4096) or "") or not self.host.exists(self.where)
        if self.host.booted() and self.where in hugetlbfs.mounts(self.host):
            self.host.command(("systemctl", "stop", name))
        if value is None:
            store.remove_file(self.host, wants)
            if made:  # before the unit, which tells the next run so, should this one be killed
                store.remove_empty(self.host, self.where)
            store.remove_file(self.host, unit)
        else:
            text = hugetlbfs.unit_text(self.where, str(value), made)
            store.replace_file(self.host, unit, text.encode(), mode=0o644, folder_mode=0o755)
            store.link_unit(self.host, wants)
        if self.host.booted():
            self.host.command(("systemctl", "daemon-reload"))
            if value is not None:
                self.host.command(("systemctl", "start", name))

    def obstacle(self) -> str:
        unit = f"{hugetlbfs.FOLDER}/{hugetlbfs.unit_of(self.where)}"
        text = self.host.text(unit, 4096)
        if text is not None and not text.startswith(MARK):
            return masked(self.host, unit) or f"{unit} {_FOREIGN}: choose another path"
        if self.where not in hugetlbfs.mounts(self.host) and self.host.names(self.where):
            return f"{self.where} isn't empty, and a mount would hide what is in it: choose another path"
        return read_only(self.host, unit)

    def temporary(self) -> Iterable[str]:
        return (store.temporary_path(f"{hugetlbfs.FOLDER}/{hugetlbfs.unit_of(self.where)}"),)


LEVERS = (Mount("hugepages.mounts"),)
