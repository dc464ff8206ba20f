# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a function in a process of its own under strace, which counts its system calls or makes one of them fail.

The process is forked from this one with everything imported, and strace takes
hold of it before it begins: only the function's own calls are counted.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Callable, Tuple

# What changes a file system or starts a program; each call of these is a place to fail at.
CHANGING = (
    "write",
    "pwrite64",
    "ftruncate",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "fchmod",
    "ioctl",
    "vfork",
    "clone",
    "clone3",
    "execve",
)
KILLED = -9
LIMIT_SECONDS = 60


def strace() -> str:
    """The program; an error says that it is missing."""
    found = shutil.which("strace")
    if found is None:
        raise FileNotFoundError("these tests need strace: apt-get install strace")
    return found


def run(function: Callable[[], int], log: Path, *words: str) -> int:
    """The function's exit code, KILLED when a signal ended it; `words` are options of strace."""
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(ready, 1)
        os.close(ready)
        code = 99
        try:
            code = function()
        finally:
            if sys.exc_info()[0] is not None:
                log.with_suffix(".error").write_text(traceback.format_exc())
            os._exit(code)
    os.close(ready)
    tracer = subprocess.Popen([strace(), "-qq", "-o", str(log), "-p", str(child), *words], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + LIMIT_SECONDS
        while _tracer(child) == 0 and time.monotonic() < end:
            os.sched_yield()
        os.write(go, b"x")
        os.close(go)
        _pid, status = os.waitpid(child, 0)
        tracer.wait(LIMIT_SECONDS)
    finally:
        tracer.kill()
        tracer.wait()
    return KILLED if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def counted(function: Callable[[], int], log: Path) -> "Counter[str]":
    """How often the function calls what."""
    code = run(function, log)
    if code:
        raise RuntimeError(f"it fails without a fault already: {code}\n{_error(log)}")
    return Counter(re.findall(r"^(\w+)\(", log.read_text(errors="replace"), re.MULTILINE))


def outcome(function: Callable[[], int], log: Path, call: str, number: int, fault: str) -> Tuple[int, str]:
    """Exit code and traceback when the `number`-th `call` meets a fault: error=EIO, signal=KILL."""
    log.with_suffix(".error").unlink(missing_ok=True)
    code = run(function, log, "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={number}")
    return code, _error(log)


def _error(log: Path) -> str:
    path = log.with_suffix(".error")
    return path.read_text() if path.exists() else ""


def _tracer(pid: int) -> int:
    found = re.search(r"^TracerPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found.group(1)) if found else 0
