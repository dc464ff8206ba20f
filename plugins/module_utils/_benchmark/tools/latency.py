# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How late a waiting thread is woken: cyclictest. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, Sequence

from ..._number import is_number
from .benchmark import Benchmark, Command, Options, Reader, Result, Run, Tool, seconds_option
from .histogram import histogram_of, percentile

_TOOL = "cyclictest"
_READER = Reader(_TOOL)
_FILE = "result.json"
_MOST_US = 10000  # of the histogram; later wake-ups count in max alone


def _run(options: Options, _folder: str) -> Run:
    # By itself cyclictest keeps the CPUs from sleeping deeply while it measures, whatever the host's own setting.
    measure = [
        *(_TOOL, f"--json={_FILE}", "-q", "--mlockall", "--smp", "--default-system"),
        *("-p", "90", "-i", str(options["interval_us"])),
        *("-h", str(_MOST_US), "--histfile=histogram", "-D", str(max(1, round(options["seconds"])))),
    ]
    # A thread with a priority of real time needs root.
    return Run((Command(tuple(measure), as_root=True, result=_FILE),))


def _read(outputs: Sequence[str], options: Options) -> Result:
    threads = _READER.value(_READER.json(outputs[0]), "thread")
    if not isinstance(threads, dict) or not threads:
        raise _READER.unreadable("it measured no thread")
    counts: Dict[int, int] = {}
    cycles, latest = 0, 0
    for thread in threads.values():
        cycles += _READER.whole(_READER.value(thread, "cycles"))
        latest = max(latest, _READER.whole(_READER.value(thread, "max")))
        histogram = _READER.value(thread, "histogram")
        if not isinstance(histogram, dict):
            raise _READER.unreadable("histogram isn't a mapping")
        for us, count in histogram.items():
            if not (isinstance(us, str) and is_number(us)):
                raise _READER.unreadable("histogram has a time that isn't a number")
            counts[int(us)] = counts.get(int(us), 0) + _READER.whole(count)
    beyond = max(0, cycles - sum(counts.values()))  # the histogram; they are the latest ones
    return Result(
        (
            _READER.smaller("p99", percentile(histogram_of([*counts.items(), (latest, beyond)]), 99), "us"),
            _READER.smaller("max", latest, "us"),
        ),
        {"interval_us": options["interval_us"], "threads": len(threads), "wake_ups": cycles},
    )


LATENCY = Benchmark(
    name="latency",
    options={
        "seconds": seconds_option(10.0),
        "interval_us": {"type": "int", "range": (100, 1000000), "default": 1000},
    },
    tools=(Tool(_TOOL, ("--help",), {"debian": "rt-tests", "fedora": "realtime-tests"}, has="--default-system"),),
    run=_run,
    read=_read,
)
