# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of a fleet's run: one line redrawn in place, or a plain line now and then in a log. PRIVATE."""

from __future__ import annotations

import shutil
import time
from typing import Callable, Optional, TextIO

from .._columns import clip, width
from .._report import model
from .._report.collect import Collector
from .._report.model import plural

REDRAW = 0.1  # seconds: a shorter time costs CPU, and the eye sees no difference
LOG = 10.0  # seconds between lines of a log
BAR = 30
FEW = 20  # hosts: a run of fewer writes no progress to a log


class Progress:
    """Redraws a line on a terminal, prints lines to anything else."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._tty = stream.isatty()
        self._drawn = False
        self._started: Optional[float] = None
        self._last = 0.0

    def show(self, collector: Collector, mode: str) -> None:
        """Draw or print the state, at most once per REDRAW or LOG seconds."""
        now = self._clock()
        if self._started is None:
            self._started, self._last = now, now if not self._tty else now - REDRAW
        if now - self._last < (REDRAW if self._tty else LOG):
            return
        if self._tty:
            self._last = now
            columns = shutil.get_terminal_size().columns
            # The cursor returns to the start of the line, where the next output of Ansible begins.
            self._stream.write(f"\r\x1b[K{_line(collector, mode, now - self._started, columns - 1)}\r")
            self._stream.flush()
            self._drawn = True
        elif collector.total() >= FEW and collector.seen() < collector.total():
            self._last = now
            self._stream.write(f"{_words(collector, mode, now - self._started)}\n")
            self._stream.flush()

    def erase(self) -> None:
        """Remove the progress line before Ansible prints its own."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
            self._last -= REDRAW


def _words(collector: Collector, mode: str, elapsed: float) -> str:
    parts = [
        f"{mode}: {collector.seen():,}/{plural(collector.total(), 'host')}",
        f"{collector.findings:,} to act on",
    ]
    parts += [f"{count:,} {state}" for state in (model.FAILED, model.UNREACHABLE) if (count := collector.count(state))]
    return "  ".join([*parts, _left(collector, elapsed)]).rstrip()


def _left(collector: Collector, elapsed: float) -> str:
    done, total = collector.seen(), collector.total()
    if not done or done >= total or elapsed < 1:
        return ""
    minutes, seconds = divmod(round(elapsed / done * (total - done)), 60)
    return f"{minutes}:{seconds:02d} left"


def _line(collector: Collector, mode: str, elapsed: float, columns: int) -> str:
    words = _words(collector, mode, elapsed)
    room = min(columns - width(words) - 2, BAR)
    if room < 8:
        return clip(words, columns)
    full = room * collector.seen() // max(collector.total(), 1)
    return f"{'━' * full}{'─' * (room - full)}  {words}"
