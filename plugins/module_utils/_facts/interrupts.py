# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interrupts of a host: whose they are, and to which CPUs they may go and do go. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from .._parse import interrupts, irq_name
from .host import Host

IRQ = "/proc/irq"
_LONGEST = 16 * 1024 * 1024  # 1,920 CPUs have columns of 11 characters each in some 600 lines


class Affinity(NamedTuple):
    """The CPUs of one interrupt, as kernel lists. None is what the kernel doesn't say."""

    wanted: Optional[str]  # smp_affinity_list: where it may go
    effective: Optional[str]  # where it really goes; None before Linux 4.15


class Vector(NamedTuple):
    """One interrupt of a NIC's queue."""

    irq: int
    kind: str  # both | rx | tx
    queue: int

    @property
    def label(self) -> str:
        """The queue's name in nearmetal's tables: "3", or with an interrupt per direction "rx-3"."""
        return str(self.queue) if self.kind == irq_name.BOTH else "{}-{}".format(self.kind, self.queue)


def observe(host: Host) -> interrupts.Interrupts:
    """Read /proc/interrupts."""
    return interrupts.parse(host.text("/proc/interrupts", _LONGEST) or "")


def affinity(host: Host, irq: int) -> Affinity:
    """Read where the interrupt may go."""
    return Affinity(
        wanted=host.line("{}/{}/smp_affinity_list".format(IRQ, irq)),
        effective=host.line("{}/{}/effective_affinity_list".format(IRQ, irq)),
    )


def queues(table: interrupts.Interrupts) -> Dict[str, Tuple[Vector, ...]]:
    """Device in the interrupts' names → its queue interrupts, by queue and receive before transmit."""
    devices: Dict[str, List[Vector]] = {}
    for line in table.lines:
        for queue in map(irq_name.queue_of, line.names if line.number >= 0 else ()):
            if queue is not None:
                devices.setdefault(queue.device, []).append(Vector(line.number, queue.kind, queue.queue))
    return {device: ordered(vectors) for device, vectors in sorted(devices.items())}


def numbered(driver: Optional[str], vectors: Tuple[Vector, ...]) -> Tuple[Vector, ...]:
    """The vectors with the numbers of their queues, where the driver counts vectors.

    tg3's vector 0 is for events of the link, and for sending where there is one transmit queue; vector 1 is queue 0.
    """
    if driver != "tg3":
        return vectors
    return tuple(Vector(vector.irq, vector.kind, max(vector.queue - 1, 0)) for vector in vectors)


def ordered(vectors: List[Vector]) -> Tuple[Vector, ...]:
    """By queue, receive before transmit."""
    return tuple(sorted(vectors, key=lambda vector: (vector.queue, vector.kind, vector.irq)))
