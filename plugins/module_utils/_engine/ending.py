# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a run may end before it is done, and when not. PRIVATE to the collection.

The unit's run ends when systemd demands it, never between a write and its record. A run that cuts itself off is
completed.

SIGTERM comes at a shutdown and with `systemctl stop`, SIGXCPU when the run has used the
CPU time that the service allows it.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from types import FrameType
from typing import Iterator, List, Mapping, Optional, Union

# What the process ends with: a status, or a sentence for the log and status 1.
_STATUS: Mapping[int, Union[int, str]] = {
    signal.SIGTERM: 0,
    signal.SIGXCPU: "<3>nearmetal: the CPU time that nearmetal.service allows a run is used up: what is left is planned"
    " at the next look",
}
_waiting: List[int] = []  # the signals that came while something was being written
_held: List[bool] = []  # an element for each `whole` that is entered


@contextmanager
def heeded() -> Iterator[None]:
    """End at these signals: at once, or at the end of the block that must be done as a whole."""
    before = {number: signal.signal(number, _arrives) for number in _STATUS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def whole() -> Iterator[None]:
    """This block is done as a whole, with its record or its way back."""
    _held.append(True)
    try:
        yield
    finally:
        _held.pop()
        if _waiting and not _held:
            _end(_waiting.pop())


@contextmanager
def without_terminal() -> Iterator[None]:
    """This block is completed although the terminal is hung up.

    Without pipelining Ansible gives a run one, and it goes with the connection that the run cuts off.
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _arrives(number: int, _frame: Optional[FrameType]) -> None:
    if _held:
        _waiting.append(number)
    else:
        _end(number)


def _end(number: int) -> None:
    raise SystemExit(_STATUS[number])
