# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What threads wait for, how late they get a CPU, and what they ask of the kernel, by what perf prints. Pure. PRIVATE.

All in bounded memory, whatever runs: what there is no room for is counted as others.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, Tuple

from .folding import OTHERS, clean

_MOST_THREADS = 50_000
_MOST_NAMES = 5_000
_LISTED = 30
_KERNEL_THREAD = " <- kthread"  # it waits for work, and for nothing that a program does
_LATE = 1.0  # milliseconds that a thread which could run has no CPU: what a request of a database takes
# "  70006.806783 [0001]  qemu-system-x86[7225/7220]  1.790  0.033  0.010  S  futex_do_wait <- __futex_wait": the times
# are the wait before this run with the delay at its end, the delay, and the run; state and functions are those of its
# end, so of the next wait.
_RUN = re.compile(
    r" *[0-9]+\.[0-9]+ \[[0-9]+\]  (.*)\[([0-9]+)(?:/[0-9]+)?\] +([0-9]+\.[0-9]+) +([0-9]+\.[0-9]+) +([0-9]+\.[0-9]+)"
    r" +(\S+) *(.*)",
    re.ASCII,
)
_PROGRAM = re.compile(r" (.*) \([0-9]+\), [0-9]+ events, ", re.ASCII)
_CALL = re.compile(r"   (\w+) +([0-9]+) +(?:([0-9]+) +)?([0-9]+\.[0-9]+) +[0-9]+\.[0-9]+ ", re.ASCII)
_LOST = re.compile(r"LOST ([0-9]{1,12}) events", re.ASCII)

Sums = Dict[Tuple[str, ...], List[float]]


class Waits:
    """Takes lines of `perf sched timehist --state`."""

    def __init__(self) -> None:
        self._of_thread: Dict[str, Tuple[bool, str]] = {}  # thread → whether it could go on, where it stopped
        self._programs: Sums = {}  # program → runs, ran, ready, blocked, longest: milliseconds
        self._places: Sums = {}  # program and functions → waits, blocked
        self._woken, self._late, self._delayed = 0, 0, 0.0

    def add(self, lines: Iterable[str]) -> None:
        """The next lines; headings are none."""
        for line in lines:
            run = _RUN.match(line)
            if run is None:
                continue
            program, thread, state = clean(run[1]), run[2], run[6]
            wait, delay, ran = float(run[3]), float(run[4]), float(run[5])
            could, where = self._of_thread.get(thread, (False, ""))
            if len(self._of_thread) < _MOST_THREADS or thread in self._of_thread:
                self._of_thread[thread] = (state.startswith("R"), clean(run[7].strip()))
            # Of a thread whose end of the run before isn't known, nobody knows why it waited.
            ready, blocked = (wait, 0.0) if could else (delay, max(wait - delay, 0.0) if where else 0.0)
            if not could:
                self._woken += 1
                self._delayed += delay
                self._late += delay > _LATE
            sums = _row(self._programs, (program,), 5)
            for number, value in enumerate((1, ran, ready, blocked)):
                sums[number] += value
            sums[4] = max(sums[4], ready)
            if blocked and _KERNEL_THREAD not in where:
                sums = _row(self._places, (program, where), 2)
                sums[0] += 1
                sums[1] += blocked

    def as_dict(self) -> Dict[str, Any]:
        """What the result has of them, in seconds."""
        return {
            "wakeups": self._woken,
            "delay": round(self._delayed / 1000 / (self._woken or 1), 6),
            "late": round(self._late / (self._woken or 1), 4),
            "programs": [
                {"name": name, "runs": int(runs), **_seconds(ran=ran, ready=ready, blocked=blocked, longest=longest)}
                for (name,), (runs, ran, ready, blocked, longest) in _largest(self._programs, 2)
            ],
            "places": [
                {"name": name, "where": where, "waits": int(waits), **_seconds(blocked=blocked)}
                for (name, where), (waits, blocked) in _largest(self._places, 1)
            ],
        }


class Calls:
    """Takes lines of `perf trace --summary`."""

    def __init__(self) -> None:
        self.lost = 0
        self._program = OTHERS
        self._calls: Sums = {}  # program and system call → calls, errors, milliseconds

    def add(self, lines: Iterable[str]) -> None:
        for line in lines:
            call, program, lost = _CALL.match(line), _PROGRAM.match(line), _LOST.search(line)
            if call is not None:
                sums = _row(self._calls, (self._program, clean(call[1])), 3)
                for number, value in enumerate((call[2], call[3] or 0, call[4])):
                    sums[number] += float(value)
            elif program is not None:
                self._program = clean(program[1])
            elif lost is not None:
                self.lost += int(lost[1])

    def as_list(self) -> List[Dict[str, Any]]:
        """The most frequent ones."""
        return [
            {"name": name, "call": call, "calls": int(calls), "errors": int(errors), **_seconds(seconds=took)}
            for (name, call), (calls, errors, took) in _largest(self._calls, 0)
        ]


def _row(sums: Sums, key: Tuple[str, ...], size: int) -> List[float]:
    if key not in sums and len(sums) >= _MOST_NAMES:
        key = (OTHERS,) * len(key)
    return sums.setdefault(key, [0.0] * size)


def _largest(sums: Sums, column: int) -> List[Tuple[Tuple[str, ...], List[float]]]:
    return sorted(sums.items(), key=lambda entry: (-entry[1][column], entry[0]))[:_LISTED]


def _seconds(**milliseconds: float) -> Dict[str, float]:
    return {name: round(value / 1000, 6) for name, value in milliseconds.items()}
