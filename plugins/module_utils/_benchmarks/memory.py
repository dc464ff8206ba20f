# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a host reads and writes its memory: sysbench. PRIVATE to the collection."""

from __future__ import annotations

import math
import re
from typing import Sequence

from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import (
    Benchmark,
    Command,
    Limits,
    Options,
    Result,
    Run,
    Tool,
    larger,
    number_of,
    seconds_option,
    unreadable,
)

_TOOL = "sysbench"
_OPERATIONS = ("read", "write")
_STACK_MIB = 8  # of each thread
_RATE = re.compile(r"MiB transferred \(([0-9.]{1,40}) MiB/sec\)", re.ASCII)


def _limits(options: Options) -> Limits:
    blocks = math.ceil(options["threads"] * (options["block_kib"] / 1024 + _STACK_MIB))
    return Limits(2 * options["seconds"] + 60, memory_mib=1024 + blocks, needs_mib=128 + blocks)


def _run(options: Options, _folder: str) -> Run:
    shared = [
        *(_TOOL, "memory", f"--time={max(1, round(options['seconds'] / 2))}", f"--threads={options['threads']}"),
        *(f"--memory-block-size={options['block_kib']}K", "--memory-total-size=1000T", f"--memory-scope={_SCOPE}"),
    ]
    return Run(tuple(Command((*shared, f"--memory-oper={operation}", "run")) for operation in _OPERATIONS))


def _read(outputs: Sequence[str], options: Options) -> Result:
    metrics = []
    for operation, output in zip(_OPERATIONS, outputs):
        found = _RATE.search(output)
        if found is None:
            raise unreadable(_TOOL, "no rate in MiB/sec")
        metrics.append(larger(_TOOL, operation, number_of(_TOOL, found[1]), "MiB/s"))
    return Result(tuple(metrics), {"block_kib": options["block_kib"], "threads": options["threads"]})


_SCOPE = "local"  # each thread has a block of its own, so that blocks of any size add up

MEMORY = Benchmark(
    name="memory",
    question="How fast does a host read and write its memory?",
    limitation="what one access costs; blocks that fit into a cache measure the cache",
    options={
        "seconds": seconds_option(10.0),
        "block_kib": {"type": "int", "range": (1, 4194304), "default": 65536},
        "threads": {"type": "int", "range": (1, 1024), "default": 1},
    },
    tools=(Tool(_TOOL, ("--version",), {"debian": "sysbench", "fedora": "sysbench"}),),
    limits=_limits,
    run=_run,
    read=_read,
)
