# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""clock_read SECONDS: what one clock read costs, and how many of 1,000 reads are system calls, as JSON.

A program of its own, started by the benchmark `clock`; it imports nothing but the standard library. It needs no
compiler: the loop is in C, and what it costs without the clock is measured beside it and taken off.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections import deque
from itertools import islice
from typing import Callable, Optional

READS = 1_000
LEAST_BATCHES = 100
SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_TRACEME, _SYSCALL, _SETOPTIONS = 0, 24, 0x4200
_MARKED, _EXITKILL = 1, 0x100000  # PTRACE_O_TRACESYSGOOD, so that a stop by a system call differs from others
_STOP_BY_CALL = signal.SIGTRAP | 0x80


def call(function: Callable[[], float], count: int) -> None:
    """Call a function so many times, without a line of Python in between."""
    deque(islice(iter(function, None), count), maxlen=0)


def read_ns(seconds: float) -> float:
    """The nanoseconds of one read in the fastest batch, without what a call of a function costs.

    Whatever disturbs a batch only adds to it.
    """
    read = without = float("inf")
    until, batches = time.monotonic() + seconds, 0
    while batches < LEAST_BATCHES or time.monotonic() < until:
        read = min(read, _batch(time.time))
        without = min(without, _batch((0.5).conjugate))
        batches += 1
    return (read - without) / READS * 1e9


def _batch(function: Callable[[], float]) -> float:
    started = time.perf_counter()
    call(function, READS)
    return time.perf_counter() - started


def system_calls(function: Callable[[], float]) -> Optional[int]:
    """The system calls of 1,000 calls of a function, which the kernel traces in a child; None where it must not."""
    trace = ctypes.CDLL(None, use_errno=True).ptrace
    trace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    trace.restype = ctypes.c_long
    child = os.fork()
    if child == 0:
        # The child stops itself before the reads and after them.
        own = os.getpid()
        if trace(_TRACEME, 0, None, None) == 0:
            os.kill(own, signal.SIGSTOP)
            call(function, READS)
            os.kill(own, signal.SIGSTOP)
        os._exit(0)
    stops, status = 0, os.waitpid(child, 0)[1]
    if not os.WIFSTOPPED(status):
        return None
    allowed = trace(_SETOPTIONS, child, None, _MARKED | _EXITKILL) == 0
    while allowed and trace(_SYSCALL, child, None, None) == 0:
        status = os.waitpid(child, 0)[1]
        if not os.WIFSTOPPED(status):
            return None
        if os.WSTOPSIG(status) == signal.SIGSTOP:
            break
        stops += os.WSTOPSIG(status) == _STOP_BY_CALL
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    # Each call stops at its begin and its end; the last one is the child's own kill.
    return stops // 2 - 1 if allowed else None


def main(seconds: float) -> None:
    try:
        with open(SOURCE, encoding="ascii") as stream:
            source = stream.read().strip()
    except OSError:
        source = ""
    found = {"clock_source": source, "read_ns": read_ns(seconds), "system_calls": system_calls(time.time)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
