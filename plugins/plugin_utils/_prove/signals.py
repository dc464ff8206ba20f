# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ctrl-C and the end of Ansible do to a run on the controller. PRIVATE to the collection."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Callable, Iterator, NoReturn, Optional

from ...module_utils._engine.ending import handled

ANSIBLE_ENDED = "Ansible ended"
_ENDING = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """The run was interrupted by Ctrl-C, by a signal, or by the end of Ansible."""


class Interrupts:
    """The signals that come while a run goes on: the first ends it, the others change nothing.

    A signal that may not interrupt is blocked, not ignored: so the run can tell that it came, and what it starts, such
    as ssh, isn't ended by it either.
    """

    def __init__(self) -> None:
        self._first_name = ""
        self._may_interrupt = True

    @property
    def received(self) -> bool:
        """Whether a signal came, even if it still waits."""
        return bool(self._first_name) or not signal.sigpending().isdisjoint(_ENDING)

    def block(self) -> None:
        """Interrupt nothing from now on: the host is restored, or the tuning kept, and then all that is said of it."""
        self._may_interrupt = False
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

    @contextmanager
    def postponed(self) -> Iterator[None]:
        """Interrupt after this block, not in it."""
        self.block()
        try:
            yield
        finally:
            self._may_interrupt = True
            if self._first_name:
                self._interrupt()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def handle(self, number: int, _frame: Optional[FrameType]) -> None:
        """Handle a signal, of which a second may have come with the first. Raises Interrupted.

        If this process has another thread, that one takes a signal that is blocked.
        """
        if not self._first_name:
            self._first_name = signal.Signals(number).name
            if self._may_interrupt:
                self._interrupt()

    def _interrupt(self) -> NoReturn:
        self.block()
        raise Interrupted(f"the run was interrupted by {self._first_name}")


@contextmanager
def first_interrupts() -> Iterator[Interrupts]:
    """The first signal ends this block, which says when none may."""
    interrupts = Interrupts()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with handled(_ENDING, interrupts.handle):
        try:
            yield interrupts
        finally:
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)  # drops those that wait
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def stderr_of(parent: int) -> Iterator[Callable[[str], None]]:
    """What prints a line after Ctrl-C; `parent` is the process of Ansible itself.

    An interrupted Ansible prints nothing more from its workers, which have no terminal of their own. So the line goes
    to the standard error of Ansible itself, through /proc. It is opened before Ansible may have ended, and nothing
    waits for its reader, such as a terminal that is stopped: the host is to be restored.
    """
    stream: Optional[int] = None
    with suppress(OSError):
        stream = os.open(f"/proc/{parent}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK)

    def write(line: str) -> None:
        with suppress(OSError):
            if stream is not None:
                os.write(stream, f"{line}\n".encode())

    try:
        yield write
    finally:
        if stream is not None:
            os.close(stream)
