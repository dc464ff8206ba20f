# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ctrl-C and the end of Ansible do to a run on the controller. PRIVATE to the collection."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Callable, Iterator, Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.ending import handled

ANSIBLE_ENDED = "Ansible ended"
_ENDING = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """The run was interrupted by Ctrl-C, by a signal, or by the end of Ansible."""


@contextmanager
def first_interrupts() -> Iterator[None]:
    """The first signal ends the run; later ones are ignored, so that they can't interrupt the restore."""

    def arrives(number: int, _frame: Optional[FrameType]) -> None:
        for ending in _ENDING:
            signal.signal(ending, signal.SIG_IGN)
        raise Interrupted(f"the run was interrupted by {signal.Signals(number).name}")

    with handled(_ENDING, arrives):
        yield


@contextmanager
def ignored() -> Iterator[None]:
    """No signal interrupts the step that keeps the tuning or restores the host."""
    with handled(_ENDING, signal.SIG_IGN):
        yield


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
