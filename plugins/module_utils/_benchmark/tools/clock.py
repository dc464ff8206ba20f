# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reading the clock costs. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from ..._words import plain
from .benchmark import Benchmark, Command, Options, Reader, Result, Run, seconds_option

PROGRAM = "clock_read"
_READER = Reader(PROGRAM)


def _read(outputs: Sequence[str], _options: Options) -> Result:
    document = _READER.json(outputs[0])
    calls, source = _READER.value(document, "system_calls"), _READER.value(document, "clock_source")
    if calls is not None and (isinstance(calls, bool) or not isinstance(calls, int) or calls < 0):
        raise _READER.unreadable(f"{plain(str(calls))} system calls")
    details: Dict[str, Any] = {
        "clock_source": plain(str(source or "unknown")),
        "system_calls_per_1000_reads": calls,  # None: nobody may trace a process
    }
    return Result((_READER.smaller("read", _READER.value(document, "read_ns"), "ns"),), details)


CLOCK = Benchmark(
    name="clock",
    options={"seconds": seconds_option(2.0)},
    tools=(),
    run=lambda options, _folder: Run((Command((PROGRAM, f"{options['seconds']:g}"), own=True, as_root=True),)),
    read=_read,
)
