# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of block devices: files of /sys/block/<disk>/queue. PRIVATE to the collection.

`where` is the disk's place; its name is looked up at each use, because another disk may have it after a reboot.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Dict, Iterable, Optional

from .._error import NearmetalError
from .._facts import block, disk
from .._facts.disk import PLACE
from .._parse import block_queue
from .._plan import Value
from .base import Beside, KernelFile, Key


class QueueFile(KernelFile):
    """One file of the queue of a disk, of which the kernel rounds a value or marks it among others."""

    on_device = True
    places = PLACE

    def __init__(self, attribute: str) -> None:
        super().__init__(f"block.{attribute}")
        self.attribute = attribute

    def same(self, present: Value, value: Value) -> bool:
        if isinstance(present, str) and isinstance(value, str):
            return block_queue.holds(self.attribute, present, value)
        return present == value

    def remembered(self, value: Value) -> Value:
        return block_queue.remembered(self.attribute, value) if isinstance(value, str) else value

    def fits(self, where: str, value: Value) -> bool:
        return block_queue.valid(self.attribute, value)

    def disk(self) -> Optional[str]:
        """The name of the disk at the place; None when there is none."""
        return disk.name_at(self.host, self.where)

    def require_disk(self) -> str:
        """The name of the disk at the place. Raises NearmetalError when there is none."""
        name = self.disk()
        if name is None:
            raise NearmetalError(self.absent())
        return name

    def absent(self) -> str:
        """The sentence for a disk that has left the host."""
        return f"no disk is at {self.where} any more"

    def read(self) -> Value:
        name = self.disk()
        return block.read(self.host, name, self.attribute) if name is not None else None

    def obstacle(self) -> str:
        return super().obstacle() if self.disk() is not None else self.absent()

    def detached(self) -> bool:
        return self.disk() is None

    def identity(self) -> str:
        return next(iter(self._identities().values()), "")

    def exchanged(self, device: str) -> bool:
        """Compare identities of the same source; one that can't be read now, or has no source, proves nothing."""
        return bool(device) and self._identities().get(device.partition("=")[0], device) != device

    def _identities(self) -> Dict[str, str]:
        name = self.disk()
        return disk.identities(self.host, name) if name is not None else {}

    def attachment(self) -> str:
        """The number of Linux 5.15 and newer."""
        return self._identities().get("diskseq", "")

    def device_name(self) -> str:
        return self.disk() or self.where

    def choice(self) -> Value:
        name = self.disk()
        if name is None or block.has_foreign_rule(self.host, self.attribute):
            return None
        return block.kernel_choice(self.host, name, self.attribute)

    def path(self) -> str:
        return f"{disk.BLOCK}/{self.require_disk()}/queue/{self.attribute}"


class Timeout(QueueFile):
    """The time that a request may take, which the kernel keeps in ticks.

    It rounds up what is written, and what it shows. With 300 ticks per second a number that it has shown means one tick
    more when it is written again, and one millisecond less gives the shown number.
    """

    def write(self, value: Value) -> None:
        super().write(value)
        number, displayed = int(str(value)), int(str(self.read() or value))
        if 1 < number < displayed < block_queue.LONGEST_MS // 2:
            super().write(str(number - 1))
            if self.read() != value:
                super().write(value)


class Requests(QueueFile):
    """The number of requests that may wait, of which the scheduler has a default and a limit."""

    def fitting(self, original: Value, beside: Beside) -> Value:
        name = self.require_disk()
        scheduler = str(beside.after.get(("block.scheduler", self.where)) or block.read(self.host, name, "scheduler"))
        most = block.most_requests(scheduler, block.depth(self.host, name))
        fits = most is None or original is None or int(str(original)) <= most
        return original if fits else block.requests_of(self.host, name, scheduler)


class Scheduler(QueueFile):
    """The I/O scheduler. A change makes the kernel reset nr_requests, so a number that isn't its default is kept."""

    disturbing = True

    def __init__(self) -> None:
        super().__init__("scheduler")

    def requests(self) -> Requests:
        """The place of the disk's number of requests."""
        return Requests("nr_requests").at(self.host, self.where)

    def disturbs(self) -> Iterable[Key]:
        return (("block.nr_requests", self.where),)

    def write(self, value: Value) -> None:
        kept = self.requests_set()
        super().write(value)
        if kept is not None and self.requests().read() != kept:
            with suppress(NearmetalError):  # without a scheduler there may be no room for so many
                self.requests().write(kept)

    def fitting(self, original: Value, beside: Beside) -> Value:
        offered = block.offered_schedulers(self.host, self.require_disk())
        return original if original in offered else self.choice()

    def requests_set(self) -> Value:
        """The number of requests, if somebody chose it; None for the scheduler's own."""
        name = self.require_disk()
        requests = block.read(self.host, name, "nr_requests")
        default = block.requests_of(self.host, name, block.read(self.host, name, "scheduler"))
        return requests if None not in (requests, default) and requests != default else None

    def kernel_chosen(self) -> Iterable[Key]:
        name = self.require_disk()
        chosen = block.requests_of(self.host, name, block.read(self.host, name, "scheduler"))
        return self.disturbs() if block.read(self.host, name, "nr_requests") == chosen else ()


LEVERS = (
    Scheduler(),
    Timeout("io_timeout"),
    Requests("nr_requests"),
    *(QueueFile(name) for name in block_queue.ATTRIBUTES if name not in ("scheduler", "io_timeout", "nr_requests")),
)
