# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start programs that end with the process that started them, unless `outlive` is set."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from lab import deps
from lab.error import LabError

_GRACE_SECONDS = 20.0
INTERVAL_SECONDS = 0.05
_UNPRINTABLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^\t\x20-\x7e\xa0-\U0010ffff]")
_LAUNCHED: dict[int, subprocess.Popen[bytes]] = {}


def start(
    argv: Sequence[str], log: Path, *, outlive: bool, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, its output appended to `log`.

    Ctrl-C in the terminal doesn't reach it, so its starter has to end it. With `outlive` false the kernel also
    kills it when this process dies without a chance to do so.
    """
    guarded = [*argv] if outlive else ["setpriv", "--pdeathsig", "KILL", "--", *argv]
    surroundings = {**os.environ, **(env or {}), "LC_ALL": "C.UTF-8", "PATH": deps.search_path()}
    with log.open("ab") as output:
        return subprocess.Popen(
            guarded,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            start_new_session=True,
            env=surroundings,
        )


def launch(argv: Sequence[str], log: Path, *, outlive: bool, cwd: Path, env: Mapping[str, str] | None = None) -> int:
    """Start a program that `reap` waits for later; its process id."""
    process = start(argv, log, outlive=outlive, cwd=cwd, env=env)
    _LAUNCHED[process.pid] = process
    return process.pid


def reap(pid: int) -> None:
    """Wait for a launched program, if this process launched it."""
    process = _LAUNCHED.pop(pid, None)
    if process is not None:
        process.wait()


def end_in(folder: Path, programs: Collection[str]) -> None:
    """End the processes of these programs that were started in a folder of ours."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            started_here = (entry / "cwd").readlink() == folder and (entry / "exe").readlink().name in programs
        except OSError:
            started_here = False
        if started_here:
            os.kill(int(entry.name), signal.SIGKILL)
            reap(int(entry.name))


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program and everything in its session: politely, so that it removes what is its own, then for good."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        wait_until(lambda: process.poll() is not None, _GRACE_SECONDS)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(argv: Sequence[str], log: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a program to its end; a failure shows the end of its output."""
    process = start(argv, log, outlive=False, cwd=cwd, env=env)
    try:
        code = process.wait()
    finally:
        end(process)
    if code:
        raise LabError(f"{argv[0]} failed with status {code}; the end of its output:\n{tail(log)}")


def tail(log: Path, lines: int = 40) -> str:
    """The last lines of a log, without control characters, indented."""
    try:
        text = log.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        return f"  ({log.name}: {error.strerror})"
    kept = [_UNPRINTABLE.sub("", line) for line in text.splitlines()]
    return "\n".join(f"  {line}" for line in kept[-lines:]) or f"  ({log.name} is empty)"


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (proc(5), field 22); null when it's gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def stopped(pid: int) -> bool:
    """Whether each thread of a process has come to the halt that SIGSTOP asks for."""
    try:
        states = [
            path.read_text(encoding="ascii", errors="replace") for path in Path(f"/proc/{pid}/task").glob("*/stat")
        ]
    except OSError:
        # A thread that ends meanwhile is not stopped.
        return False
    return all(state.rpartition(")")[2].split()[0] == "T" for state in states)


def wait_until(ready: Callable[[], bool], seconds: float, interval: float = INTERVAL_SECONDS) -> bool:
    """Ask until true or until the time is over."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True
