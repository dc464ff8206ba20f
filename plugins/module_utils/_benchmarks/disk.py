# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a disk does with requests of several shapes, on a file of its own: fio. PRIVATE to the collection."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import (
    Benchmark,
    Command,
    Limits,
    Options,
    Result,
    Run,
    Tool,
    at,
    json_of,
    larger,
    seconds_option,
    smaller,
    unreadable,
    whole,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain

FIO = Tool("fio", ("--version",), {"debian": "fio", "fedora": "fio", "amzn": "fio", "suse": "fio"})
_MIB = 1024 * 1024
STEPS = tuple(range(10, 130, 10))  # percent of the most that the disk does
_ERRORS = 4096  # the kernel's numbers of errors are below it
_LATE = 3  # times the soonest median of a sweep: beyond it, answers come late
_SLOWEST = 20  # MiB a second at which fio may write the file before it measures


class Shape(NamedTuple):
    """Requests of one kind."""

    pattern: str  # fio's rw
    kib: int  # of one request
    depth: int  # requests in flight
    read_percent: int = 0  # of randrw


# The shapes of StorageReview's profiles, with as many requests in flight as it had threads.
SHAPES: Mapping[str, Shape] = {
    "random_read": Shape("randread", 4, 128),
    "random_write": Shape("randwrite", 4, 64),
    "sequential_read": Shape("read", 64, 16),
    "sequential_write": Shape("write", 64, 8),
    "mixed_90": Shape("randrw", 8, 32, 90),
    "mixed_80": Shape("randrw", 8, 32, 80),
}


def _check(options: Options) -> None:
    if options["sweep"] and SHAPES[options["shape"]].read_percent:
        raise NearmetalError(
            f"benchmark.options of disk has sweep with the shape {options['shape']}; it takes the shapes that only read"
            " or only write"
        )


def _limits(options: Options) -> Limits:
    written = options["size_mib"] / _SLOWEST
    return Limits(seconds=2 * options["seconds"] + written + 60, disk_mib=options["size_mib"])


def _run(options: Options, _folder: str) -> Run:
    return Run((_command(options),))


def _then(outputs: Sequence[str], options: Options) -> Tuple[Command, ...]:
    """After the run that found the most, runs at shares of it."""
    if not options["sweep"] or len(outputs) > 1:
        return ()
    (direction,) = _directions(SHAPES[options["shape"]])
    most = larger("fio", "rate", at("fio", _job(outputs[0]), direction, "iops"), "1/s").value
    return tuple(_command(options, max(1, round(most * percent / 100))) for percent in STEPS)


def _command(options: Options, rate: int = 0) -> Command:
    shape = SHAPES[options["shape"]]
    seconds = max(options["seconds"] / (1 + len(STEPS)), 1.0) if options["sweep"] else options["seconds"]
    words = [
        *("fio", f"--name={options['shape']}", "--filename=file", f"--size={options['size_mib']}M"),
        *(f"--rw={shape.pattern}", f"--bs={shape.kib}k", f"--iodepth={shape.depth}", "--ioengine=libaio"),
        *("--direct=1", "--time_based", f"--runtime={seconds:g}", "--ramp_time=1", "--randrepeat=0"),
        # With threads all of fio is in the session of its leader.
        *("--thread", "--group_reporting", "--output-format=json", "--percentile_list=50:99"),
    ]
    words += [f"--rwmixread={shape.read_percent}"] if shape.read_percent else []
    words += ["--overwrite=1"] if "write" in shape.pattern else []  # otherwise it writes into holes
    words += [f"--rate_iops={rate}"] if rate else []
    return Command(tuple(words))


def _read(outputs: Sequence[str], options: Options) -> Result:
    shape = SHAPES[options["shape"]]
    job = _job(outputs[0])
    metrics: List[Metric] = []
    for direction in _directions(shape):
        if shape.pattern == direction:
            found = larger("fio", f"{direction}_bandwidth", at("fio", job, direction, "bw_bytes"), "MiB/s")
            metrics.append(found._replace(value=found.value / _MIB))
        else:
            metrics.append(larger("fio", f"{direction}_rate", at("fio", job, direction, "iops"), "1/s"))
        metrics.append(_percentile(job, direction, "99"))
    details: Dict[str, Any] = {"shape": options["shape"], "disks": _disks(outputs[0])}
    if options["sweep"]:
        steps = _steps(outputs[1:], _directions(shape)[0])
        details["steps"] = steps
        knee = _knee(steps)
        if knee is not None:
            metrics.append(larger("fio", "knee", knee["rate"], "1/s"))
        details["knee_percent"] = None if knee is None else knee["percent"]
    return Result(tuple(metrics), details)


def _steps(outputs: Sequence[str], direction: str) -> List[Dict[str, Any]]:
    if len(outputs) != len(STEPS):
        raise unreadable("fio", f"{len(outputs)} of {len(STEPS)} runs")
    jobs = [_job(output) for output in outputs]
    return [
        {
            "percent": percent,
            "rate": round(larger("fio", "rate", at("fio", job, direction, "iops"), "1/s").value, 1),
            "p50_ms": round(_percentile(job, direction, "50").value, 4),
            "p99_ms": round(_percentile(job, direction, "99").value, 4),
        }
        for percent, job in zip(STEPS, jobs)
    ]


def _knee(steps: Sequence[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """The last step before half of the answers come late; None where the last step is early enough, too.

    By medians, because single late answers, by which a 99th percentile jumps, also come at low rates.
    """
    soonest = min(step["p50_ms"] for step in steps)
    early = [step for step in steps if step["p50_ms"] <= _LATE * soonest]
    return early[-1] if early[-1] is not steps[-1] else None


def _job(output: str) -> Any:
    job = at("fio", json_of("fio", output), "jobs", 0)
    error = whole("fio", at("fio", job, "error"))
    if error:
        raise NearmetalError(f"fio couldn't measure: {os.strerror(error) if error < _ERRORS else error}")
    return job


def _percentile(job: Any, direction: str, percent: str) -> Metric:
    nanoseconds = at("fio", job, direction, "clat_ns", "percentile", f"{percent}.000000")
    found = smaller("fio", f"{direction}_p{percent}", nanoseconds, "ms")
    return found._replace(value=found.value / 1e6)


def _disks(output: str) -> List[str]:
    found = json_of("fio", output)
    disks = found.get("disk_util") if isinstance(found, dict) else None  # absent on some file systems
    return [plain(str(disk.get("name"))) for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []


def _directions(shape: Shape) -> Sequence[str]:
    if shape.pattern == "randrw":
        return ("read", "write")
    return ("read",) if "read" in shape.pattern else ("write",)


DISK = Benchmark(
    name="disk",
    question="How many requests of one shape does a disk answer in a second, and how soon?",
    limitation="what the file system's cache adds, which it goes around",
    options={
        "seconds": seconds_option(10.0),
        "shape": {"type": "str", "choices": list(SHAPES), "default": "random_read"},
        "size_mib": {"type": "int", "range": (16, 1048576), "default": 1024},
        "directory": {"type": "str"},
        "sweep": {"type": "bool", "default": False},
    },
    tools=(FIO,),
    limits=_limits,
    run=_run,
    read=_read,
    check=_check,
    then=_then,
)
