# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print each step and the time that it took; on a terminal the seconds count up."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO


class Progress:
    """Writes one line per step to a stream, by default standard error."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def say(self, text: str) -> None:
        """Print one line."""
        self._stream.write(f"lab: {text}\n")
        self._stream.flush()

    @contextlib.contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Print the name of a step at once, and its seconds at the end."""
        started = time.monotonic()
        stop = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(text, started, stop), daemon=True)
        if self._stream.isatty():
            ticker.start()
        else:
            self._stream.write(f"lab: {text} ... ")
            self._stream.flush()
        outcome = "gave up after"
        try:
            yield
            outcome = "took"
        finally:
            stop.set()
            end = f"{outcome} {time.monotonic() - started:.1f} s\n"
            if ticker.ident is not None:
                ticker.join()
                end = f"\rlab: {text} ... {end}"
            self._stream.write(end)
            self._stream.flush()

    def _tick(self, text: str, started: float, stop: threading.Event) -> None:
        while not stop.wait(0.5):
            self._stream.write(f"\rlab: {text} ... {time.monotonic() - started:.0f} s")
            self._stream.flush()
