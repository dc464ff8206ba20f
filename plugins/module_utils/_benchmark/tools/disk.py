# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a disk does with requests of several shapes, on a file or on a raw device: fio. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._error import NearmetalError
from ..._prove.statistics.metrics import Metric
from ..._words import plain, shown
from . import histogram
from .benchmark import Benchmark, Command, Limits, Options, Reader, Result, Run, Tool, seconds_option

FIO = Tool("fio", ("--version",), {"debian": "fio", "fedora": "fio", "amzn": "fio", "suse": "fio"})
_READER = Reader(FIO.program)
_MIB = 1024 * 1024
STEPS = tuple(range(10, 130, 10))  # percent of the most that the disk does
_ERRORS = 4096  # the kernel's numbers of errors are below it
_SLOWEST = 20  # MiB a second at which fio may write the file before it measures
_ABOVE = 1.05  # times the most: a step that does more shows that the first run didn't find the most
_DEVICE = re.compile(r"/dev/[A-Za-z0-9][A-Za-z0-9!:@._+=-]*(/[A-Za-z0-9][A-Za-z0-9!:@._+=-]*)*", re.ASCII)


class Shape(NamedTuple):
    """Requests of one kind."""

    pattern: str  # fio's rw
    kib: int  # of one request
    depth: int  # requests in flight
    read_percent: int = 0  # of randrw

    @property
    def writes(self) -> bool:
        """Whether it changes what is on the disk."""
        return self.pattern not in ("read", "randread")


# The shapes of StorageReview's profiles. It published neither the sizes nor the shares of its databases and desktops,
# which are replayed traces. In flight is what its own figures have for each disk: rate x time / disks, which for its 30
# volumes and for its 8 local disks comes to the same. 8 KiB is Oracle's and SQL Server's page. Desktops on EBS ended
# at the 1.14 GB/s that 64 KiB requests had there, so 42,893 requests a second have 26 KiB on average, and 34,500 have
# 32 KiB; on the local disks their logins moved no more than these could write, so most of it was written.
SHAPES: Mapping[str, Shape] = {
    "random_read": Shape("randread", 4, 128),
    "random_write": Shape("randwrite", 4, 64),
    "sequential_read": Shape("read", 64, 16),
    "sequential_write": Shape("write", 64, 8),
    "sql": Shape("randread", 8, 32),
    "mixed_90": Shape("randrw", 8, 32, 90),
    "mixed_80": Shape("randrw", 8, 32, 80),
    "oracle": Shape("randrw", 8, 32, 70),
    "oracle_90": Shape("randrw", 8, 22, 90),
    "oracle_80": Shape("randrw", 8, 22, 80),
    "desktop_boot": Shape("randrw", 24, 16, 90),
    "desktop_login": Shape("randrw", 32, 8, 20),
    "desktop_monday": Shape("randrw", 32, 16, 20),
}


def parts(names: Optional[str]) -> List[str]:
    """The devices, or their ids, of an option that may have several of them."""
    return [name.strip() for name in names.split(",")] if names else []


def _check(options: Options) -> None:
    if options["sweep"] and options["rate"]:
        raise NearmetalError(
            "benchmark.options of disk has sweep and rate: a sweep chooses its rates, so leave one out"
        )
    directory = options.get("directory")
    if directory is not None and not (directory.startswith("/") and directory.isprintable()):
        raise NearmetalError(
            f"benchmark.options of disk has directory: {shown(directory)}; it must be the absolute path of a"
            " directory on the disk"
        )
    device = options.get("device")
    if device is not None and not all(map(_DEVICE.fullmatch, device.split(","))):
        raise NearmetalError(
            f"benchmark.options of disk has device: {shown(device)}; it must be the path of a block device,"
            " such as /dev/nvme1n1, or several, divided by commas"
        )
    if device is not None and options.get("directory") is not None:
        raise NearmetalError(
            "benchmark.options of disk has device and directory: it measures a raw device or a file, so leave one out"
        )
    if options.get("write_device") is not None and device is None:
        raise NearmetalError(
            "benchmark.options of disk has write_device without device: it is the id of that device, which a shape that"
            " writes needs"
        )


def _limits(options: Options) -> Limits:
    if options.get("device"):
        return Limits(seconds=2 * options["seconds"] + 60)
    written = options["size_mib"] / _SLOWEST
    return Limits(seconds=2 * options["seconds"] + written + 60, disk_mib=options["size_mib"])


def _then(outputs: Sequence[str], options: Options) -> Tuple[Command, ...]:
    """After the run that found the most, runs at shares of it."""
    if not options["sweep"] or len(outputs) > 1:
        return ()
    most = _rate(_job(outputs[0]), SHAPES[options["shape"]])
    return tuple(_command(options, max(1, round(most * percent / 100))) for percent in STEPS)


def _command(options: Options, rate: int = 0) -> Command:
    shape = SHAPES[options["shape"]]
    seconds = max(options["seconds"] / (1 + len(STEPS)), 1.0) if options["sweep"] else options["seconds"]
    devices, rate = parts(options.get("device")), rate or options["rate"]
    words = [
        *("fio", f"--size={options['size_mib']}M"),
        *(f"--rw={shape.pattern}", f"--bs={shape.kib}k", f"--iodepth={shape.depth}", "--ioengine=libaio"),
        *("--direct=1", "--time_based", f"--runtime={seconds:g}", "--ramp_time=1", "--randrepeat=0"),
        # With threads all of fio is in the session of its leader.
        *("--thread", "--group_reporting", "--output-format=json", "--percentile_list=50:99"),
    ]
    words += [f"--rwmixread={shape.read_percent}"] if shape.read_percent else []
    if devices:
        words += [] if shape.writes else ["--readonly"]
    elif "write" in shape.pattern:
        words.append("--overwrite=1")  # otherwise it writes into holes
    if rate:  # of each device, and of reads and writes where there are both
        rate, share = max(2, round(rate / max(1, len(devices)))), shape.read_percent
        reads = min(rate - 1, max(1, round(rate * share / 100)))
        words.append(f"--rate_iops={f'{reads},{rate - reads}' if share else rate}")
    for place in devices or ["file"]:  # in a list of files fio takes a colon for the next one
        words += [f"--name={options['shape']}", "--filename=" + place.replace(":", r"\:")]
    return Command(tuple(words), as_root=bool(devices))


def _read(outputs: Sequence[str], options: Options) -> Result:
    shape = SHAPES[options["shape"]]
    job = _job(outputs[0])
    metrics: List[Metric] = []
    for direction in _directions(shape):
        if shape.pattern == direction:
            rate = _READER.larger(f"{direction}_bandwidth", _READER.value(job, direction, "bw_bytes"), "MiB/s")
            metrics.append(rate._replace(value=rate.value / _MIB))
        else:
            metrics.append(_READER.larger(f"{direction}_rate", _READER.value(job, direction, "iops"), "1/s"))
        metrics.append(_percentile(job, direction, "99"))
    several = " on each device" if len(parts(options.get("device"))) > 1 else ""
    in_flight = f"{shape.depth} requests in flight{several}"
    details: Dict[str, Any] = {
        "shape": options["shape"],
        "disks": _disks(outputs[0]),
        "offered": f"{options['rate']} requests a second" if options["rate"] else in_flight,
    }
    for direction in _directions(shape):
        mean = _READER.number(_READER.value(job, direction, "clat_ns", "mean"))
        details[f"{direction}_mean_ms"] = round(mean / 1e6, 4)
        details[f"{direction}_p50_ms"] = round(_percentile(job, direction, "50").value, 4)
    if options["sweep"]:
        steps = _steps(outputs[1:], shape)
        details["steps"] = steps
        # The last step before half of the answers come late; none where the last step is early enough, too.
        early = steps[histogram.last_early([step["p50_ms"] for step in steps])]
        knee = early if early is not steps[-1] else None
        if knee is not None:
            metrics.append(_READER.larger("knee", knee["rate"], "1/s"))
        details["knee_percent"] = None if knee is None else knee["percent"]
        details["above_100"] = _above(_rate(job, shape), steps)
    return Result(tuple(metrics), details)


def _rate(job: Any, shape: Shape) -> float:
    """Requests of all kinds a second."""
    rates = (_READER.value(job, direction, "iops") for direction in _directions(shape))
    return sum(_READER.larger("rate", rate, "1/s").value for rate in rates)


def _steps(outputs: Sequence[str], shape: Shape) -> List[Dict[str, Any]]:
    if len(outputs) != len(STEPS):
        raise _READER.unreadable(f"{len(outputs)} of {len(STEPS)} runs")
    jobs = [_job(output) for output in outputs]
    (direction, *_writes) = _directions(shape)
    return [
        {
            "percent": percent,
            "rate": round(_rate(job, shape), 1),
            "p50_ms": round(_percentile(job, direction, "50").value, 4),
            "p99_ms": round(_percentile(job, direction, "99").value, 4),
        }
        for percent, job in zip(STEPS, jobs)
    ]


def _above(most: float, steps: Sequence[Dict[str, Any]]) -> str:
    """What the steps found that asked for more than the first run had."""
    best = max(step["rate"] for step in steps if step["percent"] > 100)
    lead = f"asked for more, the disk did {100 * best / most:.0f} % of the first run's rate"
    if best > _ABOVE * most:
        return (
            f"{lead}, so that run did not reach the disk's maximum: measure longer, and twice on a volume that bursts"
        )
    return f"{lead}: that rate is the maximum with so many requests in flight"


def _job(output: str) -> Any:
    job = _READER.value(_READER.json(output), "jobs", 0)
    error = _READER.whole(_READER.value(job, "error"))
    if error:
        raise NearmetalError(f"fio couldn't measure: {os.strerror(error) if error < _ERRORS else error}")
    return job


def _percentile(job: Any, direction: str, percent: str) -> Metric:
    nanoseconds = _READER.value(job, direction, "clat_ns", "percentile", f"{percent}.000000")
    metric = _READER.smaller(f"{direction}_p{percent}", nanoseconds, "ms")
    return metric._replace(value=metric.value / 1e6)


def _disks(output: str) -> List[str]:
    document = _READER.json(output)
    disks = document.get("disk_util") if isinstance(document, dict) else None  # absent on some file systems
    return [plain(str(disk.get("name"))) for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []


def _directions(shape: Shape) -> Sequence[str]:
    if shape.pattern == "randrw":
        return ("read", "write")
    return ("read",) if "read" in shape.pattern else ("write",)


DISK = Benchmark(
    name="disk",
    options={
        "seconds": seconds_option(10.0),
        "shape": {"type": "str", "choices": list(SHAPES), "default": "random_read"},
        "size_mib": {"type": "int", "range": (16, 1048576), "default": 1024},
        "directory": {"type": "str"},
        "device": {"type": "str"},
        "write_device": {"type": "str"},
        "sweep": {"type": "bool", "default": False},
        "rate": {"type": "int", "range": (0, 100000000), "default": 0},
    },
    tools=(FIO,),
    limits=_limits,
    run=lambda options, _folder: Run((_command(options),)),
    read=_read,
    check=_check,
    then=_then,
    disks=True,
)
