# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""UnixBench, whose rows say what calls of the kernel, processes and files cost. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..._error import NearmetalError
from ..._prove.statistics.metrics import Metric
from .benchmark import Benchmark, Command, Limits, Options, Reader, Result, Run, Tool, require_path, seconds_option

_TOOL = "UnixBench"
_READER = Reader(_TOOL)


class Row(NamedTuple):
    """One row of the index."""

    test: str  # what its program calls it
    title: str  # in its report
    seconds: int  # of one pass
    often: bool  # it is passed as often as `iterations`; the others a third of that
    metric: str  # empty: in the details alone, because prove takes at most eight figures


ROWS = (
    Row("dhry2reg", "Dhrystone 2 using register variables", 10, True, "dhrystone"),
    Row("whetstone-double", "Double-Precision Whetstone", 10, True, "whetstone"),
    Row("execl", "Execl Throughput", 30, False, "execl"),
    Row("fstime", "File Copy 1024 bufsize 2000 maxblocks", 30, False, ""),
    Row("fsbuffer", "File Copy 256 bufsize 500 maxblocks", 30, False, ""),
    Row("fsdisk", "File Copy 4096 bufsize 8000 maxblocks", 30, False, ""),
    Row("pipe", "Pipe Throughput", 10, True, "pipe"),
    Row("context1", "Pipe-based Context Switching", 10, True, "context_switch"),
    Row("spawn", "Process Creation", 30, False, "process"),
    Row("syscall", "System Call Overhead", 10, True, "system_call"),
    Row("shell1", "Shell Scripts (1 concurrent)", 60, False, ""),
    Row("shell8", "Shell Scripts (8 concurrent)", 60, False, ""),
)
PURE = ("dhry2reg", "whetstone-double")  # they compute, and call the kernel for nothing
MOST_MOVED_PERCENT = 3.0  # three hosts of one type differed by at most 2.2 in these rows (a blog's table of 2014)
_TESTS = [row.test for row in ROWS]
_INDEX = re.compile(r"^System Benchmarks Index Score(?: \(Partial Only\))? +([0-9.]{1,20})$", re.ASCII | re.MULTILINE)
_LINE = re.compile(r"^(\S.{0,60}?) {2,}[0-9.]{1,20} +[0-9.]{1,20} +([0-9.]{1,20})$", re.ASCII | re.MULTILINE)
_VERSION = re.compile(r"BYTE UNIX Benchmarks \(Version ([0-9.]{1,20})\)", re.ASCII)
# Its programs write into their own folder, so they run from a copy in the benchmark's.
_START = 'cp -R -- "$1" copy && cd copy && shift && exec ./Run "$@"'


def _check(options: Options) -> None:
    require_path("unixbench", options, "the folder with UnixBench's program Run")
    often = options["iterations"]
    rare = max(1, (often + 1) // 3)
    needed = sum(row.seconds * (often if row.often else rare) for row in ROWS if row.test in _chosen(options))
    if options["seconds"] < needed:
        raise NearmetalError(
            f"benchmark.options of unixbench has seconds: {options['seconds']:g}; its tests have times of their own,"
            f" and these take {needed}: allow more, or choose fewer `tests`"
        )


def _chosen(options: Options) -> List[str]:
    return options["tests"] or _TESTS


def _run(options: Options, _folder: str) -> Run:
    settings = ("-c", str(options["copies"]), "-i", str(options["iterations"]), *_chosen(options))
    return Run((Command(("sh", "-c", _START, "sh", options["path"], *settings)),))


def _read(outputs: Sequence[str], options: Options) -> Result:
    titles = {row.title: row.test for row in ROWS}
    rows: Dict[str, float] = {}
    for title, index in _LINE.findall(outputs[0]):
        if titles.get(title) in _chosen(options):
            rows[titles[title]] = _READER.number(index)
    index = _INDEX.search(outputs[0])
    absent = [test for test in _chosen(options) if test not in rows]
    if index is None or absent:
        raise _READER.unreadable(f"no row of {', '.join(absent)}" if absent else "no index score")
    metrics: List[Metric] = [_READER.larger("index", _READER.number(index[1]), "index")]
    metrics += [_READER.larger(row.metric, rows[row.test], "index") for row in ROWS if row.metric and row.test in rows]
    version = _VERSION.search(outputs[0])
    details: Dict[str, Any] = {
        "copies": options["copies"],
        "iterations": options["iterations"],
        "version": version[1] if version else None,
        "rows": rows,
    }
    return Result(tuple(metrics), details)


def compare(first: Mapping[str, float], second: Mapping[str, float]) -> Dict[str, Any]:
    """What changed between the rows of two runs, in percent, and whether the rows of pure computing stayed.

    Where these moved, the two runs had different CPUs, or other programs beside them, and say nothing of the kernel.
    """
    changes = {
        test: round(100 * (second[test] / first[test] - 1), 1) for test in _TESTS if test in first and test in second
    }
    changed_tests = [test for test in PURE if abs(changes.get(test, 0)) > MOST_MOVED_PERCENT]
    return {
        "percent": changes,
        "moved": changed_tests,
        "comparable": None if not any(test in changes for test in PURE) else not changed_tests,
    }


UNIXBENCH = Benchmark(
    name="unixbench",
    options={
        "seconds": seconds_option(900.0),
        "path": {"type": "str"},
        "tests": {"type": "list", "elements": "str", "choices": _TESTS, "default": []},
        "copies": {"type": "int", "range": (1, 1024), "default": 1},
        "iterations": {"type": "int", "range": (1, 30), "default": 1},
    },
    tools=(Tool(_TOOL, (), {}),),
    limits=lambda options: Limits(2 * options["seconds"] + 60, memory_mib=2048, disk_mib=64 * (1 + options["copies"])),
    run=_run,
    read=_read,
    check=_check,
    needs=lambda options: (Tool(f"{options['path'].rstrip('/')}/Run", (), {}),),
)
