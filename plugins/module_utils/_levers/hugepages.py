# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of huge pages. PRIVATE to the collection."""

from __future__ import annotations

import errno
import os
import re
from typing import Dict, List, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import hugepages
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import Lever, Table
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value

COMPACT = "/proc/sys/vm/compact_memory"
_WORD = re.compile(r"[a-z_+]{1,32}", re.ASCII)


class Transparent(Lever):
    """A choice of transparent huge pages, in the file `name` of their folder."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(what)
        self.name = name

    def check(self, where: str, value: Value) -> None:
        if where:
            raise NearmetalError(f"{self.what} has no place {where!r}")
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            raise NearmetalError(f"{self.what} can't be {value!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        return hugepages.choice(host.line(self._path(host)))[0]

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        _put(host, self._path(host), str(value))

    def obstacle(self, host: WritableHost, where: str) -> str:
        path = self._path(host)
        return "" if host.writable(path) else f"{path} can't be written here: run on the host itself"

    def _path(self, host: WritableHost) -> str:
        return f"{hugepages.thp_folder(host) or hugepages.FOLDERS[0]}/{self.name}"


class KhugepagedDefrag(Transparent):
    """Whether khugepaged makes room: enabled or disabled here, 1 or 0 in the file, yes or no on RHEL 6."""

    def read(self, host: WritableHost, where: str) -> Value:
        return hugepages.khugepaged_defrag(host)

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        old = self._path(host).startswith(hugepages.FOLDERS[1])
        words = ("yes", "no") if old else ("1", "0")
        _put(host, self._path(host), words[value != "enabled"])


class Reserved(Table):
    """Reserved pages of the size `where`: a table of node → count."""

    grouped = True

    def check(self, where: str, value: Value) -> None:
        if not hugepages.SIZE.fullmatch(where):
            raise NearmetalError(f"{where!r} is no size of huge pages")
        if not isinstance(value, Mapping) or not 0 < len(value) <= 1024:
            raise NearmetalError(f"{self.what} {where} can't be {value!r}")
        for place, count in value.items():
            whole = isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**40
            if not hugepages.PLACE.fullmatch(place) or not whole:
                raise NearmetalError(f"{self.what} {where} can't be {count!r} at {place!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        return hugepages.reserved(host, where) or None

    def same(self, now: Value, value: Value) -> bool:
        counts = self.elements(now)
        return bool(counts) and all(counts.get(place, count) == count for place, count in self.elements(value).items())

    def partly(self, now: Value, original: Value, value: Value) -> bool:
        # A signal ends the kernel's work after any page.
        if not (isinstance(now, int) and isinstance(original, int) and isinstance(value, int)):
            return False
        return min(original, value) < now < max(original, value)

    def away(self, host: WritableHost, where: str, element: str) -> bool:
        return host.exists(hugepages.file_of(where, element))

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        self.write_all(host, {where: value})

    def write_all(self, host: WritableHost, values: Mapping[str, Value]) -> None:
        """Free first, then reserve: what one size or node gives back is what another takes."""
        steps: List[Tuple[int, str, str, int]] = []
        for size, value in values.items():
            now = hugepages.reserved(host, size)
            wanted: Dict[str, int] = dict(value) if isinstance(value, Mapping) else {}
            for place, count in wanted.items():
                steps.append(((count - now.get(place, 0)) * int(size[:-2]), size, place, count))
        for more, size, place, count in sorted(steps):
            if more:
                _reserve(host, size, place, count)

    def obstacle(self, host: WritableHost, where: str) -> str:
        path = hugepages.file_of(where, next(iter(hugepages.reserved(host, where)), "host"))
        return "" if host.writable(path) else f"{path} can't be written here: run on the host itself"


def _reserve(host: WritableHost, size: str, place: str, count: int) -> None:
    """A request that memory's fragments meet only in part is repeated once, compacted."""
    path = hugepages.file_of(size, place)
    _put(host, path, str(count))
    if hugepages.reserved(host, size).get(place, 0) < count and host.exists(COMPACT):
        _put(host, COMPACT, "1")
        _put(host, path, str(count))
    got = hugepages.reserved(host, size).get(place, 0)
    if got < count:
        raise NearmetalError(
            f"asked for {count} huge pages of {size} on {place}, the kernel gave {got} even after compaction:"
            " free memory there, or reserve them at boot with method: boot"
        )


def _put(host: WritableHost, path: str, text: str) -> None:
    try:
        host.write_value(path, f"{text}\n")
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "error")
        raise NearmetalError(f"the kernel refused {text} in {path} ({name}: {os.strerror(error.errno or 0)})") from None


LEVERS = (
    Transparent("hugepages.thp", "enabled"),
    Transparent("hugepages.thp_defrag", "defrag"),
    Transparent("hugepages.thp_shmem", "shmem_enabled"),
    KhugepagedDefrag("hugepages.khugepaged_defrag", "khugepaged/defrag"),
    Reserved("hugepages.pages"),
)
