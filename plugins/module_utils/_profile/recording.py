# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recording by perf, in a folder that is removed whatever happens. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from .._benchmark.host import refusals
from .._benchmark.host.processes import Session, program_path
from .._benchmark.tools.benchmark import Tool
from .._error import NearmetalError
from .._facts.host import Host
from .._parse import os_release
from .._words import clipped, counted, plain
from .folding import Folder
from .waiting import Calls, Waits

FOLDER = "/var/tmp"  # in memory on no distribution, unlike /tmp
CYCLES, CLOCK = "cycles", "cpu-clock"
_BYTES = 1200  # of a sample with a deep stack
_MEMORY_MIB = 2048  # perf keeps the symbols of all programs that it saw
_ENDS = 60.0  # seconds that perf may take to end, on a host that is busy
_PERF = Tool("perf", ("--version",), {"debian": "linux-perf", "amzn": "perf", "fedora": "perf", "suse": "perf"})
# Without the digests of binaries, whose files perf would copy: what was recorded never leaves the host.
_RECORD = ("perf", "record", "-a", "-g", "-B", "-N", "-o", "perf.data")
# Both look at each switch of a thread and each system call, which costs a busy host some percent: for a short time.
_WAITS = 2.0
_SCHED = ("perf", "sched", "record", "-g", "-B", "-N", "--max-size=128M", "-o", "sched.data")
_HISTORY = ("perf", "sched", "timehist", "-i", "sched.data", "--state", "--max-stack", "4")
_TRACE = ("perf", "trace", "-a", "-s", "-o", "/dev/stdout")
_SCRIPT = ("perf", "script", "-i", "perf.data", "--no-inline", "-F", "comm,tid,cpu,event,ip,sym,dso")
_LOST = re.compile(r"lost ([0-9]{1,12}) (?:chunks|events|samples)", re.IGNORECASE | re.ASCII)


class Recording(NamedTuple):
    """What perf recorded."""

    folder: Folder
    event: str  # cycles | cpu-clock
    version: str
    lost: int
    seconds: float  # that the recording took
    waits: Dict[str, Any]  # what else was asked for: `waits` and `calls`
    refused: List[str]  # what of it perf didn't do, in sentences


def require_perf(host: Host) -> None:
    """Raises NearmetalError where perf isn't installed, with the package that has it."""
    if program_path(_PERF.program) is None:
        release = os_release.parse(host.text("/etc/os-release") or "")
        if release.get("ID") == "ubuntu":
            kernel = host.line("/proc/sys/kernel/osrelease") or "$(uname -r)"
            raise NearmetalError(f"perf isn't installed: run `apt-get install linux-tools-{plain(kernel)}` on the host")
        refusals.require_tool(host, _PERF)


def require_room(seconds: float, frequency: int) -> None:
    """Raises NearmetalError where what perf may write doesn't fit into half of what is free."""
    room = os.statvfs(FOLDER)
    needed = (os.cpu_count() or 1) * frequency * seconds * _BYTES
    if needed > room.f_bavail * room.f_frsize / 2:
        raise NearmetalError(
            f"{FOLDER} has too little room for a recording of up to {needed / 2**20:.0f} MiB, half of what is free"
            " there: set fewer seconds or a lower frequency"
        )


def record(
    seconds: float, frequency: int, begin: Callable[[], None], goes_on: Callable[[], bool], waits: bool = False
) -> Recording:
    """Record all CPUs for so many seconds after `begin`, and fold what was recorded. Raises NearmetalError."""
    with Session(FOLDER, _MEMORY_MIB, "profile") as session:
        until = time.monotonic() + _ENDS
        version = clipped(session.answer(["perf", "--version"], until).strip(), 80)
        said = session.answer(["perf", "stat", "-x,", "-a", "-e", CYCLES, "--", "sleep", "0.1"], until, as_root=True)
        event = CYCLES if re.search(r"^[1-9][0-9]*,", said, re.MULTILINE) else CLOCK
        begin()
        began = time.monotonic()
        said = session.complete(
            [*_RECORD, "-F", str(frequency), "-e", event, "--", "sleep", f"{seconds:g}"],
            began + seconds + _ENDS,
            goes_on,
            as_root=True,
            with_messages=True,
        )
        took = time.monotonic() - began
        found, refused = _waits(session, goes_on) if waits else ({}, [])
        folder = Folder()
        session.stream(_SCRIPT, folder.add, time.monotonic() + 20 * seconds + 300, goes_on)
        return Recording(folder, event, version, sum(map(int, _LOST.findall(said))), round(took, 3), found, refused)


def _waits(session: Session, goes_on: Callable[[], bool]) -> Tuple[Dict[str, Any], List[str]]:
    """For what threads wait, and their system calls; and in sentences what of it perf isn't allowed to see."""
    found: Dict[str, Any] = {}
    refused = []
    waits, calls = Waits(), Calls()
    sleep = ("--", "sleep", f"{_WAITS:g}")
    try:
        until = time.monotonic() + _WAITS + _ENDS
        session.complete([*_SCHED, *sleep], until, goes_on, as_root=True, with_messages=True)
        session.stream(_HISTORY, waits.add, until + 300, goes_on)
        found["waits"] = waits.as_dict()
    except NearmetalError as error:
        refused.append(f"for what threads wait isn't known: {error}")
    try:
        session.stream([*_TRACE, *sleep], calls.add, time.monotonic() + _WAITS + _ENDS, goes_on)
        found["calls"] = calls.as_list()
        refused += [f"perf lost {counted(calls.lost, 'event')} of the system calls"] if calls.lost else []
    except NearmetalError as error:
        refused.append(f"the system calls aren't known: {error}")
    return found, refused
