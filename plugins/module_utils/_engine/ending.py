# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a run may end early, and when not. PRIVATE to the collection.

The unit's run ends when systemd demands it, but never between a write and its record. A run that cuts its own
connection off is completed.

SIGTERM comes at a shutdown and with `systemctl stop`, SIGXCPU when the run has used the
CPU time that the service allows it.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from types import FrameType
from typing import Any, ContextManager, Iterable, Iterator, List, Mapping, Optional, Union

# Signal → the exit status, or a sentence for the log, which means status 1.
_STATUS: Mapping[int, Union[int, str]] = {
    signal.SIGTERM: 0,
    signal.SIGXCPU: "<3>nearmetal: this run has used up the CPU time that nearmetal.service allows it: the next run"
    " does the rest",
}
_waiting: List[int] = []  # signals that came inside `uninterrupted`
_blocks: List[bool] = []  # one element for each `uninterrupted` block that is entered


def at_signals() -> ContextManager[None]:
    """End this block at these signals: at once, or at the end of an `uninterrupted` block."""
    return handled(_STATUS, _arrives)


@contextmanager
def handled(numbers: Iterable[int], handler: Any) -> Iterator[None]:
    """Handle these signals in this way while the block runs."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Complete this block, with its record or its way back, before a signal ends the run."""
    _blocks.append(True)
    try:
        yield
    finally:
        _blocks.pop()
        if _waiting and not _blocks:
            _end(_waiting.pop())


def without_terminal() -> ContextManager[None]:
    """Complete this block even if its terminal hangs up.

    Without pipelining Ansible gives a run a terminal, which ends with the connection that the run cuts off.
    """
    return handled((signal.SIGHUP,), signal.SIG_IGN)


def _arrives(number: int, _frame: Optional[FrameType]) -> None:
    if _blocks:
        _waiting.append(number)
    else:
        _end(number)


def _end(number: int) -> None:
    raise SystemExit(_STATUS[number])
