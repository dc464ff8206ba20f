# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reading the clock costs on a lab host, measured by a native program, and whether the kernel is asked for it.

The source measured the same with a program of its own: 12.00 s against 2.00 s, and under strace
2,001,912 system calls against 53 (AWS, 2017).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from lab import cache, process
from lab.error import LabError
from lab.host import Host
from lab.progress import Progress

SOURCE = Path(__file__).with_name("clock_read.c")
READS = 1_000
BATCHES = 100
_LIMIT_SECONDS = 600.0
_SCRIPT = f"""
set -e
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
install -m 755 /dev/stdin "$folder/clock_read"
cat /sys/devices/system/clocksource/clocksource0/current_clocksource
"$folder/clock_read" {BATCHES} {READS}
strace -f -c -U calls,name -o "$folder/calls" "$folder/clock_read" 1 {READS} >"$folder/time"
cat "$folder/calls"
"""


@dataclasses.dataclass(frozen=True)
class ClockCost:
    """`source`: the kernel's current clock source. `ns_per_read`: in the fastest of 100 batches of 1,000 reads.

    `system_calls`: all that strace counts in a run of 1,000 reads, the program's start and end included;
    `clock_calls`: those of them that read the clock.
    """

    source: str
    ns_per_read: float
    system_calls: int
    clock_calls: int


def measure(host: Host, progress: Progress | None = None) -> ClockCost:
    """Copy the program to the host, run it, and take it away."""
    progress = progress or Progress()
    entry = cache.key(cache.sources(SOURCE))
    program = cache.obtain("tools", entry, _compile, progress) / "clock_read"
    with progress.step(f"{host.name}: measuring what reading the clock costs"):
        answer = host.run(_SCRIPT, stdin=program.read_bytes(), seconds=_LIMIT_SECONDS)
    return _read(answer)


def _read(answer: str) -> ClockCost:
    source, fastest, *table = answer.splitlines()
    rows = [line.split() for line in table]
    calls = {row[1]: int(row[0]) for row in rows if len(row) > 1 and row[0].isdigit()}
    if "total" not in calls:
        raise LabError(f"strace printed no total:\n{answer}")
    clock_calls = calls.get("gettimeofday", 0) + calls.get("clock_gettime", 0)
    return ClockCost(source, float(fastest), calls["total"], clock_calls)


def _compile(folder: Path) -> None:
    # Static, because the host's C library may be older than this machine's.
    argv = ["gcc", "-O2", "-static", "-o", str(folder / "clock_read"), str(SOURCE)]
    process.run(argv, folder / "gcc.log")
