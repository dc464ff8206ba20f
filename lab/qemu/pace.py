# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much time a host had to run, which on a busy machine is less than the time on the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from lab import process


class Pace:
    """The seconds of a host since it was made: those on the wall, but for those in which a thread of its QEMU waited
    for a processor of this machine (proc(5), schedstat).
    """

    def __init__(self, pid: Callable[[], int]) -> None:
        self._pid = pid
        self._before = time.monotonic()
        self._waited = waited(pid())
        self._seconds = 0.0

    def seconds(self) -> float:
        """The host's seconds so far. Call it often: between two calls only the thread that waited longest counts."""
        now, waiting = time.monotonic(), waited(self._pid())
        longest = max((seconds - self._waited.get(thread, 0.0) for thread, seconds in waiting.items()), default=0.0)
        self._seconds += max(0.0, now - self._before - longest)
        self._before, self._waited = now, waiting
        return self._seconds

    def wait(self, ready: Callable[[], bool], seconds: float, interval: float = process.INTERVAL_SECONDS) -> bool:
        """Poll until `ready()` is true, or until so many of the host's seconds are over; whether it became true."""
        while not ready():
            if self.seconds() > seconds:
                return False
            time.sleep(interval)
        return True


def waited(pid: int) -> dict[str, float]:
    """The seconds that each thread of a process has waited for a processor; none where the kernel doesn't count."""
    found = {}
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            found[path.parent.name] = int(path.read_text(encoding="ascii").split()[1]) / 1e9
        except (OSError, IndexError):
            continue
    return found
