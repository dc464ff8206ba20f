# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of block devices: files of /sys/block/<disk>/queue. PRIVATE to the collection.

`where` is the disk's place; its name is looked up at each use, because another disk may have it after a reboot.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Dict, Iterable, Iterator, List

from .._error import NearmetalError
from .._facts import block, disk
from .._host.host import WritableHost
from .._parse import block_queue
from .._plan import Value
from .base import Values, echo, impossible, no_place, put, unwritable
from .capabilities import Beside, Choosing, Disturbing, Limited, OnDevice, Place

# A line of _concerns/block_storage/rules.py that sets something.
_RULE = re.compile(
    r'^ENV\{\.NEARMETAL_KIND\}=="([a-z_]{1,16})", .*ATTR\{queue/([a-z_]{1,16})\}="([a-z0-9_-]{1,32})"$',
    re.ASCII | re.MULTILINE,
)


class QueueValues(Values):
    """Values of one file of a queue, which the kernel rounds or marks among others."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute

    def same(self, present: Value, value: Value) -> bool:
        if isinstance(present, str) and isinstance(value, str):
            return block_queue.holds(self.attribute, present, value)
        return present == value

    def remembered(self, value: Value) -> Value:
        return block_queue.remembered(self.attribute, value) if isinstance(value, str) else value


class QueueFile(OnDevice, Choosing):
    """One file of the queue of a disk."""

    def __init__(self, attribute: str) -> None:
        super().__init__(f"block.{attribute}")
        self.attribute = attribute
        self.values = QueueValues(attribute)

    def check(self, where: str, value: Value) -> None:
        if not disk.PLACE.fullmatch(where):
            raise no_place(self, where)
        if not block_queue.valid(self.attribute, value):
            raise impossible(self, value, where)

    def read(self, host: WritableHost, where: str) -> Value:
        name = disk.names(host).get(where)
        return block.read(host, name, self.attribute) if name is not None else None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        put(host, self.path(self._demand(host, where)), str(value))

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        return [echo(self.path(self._demand(host, where)), value)]

    def obstacle(self, host: WritableHost, where: str) -> str:
        name = disk.names(host).get(where)
        if name is None:
            return f"no disk is at {where} any more"
        return unwritable(host, self.path(name))

    def detached(self, host: WritableHost, where: str) -> bool:
        return where not in disk.names(host)

    def identity(self, host: WritableHost, where: str) -> str:
        return next(iter(self._identities(host, where).values()), "")

    def is_another(self, host: WritableHost, where: str, device: str) -> bool:
        """Compare identities of the same source; one that can't be read now, or has no source, proves nothing."""
        return self._identities(host, where).get(device.partition("=")[0], device) != device

    def _identities(self, host: WritableHost, where: str) -> Dict[str, str]:
        name = disk.names(host).get(where)
        return disk.identities(host, name) if name is not None else {}

    def attachment(self, host: WritableHost, where: str) -> str:
        """The number of Linux 5.15 and newer."""
        return self._identities(host, where).get("diskseq", "")

    def device_name(self, host: WritableHost, where: str) -> str:
        return disk.names(host).get(where, where)

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        name = disk.names(host).get(where)
        if name is None or block.has_foreign_rule(host, self.attribute):
            return None
        return block.kernel_choice(host, name, self.attribute)

    def path(self, name: str) -> str:
        """The file of a disk."""
        return f"{disk.BLOCK}/{name}/queue/{self.attribute}"

    def _demand(self, host: WritableHost, where: str) -> str:
        name = disk.names(host).get(where)
        if name is None:
            raise NearmetalError(f"no disk is at {where} any more")
        return name


class Timeout(QueueFile):
    """The time that a request may take, which the kernel keeps in ticks.

    It rounds up what is written, and what it shows. With 300 ticks per second a number that it has shown means one tick
    more when it is written again, and one millisecond less gives the shown number.
    """

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        super().write(host, where, value)
        number, displayed = int(str(value)), int(str(self.read(host, where) or value))
        if 1 < number < displayed < block_queue.LONGEST_MS // 2:
            super().write(host, where, str(number - 1))
            if self.read(host, where) != value:
                super().write(host, where, value)


class Requests(QueueFile, Limited):
    """The number of requests that may wait, of which the scheduler has a default and a limit."""

    def fitting(self, host: WritableHost, where: str, original: Value, beside: Beside) -> Value:
        name = self._demand(host, where)
        scheduler = str(beside.after.get(("block.scheduler", where)) or block.read(host, name, "scheduler"))
        most = block.most_requests(scheduler, block.depth(host, name))
        fits = most is None or original is None or int(str(original)) <= most
        return original if fits else block.requests_of(host, name, scheduler)


class Scheduler(QueueFile, Disturbing, Limited):
    """The I/O scheduler. A change makes the kernel reset nr_requests, so a number that isn't its default is kept."""

    def __init__(self) -> None:
        super().__init__("scheduler")
        self._requests = Requests("nr_requests")

    def disturbs(self, host: WritableHost, where: str) -> Iterable[Place]:
        return ((self._requests.what, where),)

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        name = self._demand(host, where)
        requests = self._requests_set(host, name)
        put(host, self.path(name), str(value))
        if requests is not None and block.read(host, name, "nr_requests") != requests:
            with suppress(NearmetalError):  # without a scheduler there may be no room for so many
                put(host, self._requests.path(name), str(requests))

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        name = self._demand(host, where)
        requests = self._requests_set(host, name)
        again = [] if requests is None else [echo(self._requests.path(name), requests)]
        return [*super().commands(host, where, value), *again]

    def fitting(self, host: WritableHost, where: str, original: Value, beside: Beside) -> Value:
        offered = block.offered_schedulers(host, self._demand(host, where))
        return original if original in offered else self.kernel_choice(host, where)

    @staticmethod
    def _requests_set(host: WritableHost, name: str) -> Value:
        """The number of requests, if somebody chose it; None for the scheduler's own."""
        requests = block.read(host, name, "nr_requests")
        default = block.requests_of(host, name, block.read(host, name, "scheduler"))
        return requests if None not in (requests, default) and requests != default else None

    def kernel_chosen(self, host: WritableHost, where: str) -> Iterable[Place]:
        name = self._demand(host, where)
        chosen = block.requests_of(host, name, block.read(host, name, "scheduler"))
        return self.disturbs(host, where) if block.read(host, name, "nr_requests") == chosen else ()


def set_by_rules(host: WritableHost, text: str) -> Iterator[Place]:
    """The queue files that hold what udev rules of nearmetal, with this text, set there."""
    settings = [(match[1], match[2], match[3]) for match in _RULE.finditer(text)]
    for where, name in disk.names(host).items():
        layer, kind = disk.layer(host, name), disk.kind_and_driver(host, name)[0]
        for rule_kind, attribute, value in settings:
            fits = layer == disk.DISK or (layer == disk.HEAD and attribute == "read_ahead_kb")
            if fits and rule_kind == kind and block_queue.holds(attribute, block.read(host, name, attribute), value):
                yield f"block.{attribute}", where


LEVERS = (
    Scheduler(),
    Timeout("io_timeout"),
    Requests("nr_requests"),
    *(QueueFile(name) for name in block_queue.ATTRIBUTES if name not in ("scheduler", "io_timeout", "nr_requests")),
)
