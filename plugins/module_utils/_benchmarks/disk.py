# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a disk does with requests of several shapes, on a file of its own: fio. PRIVATE to the collection."""

from __future__ import annotations

from typing import List, Mapping, NamedTuple, Sequence

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
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain

FIO = Tool("fio", ("--version",), {"debian": "fio", "fedora": "fio", "amzn": "fio", "suse": "fio"})
_MIB = 1024 * 1024
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


def _limits(options: Options) -> Limits:
    written = options["size_mib"] / _SLOWEST
    return Limits(seconds=2 * options["seconds"] + written + 60, disk_mib=options["size_mib"])


def _run(options: Options, _folder: str) -> Run:
    shape = SHAPES[options["shape"]]
    words = [
        *("fio", f"--name={options['shape']}", "--filename=file", f"--size={options['size_mib']}M"),
        *(f"--rw={shape.pattern}", f"--bs={shape.kib}k", f"--iodepth={shape.depth}", "--ioengine=libaio"),
        *("--direct=1", "--time_based", f"--runtime={options['seconds']:g}", "--ramp_time=1", "--randrepeat=0"),
        # With threads all of fio is in the session of its leader.
        *("--thread", "--group_reporting", "--output-format=json", "--percentile_list=50:99:99.9"),
    ]
    if shape.read_percent:
        words.append(f"--rwmixread={shape.read_percent}")
    return Run((Command(tuple(words)),))


def _read(outputs: Sequence[str], options: Options) -> Result:
    found = json_of("fio", outputs[0])
    job = at("fio", found, "jobs", 0)
    if at("fio", job, "error") != 0:
        raise unreadable("fio", f"its job ended with error {plain(str(at('fio', job, 'error')))}")
    shape = SHAPES[options["shape"]]
    metrics: List[Metric] = []
    for direction in _directions(shape):
        part = at("fio", job, direction)
        sequential = shape.pattern == direction
        if sequential:
            bandwidth = at("fio", part, "bw_bytes")
            whole = larger("fio", f"{direction}_bandwidth", bandwidth, "MiB/s")
            metrics.append(whole._replace(value=whole.value / _MIB))
        else:
            metrics.append(larger("fio", f"{direction}_rate", at("fio", part, "iops"), "1/s"))
        p99 = smaller("fio", f"{direction}_p99", at("fio", part, "clat_ns", "percentile", "99.000000"), "ms")
        metrics.append(p99._replace(value=p99.value / 1e6))
    disks = at("fio", found, "disk_util") if isinstance(found, dict) and "disk_util" in found else []
    names = (
        [plain(str(disk.get("name"))) for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []
    )
    return Result(tuple(metrics), {"shape": options["shape"], "disks": names})


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
    },
    tools=(FIO,),
    limits=_limits,
    run=_run,
    read=_read,
)
