# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of a job while it runs, and the end of one that hangs."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

# A test of `make test-all` takes a quarter of that at most, even beside other work; a file of mutants may take half.
SILENT_SECONDS = 2400.0
_HUNG = "\nIt printed nothing for {:.0f} s and was ended.\n"
_LAST_WORDS_SECONDS = 5.0  # in which pytest writes where each of its threads is


def follow(process: "subprocess.Popen[bytes]", log: Path, show: bool, silent: float = SILENT_SECONDS) -> str:
    """Write the output of a process to its log, and to the terminal if `show`; the output.

    A process that prints nothing for `silent` seconds is ended, with all that it started.
    """
    assert process.stdout is not None
    output, shown = b"", 0
    with process.stdout, log.open("wb") as file:
        while True:
            ready = select.select([process.stdout], [], [], silent)[0]
            data = os.read(process.stdout.fileno(), 65536) if ready else _end(process, silent)
            file.write(data)
            file.flush()
            output += data
            if show:
                shown += _print_lines(output[shown:], last=not data)
            if not data or not ready:
                return output.decode("utf-8", "replace")


def _print_lines(data: bytes, last: bool) -> int:
    """Print the whole lines, and the rest of the `last`; how many bytes these are."""
    end = len(data) if last else data.rfind(b"\n") + 1
    for line in data[:end].decode("utf-8", "replace").splitlines():
        print(f"    {line}", flush=True)
    return end


def _end(process: "subprocess.Popen[bytes]", silent: float) -> bytes:
    """End a process and all that it started; what it printed meanwhile, and why it was ended."""
    assert process.stdout is not None
    started = descendants(process.pid)
    os.kill(process.pid, signal.SIGABRT)  # pytest then says where it was
    data, ready = _HUNG.format(silent).encode(), True
    while ready:
        ready = bool(select.select([process.stdout], [], [], _LAST_WORDS_SECONDS)[0])
        more = os.read(process.stdout.fileno(), 65536) if ready else b""
        data, ready = data + more, bool(more)
    for pid in (process.pid, *started):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return data


def descendants(pid: int) -> "list[int]":
    """The processes below this one."""
    found: "list[int]" = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for child in map(int, path.read_text(encoding="ascii").split()):
                found += [child, *descendants(child)]
    return found
