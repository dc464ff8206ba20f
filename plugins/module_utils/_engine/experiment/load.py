# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the load of a measurement. It runs on the host under test, or on another. PRIVATE to the collection."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from typing import IO, Callable, NamedTuple

MOST_OUTPUT = 64 * 1024  # bytes of what it prints
_LOOK = 0.2  # seconds between two looks whether it still runs, which cost it nothing


class Ran(NamedTuple):
    """One run of the load."""

    code: int  # what it ended with; negative: the signal that ended it
    output: str
    message: str  # the end of what it wrote to standard error
    seconds: float
    cpu_seconds: float  # of it and all that it started and waited for
    end: str  # "" | "time" (it took too long) | "gone" (the experiment ended meanwhile)


def run(command: str, limit: float, goes_on: Callable[[], bool]) -> Ran:
    """Run a shell command for at most `limit` seconds, and as long as the experiment `goes_on`.

    It has a session of its own, so that whatever it started ends with it.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        before, started = os.times(), time.monotonic()
        with subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=messages,
            start_new_session=True,
        ) as process:
            watcher = _Watcher(process.pid, started + limit, goes_on)
            watcher.start()
            try:
                process.wait()  # not with a timeout, by which Python looks only 20 times a second
                seconds = time.monotonic() - started
            finally:
                watcher.ended.set()
                watcher.join()
                _kill(process.pid)
        after = os.times()
        used = after.children_user - before.children_user + after.children_system - before.children_system
        return Ran(process.returncode, _text(output, 0), _text(messages, -400), seconds, used, watcher.why)


class _Watcher(threading.Thread):
    """Ends a load that takes too long, or whose experiment is over."""

    def __init__(self, group: int, until: float, goes_on: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.why = ""
        self._group, self._until, self._goes_on = group, until, goes_on

    def run(self) -> None:
        while not self.ended.wait(_LOOK):
            self.why = "time" if time.monotonic() >= self._until else "" if self._goes_on() else "gone"
            if self.why:
                _kill(self._group)
                return


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _text(stream: IO[bytes], start: int) -> str:
    """What was written, from the start or the end, as text without NUL."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size + start, 0) if start < 0 else 0)
    return stream.read(MOST_OUTPUT).decode("utf-8", "replace").replace("\0", "")
