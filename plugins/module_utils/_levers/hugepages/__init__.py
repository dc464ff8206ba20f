# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever of reserved huge pages. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Tuple

from ..._error import NearmetalError
from ..._facts import hugepages
from ..._host.host import WritableHost
from ..._plan import Value
from ..._words import shown
from ..base import Lever, put, unwritable
from ..values import TableValues

COMPACT = "/proc/sys/vm/compact_memory"


class ReservedValues(TableValues):
    """Counts of pages, of which a signal may have left any in between."""

    def partial_write(self, present: Value, original: Value, value: Value) -> bool:
        # A signal may end the kernel's work after any page.
        if not (isinstance(present, int) and isinstance(original, int) and isinstance(value, int)):
            return False
        return min(original, value) < present < max(original, value)


class Reserved(Lever):
    """Reserved pages of the size `where`: a table of node → count."""

    values = ReservedValues()
    batch = True

    def has_place(self, where: str) -> bool:
        return re.fullmatch(hugepages.SIZE, where, re.ASCII) is not None

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

    def may_return(self, element: str) -> bool:
        return self.host.exists(hugepages.file_of(self.where, element))

    def write(self, value: Value) -> None:
        self.write_all({self.where: value})

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

    def obstacle(self) -> str:
        path = hugepages.file_of(self.where, next(iter(hugepages.reserved(self.host, self.where)), "host"))
        return unwritable(self.host, path)


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


LEVERS = (Reserved("hugepages.pages"),)
