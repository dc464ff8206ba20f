# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of block devices: files of /sys/block/<disk>/queue. PRIVATE to the collection.

`where` is the disk's place; its name is looked up at each use, because another disk may have it after a reboot.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lever import Lever
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import block, disk
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import block_queue
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value


class QueueFile(Lever):
    """One file of the queue of a disk."""

    def __init__(self, attribute: str) -> None:
        super().__init__(f"block.{attribute}")
        self.attribute = attribute

    def check(self, where: str, value: Value) -> None:
        if not disk.PLACE.fullmatch(where):
            raise NearmetalError(f"{self.what} has no place {where!r}")
        if not block_queue.valid(self.attribute, value):
            raise NearmetalError(f"{self.what} can't be {value!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        name = disk.names(host).get(where)
        return block.read(host, name, self.attribute) if name is not None else None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        self.put(host, self._demand(host, where), str(value))

    def put(self, host: WritableHost, name: str, text: str) -> None:
        """Write the file; NearmetalError when the kernel refuses."""
        path = self._path(name)
        try:
            host.write_value(path, f"{text}\n")
        except OSError as error:
            code = errno.errorcode.get(error.errno or 0, "error")
            reason = os.strerror(error.errno or 0)
            raise NearmetalError(f"the kernel refused {text} in {path} ({code}: {reason})") from None

    def same(self, now: Value, value: Value) -> bool:
        if isinstance(now, str) and isinstance(value, str):
            return block_queue.holds(self.attribute, now, value)
        return now == value

    def remembered(self, value: Value) -> Value:
        return block_queue.remembered(self.attribute, value) if isinstance(value, str) else value

    def obstacle(self, host: WritableHost, where: str) -> str:
        name = disk.names(host).get(where)
        if name is None:
            return f"no disk is at {where} any more"
        return "" if host.writable(self._path(name)) else f"{self._path(name)} can't be written here: run on the host"

    def gone(self, host: WritableHost, where: str) -> bool:
        return where not in disk.names(host)

    def _path(self, name: str) -> str:
        return f"{disk.BLOCK}/{name}/queue/{self.attribute}"

    def _demand(self, host: WritableHost, where: str) -> str:
        name = disk.names(host).get(where)
        if name is None:
            raise NearmetalError(f"no disk is at {where} any more")
        return name


class Scheduler(QueueFile):
    """The I/O scheduler. With each one the kernel sets nr_requests anew, so a number that wasn't its own is kept."""

    first = True

    def __init__(self) -> None:
        super().__init__("scheduler")
        self._requests = QueueFile("nr_requests")

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        name = self._demand(host, where)
        requests = block.read(host, name, "nr_requests")
        chosen = requests is not None and requests != _own(host, name)
        self.put(host, name, str(value))
        if chosen and block.read(host, name, "nr_requests") != requests:
            with suppress(NearmetalError):  # without a scheduler there may be no room for so many
                self._requests.put(host, name, str(requests))


def _own(host: WritableHost, name: str) -> Optional[str]:
    """The nr_requests that the kernel gives by itself: all of a hardware queue, or twice it up to 256."""
    depth = block.depth(host, name)
    if depth is None:
        return block.read(host, name, "nr_requests")
    scheduler = block.read(host, name, "scheduler")
    return str(depth if scheduler == "none" else 2 * min(depth, 128))
