# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many records a program copies and searches that asks for fresh memory each time: ebizzy. PRIVATE."""

from __future__ import annotations

import re
from typing import Any, Dict, Sequence

from .benchmark import Benchmark, Command, Limits, Options, Reader, Result, Run, Tool, require_path, seconds_option

_TOOL = "ebizzy"
_READER = Reader(_TOOL)
# How it asks for memory: as the C library likes, by mmap for each record, or never by mmap.
_ALLOCATIONS = {"library": (), "mmap": ("-m",), "heap": ("-M",)}
_RATE = re.compile(r"^([0-9]{1,20}) records/s$", re.ASCII | re.MULTILINE)
_TIME = re.compile(r"^(real|user|sys) +([0-9.]{1,20}) s$", re.ASCII | re.MULTILINE)
# What it says of its own settings. Runs with other settings are no comparison.
_SETTING = re.compile(r"^(chunks|chunk_size|threads) ([0-9]{1,10})$", re.ASCII | re.MULTILINE)


def _limits(options: Options) -> Limits:
    # A thread holds the copy of one record, 512 KiB by default, and its stack.
    threads = options.get("threads", 0)
    return Limits(2 * options["seconds"] + 60, memory_mib=1024 + 2 * threads, needs_mib=128 + threads)


def _run(options: Options, _folder: str) -> Run:
    threads = ("-t", str(options["threads"])) if "threads" in options else ()
    seconds = ("-v", "-S", str(max(1, round(options["seconds"]))))
    return Run((Command((options["path"], *seconds, *threads, *_ALLOCATIONS[options["allocation"]])),))


def _read(outputs: Sequence[str], options: Options) -> Result:
    rate, times = _RATE.search(outputs[0]), dict(_TIME.findall(outputs[0]))
    if rate is None or len(times) < 3:
        raise _READER.unreadable("no lines with records/s, real, user and sys")
    user, system = _READER.number(times["user"]), _READER.number(times["sys"])
    details: Dict[str, Any] = {"allocation": options["allocation"]}
    details.update((name, int(value)) for name, value in _SETTING.findall(outputs[0]))
    details["user_seconds"], details["system_seconds"] = user, system
    if user + system > 0:
        details["system_percent"] = round(100 * system / (user + system), 1)
    return Result((_READER.larger("records", _READER.number(rate[1]), "1/s"),), details)


EBIZZY = Benchmark(
    name="ebizzy",
    options={
        "seconds": seconds_option(10.0),
        "path": {"type": "str"},
        "threads": {"type": "int", "range": (1, 4096)},
        "allocation": {"type": "str", "choices": list(_ALLOCATIONS), "default": "library"},
    },
    tools=(Tool(_TOOL, (), {}),),
    limits=_limits,
    run=_run,
    read=_read,
    check=lambda options: require_path("ebizzy", options, "the program ebizzy"),
    needs=lambda options: (Tool(options["path"], (), {}),),
)
