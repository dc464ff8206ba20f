# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of NIC interrupts: which queue of which device, per driver. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Pattern, Tuple

BOTH, RX, TX = "both", "rx", "tx"
# The largest number of queues of any driver named here is 1024; a name may hold anything.
_QUEUE = r"(?P<queue>[0-9]{1,4})"
_KINDS = {"rx": RX, "input": RX, "tx": TX, "output": TX}


class QueueName(NamedTuple):
    """The parts of a name. `device` is an interface, a PCI address, virtioN, or vifN of Xen."""

    device: str
    kind: str  # both | rx | tx
    queue: int


def _pattern(text: str, first: int = 0) -> Tuple[Pattern[str], int]:
    return re.compile(text.replace("<queue>", _QUEUE), re.ASCII), first


# The first pattern that matches counts; each has the number that the driver gives its first queue.
_NAMES = (
    # Flow Director of ixgbe and i40e has no queue of its own.
    _pattern(r"(?:.*:)?fdir-TxRx-[0-9]+"),
    # ena: eth0-Tx-Rx-0. ixgbevf, ixgbe, igb, bnxt: eth0-TxRx-0. i40e, ice, iavf put their own name before it.
    _pattern(r"(?:(?:i40e|ice|iavf|i40evf)-)?(?P<device>.+)-(?:Tx-Rx|TxRx|txrx)-<queue>"),
    # bnx2x.
    _pattern(r"(?P<device>.+)-fp-<queue>"),
    # mlx5, mana, mlx4, which counts from one.
    _pattern(r"mlx5_comp<queue>@(?:pci:)?(?P<device>[0-9a-f:.]+)"),
    _pattern(r"mana_q<queue>@(?:pci:)?(?P<device>[0-9a-f:.]+)"),
    _pattern(r"mlx4-<queue>@(?:pci:)?(?P<device>[0-9a-f:.]+)", first=1),
    # virtio-net has an interrupt per direction.
    _pattern(r"(?P<device>virtio[0-9]+)-(?P<kind>input|output)\.<queue>"),
    # xen-netfront since 3.16: vif0-q0-tx; before the interface is registered no better name is known.
    _pattern(r"(?P<device>.+)-q<queue>-(?P<kind>rx|tx)"),
    # igbvf; ixgbe and ixgbevf with few vectors.
    _pattern(r"(?P<device>.+)-(?P<kind>rx|tx)-<queue>"),
)


def queue_of(name: str) -> Optional[QueueName]:
    """The queue that an interrupt of this name serves; None for management, errors, and devices that are no NIC.

    A bare interface name is no queue: for ixgbevf it is the mailbox, but for xen-netfront with one queue the queue.
    """
    for pattern, first in _NAMES:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        groups = match.groupdict()
        if "device" not in groups or int(groups["queue"]) < first:
            return None
        return QueueName(groups["device"], _KINDS.get(groups.get("kind") or "", BOTH), int(groups["queue"]) - first)
    return None
