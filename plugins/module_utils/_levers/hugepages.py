# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of reserved huge pages and of their mounts. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Mapping, Tuple

from .._error import Damaged, NearmetalError
from .._facts import hugepages, hugetlbfs
from .._facts.native_files import MARK
from .._host import store
from .._host.host import WritableHost
from .._plan import Value
from .._words import shown
from .base import InOneGo, Lever, NearmetalValues, TableOfFiles, put
from .files import masked, read_only

COMPACT = "/proc/sys/vm/compact_memory"
_FOREIGN = "exists and nearmetal didn't write it"


class Reserved(InOneGo, TableOfFiles):
    """Reserved pages of the size `where`: a table of node → count."""

    places = re.compile(hugepages.SIZE, re.ASCII)

    def partial_write(self, present: Value, original: Value, value: Value) -> bool:
        # A signal may end the kernel's work after any page.
        if not (isinstance(present, int) and isinstance(original, int) and isinstance(value, int)):
            return False
        return min(original, value) < present < max(original, value)

    def fits(self, where: str, value: Value) -> bool:
        if not isinstance(value, Mapping) or not 0 < len(value) <= 1024:
            return False
        for place, count in value.items():
            whole = isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**40
            if not re.fullmatch(hugepages.PLACE, place, re.ASCII) or not whole:
                raise NearmetalError(f"{self.what} {where} can't be {shown(count)} at {shown(place)}")
        return True

    def read(self) -> Value:
        return hugepages.reserved(self.host, self.where) or None

    def paths(self) -> Dict[str, str]:
        places = hugepages.reserved(self.host, self.where)
        return {place: hugepages.file_of(self.where, place) for place in places}

    def may_return(self, element: str) -> bool:
        return self.host.exists(hugepages.file_of(self.where, element))

    def write_all(self, values: Mapping[str, Value]) -> None:
        """Free pages first, then reserve: one size or node may need the memory that another gives back."""
        steps: List[Tuple[int, str, str, int]] = []
        for size, value in values.items():
            present = hugepages.reserved(self.host, size)
            wanted: Dict[str, int] = dict(value) if isinstance(value, Mapping) else {}
            for place, count in wanted.items():
                steps.append(((count - present.get(place, 0)) * int(size[:-2]), size, place, count))
        for more, size, place, count in sorted(steps):
            if more:
                _reserve(self.host, size, place, count)


def _reserve(host: WritableHost, size: str, place: str, count: int) -> None:
    """Reserve pages; when fragmented memory has too few, compact it and try once more."""
    path = hugepages.file_of(size, place)
    put(host, path, str(count))
    if hugepages.reserved(host, size).get(place, 0) < count and host.exists(COMPACT):
        put(host, COMPACT, "1")
        put(host, path, str(count))
    got = hugepages.reserved(host, size).get(place, 0)
    if got < count:
        raise NearmetalError(
            f"asked for {count} huge pages of {size} on {place}, the kernel gave {got} even after compaction:"
            " free memory there, or reserve them at boot with method: boot"
        )


class Mount(NearmetalValues, Lever):
    """A mount at the path `where`, now and at each boot; the value is its mount options."""

    scope = "boot"
    places = re.compile(hugetlbfs.PATH, re.ASCII)

    def remembered(self, value: Value) -> Value:
        # A mount that somebody unmounted is still nearmetal's.
        return value[: -len(hugetlbfs.ABSENT)] if isinstance(value, str) and value.endswith(hugetlbfs.ABSENT) else value

    def fits(self, where: str, value: Value) -> bool:
        return value is None or bool(isinstance(value, str) and re.fullmatch(hugetlbfs.OPTIONS, value, re.ASCII))

    def read(self) -> Value:
        """Its mount options. Raises Damaged when somebody has removed or replaced its unit, but not the link to it."""
        options = hugetlbfs.nearmetal_mounts(self.host).get(self.where)
        unit, wants = self._paths()
        if options is not None or self.host.link(wants) is None:
            return options
        if self.host.exists(unit):
            raise Damaged(masked(self.host, unit) or f"{unit} {_FOREIGN}: move it away and run again")
        raise Damaged(f"{wants} is left of a unit that somebody removed: unmount {self.where}, remove it and run again")

    def write(self, value: Value) -> None:
        value = self.remembered(value)  # a restored mount is mounted, even if it wasn't: it was wanted
        name = hugetlbfs.unit_of(self.where)
        unit, wants = self._paths()
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
        unit = self._paths()[0]
        text = self.host.text(unit, 4096)
        if text is not None and not text.startswith(MARK):
            return masked(self.host, unit) or f"{unit} {_FOREIGN}: choose another path"
        if self.where not in hugetlbfs.mounts(self.host) and self.host.names(self.where):
            return f"{self.where} isn't empty, and a mount would hide what is in it: choose another path"
        return read_only(self.host, unit)

    def temporary(self) -> Iterable[str]:
        return (store.temporary_path(self._paths()[0]),)

    def _paths(self) -> Tuple[str, str]:
        """The unit's file, and the link by which systemd starts it at boot."""
        name = hugetlbfs.unit_of(self.where)
        return f"{hugetlbfs.FOLDER}/{name}", f"{hugetlbfs.WANTS}/{name}"


LEVERS = (Reserved("hugepages.pages"), Mount("hugepages.mounts"))
