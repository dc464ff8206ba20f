# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a host reads and writes its memory, and what fresh memory costs: sysbench, stress-ng. PRIVATE."""

from __future__ import annotations

import math
import re
from typing import Dict, List, Sequence, Tuple

from ..._error import NearmetalError
from .benchmark import Benchmark, Command, Limits, Machine, Options, Reader, Result, Run, Tool, seconds_option

_SYSBENCH, _STRESS_NG, PROGRAM = "sysbench", "stress-ng", "page_fault"
_OF_SYSBENCH, _OF_STRESS_NG, _OF_PROGRAM = Reader(_SYSBENCH), Reader(_STRESS_NG), Reader(PROGRAM)
BLOCKS, STREAM, FRESH = "blocks", "stream", "fresh"
_OPERATIONS = ("read", "write")
_STACK_MIB = 8  # of each thread
_LEAST_KIB = 65536  # of a block whose host names no cache
_CACHES = 4  # STREAM's own rule: its arrays have at least four times the size of the last cache
_FRESH_KIB = 512  # what ebizzy copies by default; smaller than a huge page of x86
_SHORTEST_STREAM = 6.0  # seconds; stress-ng gives no rate of less than 4.5, and fills its arrays first
_RATE = re.compile(r"MiB transferred \(([0-9.]{1,40}) MiB/sec\)", re.ASCII)
# Newer versions give a rate of reads and one of writes, older ones their sum.
_STREAM_RATE = re.compile(r"memory rate: ([0-9.]{1,40}) MB(?: read)?/sec(?:, ([0-9.]{1,40}) MB write/sec)?", re.ASCII)
_TOOLS = {
    BLOCKS: (Tool(_SYSBENCH, ("--version",), {"debian": "sysbench", "fedora": "sysbench", "suse": "sysbench"}),),
    STREAM: (
        Tool(
            _STRESS_NG,
            ("--version",),
            {"debian": "stress-ng", "fedora": "stress-ng", "amzn": "stress-ng", "suse": "stress-ng"},
        ),
    ),
    FRESH: (),
}


def _check(options: Options) -> None:
    if options["load"] == STREAM and options["seconds"] < _SHORTEST_STREAM:
        raise NearmetalError(
            f"benchmark.options of memory has seconds: {options['seconds']:g} with load: stream; stress-ng measures at"
            f" least {_SHORTEST_STREAM:g}"
        )


def _fit(options: Options, machine: Machine) -> Options:
    beyond = max(_LEAST_KIB, _CACHES * machine.cache_kib)
    sizes = {BLOCKS: beyond, STREAM: beyond, FRESH: _FRESH_KIB}
    return {
        **options,
        "block_kib": options.get("block_kib") or sizes[options["load"]],
        "cache_kib": machine.cache_kib,
    }


def _limits(options: Options) -> Limits:
    arrays = 3 if options["load"] == STREAM else 1
    blocks = math.ceil(options["threads"] * (arrays * options.get("block_kib", _LEAST_KIB) / 1024 + _STACK_MIB))
    return Limits(2 * options["seconds"] + 60, memory_mib=1024 + blocks, needs_mib=128 + blocks)


def _run(options: Options, _folder: str) -> Run:
    threads, kib = options["threads"], options.get("block_kib", _LEAST_KIB)
    if options["load"] == FRESH:
        return Run((Command((PROGRAM, f"{options['seconds']:g}", str(threads), str(kib)), own=True),))
    if options["load"] == STREAM:
        # It makes each array four times as large as the size of the cache that it is given, divided among the threads.
        size = f"--stream-l3-size={max(1, kib * threads // _CACHES)}K"
        seconds = f"--timeout={round(options['seconds'])}s"
        return Run((Command((_STRESS_NG, f"--stream={threads}", size, seconds), messages=True),))
    shared = [
        *(_SYSBENCH, "memory", f"--time={max(1, round(options['seconds'] / 2))}", f"--threads={threads}"),
        *(f"--memory-block-size={kib}K", "--memory-total-size=1000T", f"--memory-scope={_SCOPE}"),
    ]
    return Run(tuple(Command((*shared, f"--memory-oper={operation}", "run")) for operation in _OPERATIONS))


def _read(outputs: Sequence[str], options: Options) -> Result:
    details = {"load": options["load"], "block_kib": options.get("block_kib"), "threads": options["threads"]}
    if options["load"] == FRESH:
        return _read_fresh(outputs[0], options, details)
    # 0 is no cache, and None a host that wasn't asked.
    cache = options.get("cache_kib")
    details["beyond_the_cache"] = options.get("block_kib", 0) > cache if cache else None
    if options["load"] == STREAM:
        return _read_stream(outputs[0], options, details)
    metrics = []
    for operation, output in zip(_OPERATIONS, outputs):
        match = _RATE.search(output)
        if match is None:
            raise _OF_SYSBENCH.unreadable("no rate in MiB/sec")
        metrics.append(_OF_SYSBENCH.larger(operation, _OF_SYSBENCH.number(match[1]), "MiB/s"))
    return Result(tuple(metrics), details)


def _read_stream(output: str, options: Options, details: Dict[str, object]) -> Result:
    rates = _STREAM_RATE.findall(output)
    if len(rates) != options["threads"]:
        raise _OF_STRESS_NG.unreadable(f"{len(rates)} memory rates of {options['threads']} threads")
    sums: List[Tuple[str, float]] = []
    for name, place in (("read", 0), ("write", 1)):
        given = [_OF_STRESS_NG.number(rate[place]) for rate in rates if rate[place]]
        if len(given) == len(rates):
            sums.append((name, sum(given)))
    if len(sums) == 1:
        sums = [("stream", sums[0][1])]
    # stress-ng writes MB, and divides by 2 to the power of 20.
    return Result(tuple(_OF_STRESS_NG.larger(name, value, "MiB/s") for name, value in sums), details)


def _read_fresh(output: str, options: Options, details: Dict[str, object]) -> Result:
    document = _OF_PROGRAM.json(output)
    seconds, user, system = (
        _OF_PROGRAM.number(_OF_PROGRAM.value(document, name)) for name in ("seconds", "user_seconds", "system_seconds")
    )
    blocks, faults = (_OF_PROGRAM.whole(_OF_PROGRAM.value(document, name)) for name in ("blocks", "page_faults"))
    if not (blocks and 0 < seconds < 1e6 and user + system > 0):
        raise _OF_PROGRAM.unreadable("it wrote no block")
    mib = blocks * options.get("block_kib", _FRESH_KIB) / 1024
    details["page_faults_per_mib"] = round(faults / mib, 1)
    details["system_percent"] = round(100 * system / (user + system), 1)
    return Result((_OF_PROGRAM.larger("fresh", mib / seconds, "MiB/s"),), details)


_SCOPE = "local"  # each thread has a block of its own, so that blocks of any size add up

MEMORY = Benchmark(
    name="memory",
    options={
        "seconds": seconds_option(10.0),
        "load": {"type": "str", "choices": [BLOCKS, STREAM, FRESH], "default": BLOCKS},
        "block_kib": {"type": "int", "range": (4, 4194304)},
        "threads": {"type": "int", "range": (1, 1024), "default": 1},
    },
    tools=(*_TOOLS[BLOCKS], *_TOOLS[STREAM]),
    limits=_limits,
    run=_run,
    read=_read,
    check=_check,
    needs=lambda options: _TOOLS[options["load"]],
    fit=_fit,
)
