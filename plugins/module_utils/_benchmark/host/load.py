# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the load of a measurement, on the host under test, a client or the controller; and its version. PRIVATE."""

from __future__ import annotations

import hashlib
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from typing import IO, Any, Callable, Mapping, NamedTuple, Optional, Tuple

from .processes import send_line

_MOST_OUTPUT = 64 * 1024 + 1  # bytes of the load's output: by the last of them it is known to be too long
_SET_CHILD_SUBREAPER = 36  # include/uapi/linux/prctl.h
_LOOK = 0.2  # seconds between two checks of the watcher, which cost the load nothing
# A shell leads the process group to the end, because a program of another user in its place, as with sudo, could
# not be killed. It starts the load only when the guard knows the group.
_LEADER = ("/bin/sh", "-c", 'read -r _ || exit 1\nexec </dev/null\neval "$1"\nexit $?', "sh")
# It reads the group's number, and kills the group when the pipe closes because this process was killed.
_GUARD = ("/bin/sh", "-c", 'read -r group && { read -r _ || kill -KILL "-$group"; }')
# What a shell's command can name a program with; a quoted word that is none of a file is passed over.
_WORD = re.compile(r"[A-Za-z0-9_./+@%-]+", re.ASCII)
_MOST_PROGRAMS = 8
_MOST_BYTES = 16 * 1024 * 1024  # of a program; of a larger one its size counts too
_DIGITS = 12


class Ran(NamedTuple):
    """One run of the load."""

    code: int  # the exit status; negative: the signal that ended it
    output: str
    message: str  # the end of its standard error
    seconds: float
    end: str  # "" | "time" (it took too long) | "gone" (the experiment ended meanwhile)
    version: str = ""  # of what ran, as far as it is known
    histograms: Mapping[str, Any] = {}  # of a benchmark: how long its answers took
    span: Optional[Tuple[float, float]] = None  # when it ran, by this host's clock: seconds since 1970


def run(command: str, limit: float, goes_on: Callable[[], bool]) -> Ran:
    """Run a shell command for at most `limit` seconds, and as long as the experiment `goes_on`.

    It has a session of its own, so that whatever it started ends with it. It ends with this process too, even when
    a lost connection kills that.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages, _guard() as guard:
        with subprocess.Popen(
            [*_LEADER, command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=messages,
            start_new_session=True,
        ) as process:
            send_line(guard, f"{process.pid}\n")
            began, started = time.time(), time.monotonic()
            watcher = _Watcher(process.pid, started + limit, goes_on)
            watcher.start()
            try:
                send_line(process, "\n")
                process.wait()  # not with a timeout, by which Python looks only 20 times a second
                seconds = time.monotonic() - started
            finally:
                watcher.ended.set()
                watcher.join()
                _kill(process.pid)
                send_line(guard, "\n")
        texts = _text(output, 0), _text(messages, -400)
        return Ran(process.returncode, *texts, seconds, watcher.why, span=(began, began + seconds))


def adopt_orphans() -> None:
    """Become the parent of what the load leaves when a process of it ends, such as the child of a server that saves.

    So it is known to be a part of the load, even if it has a session of its own. Without ctypes, as in a very small
    Python, it counts as another program.
    """
    with suppress(ImportError, AttributeError, OSError):
        import ctypes

        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def is_awaited() -> bool:
    """Whether somebody still reads what this process writes: a lost connection closes the other end."""
    output = select.poll()
    output.register(1, 0)
    return not output.poll(0)


class _Watcher(threading.Thread):
    """A thread that ends a load that takes too long, or whose experiment has ended; `why` is as `Ran.end`."""

    def __init__(self, group: int, until: float, goes_on: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.why = ""
        self._group, self._until, self._goes_on = group, until, goes_on

    def run(self) -> None:
        while not self.ended.wait(_LOOK):
            self.why = "time" if time.monotonic() >= self._until else "" if self._goes_on() else "gone"
            if self.why:
                _kill(self._group)
                return


def _kill(group: int) -> None:
    """Kill a process group; a process of another user, as with sudo, may be left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _guard() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        _GUARD,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _text(stream: IO[bytes], start: int) -> str:
    """The text of a stream from `start`, without NUL; negative: so many bytes before its end."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size + start, 0) if start < 0 else 0)
    return stream.read(_MOST_OUTPUT).decode("utf-8", "replace").replace("\0", "")


def identify(command: str) -> str:
    """Each program that the command names, with the first digits of its SHA-256; empty if it names none.

    A file that isn't executable counts if it says by `#!` that it is a script, so no data of the load do.
    """
    found = {}
    for word in dict.fromkeys(_WORD.findall(command)):
        path = shutil.which(word) or word
        with suppress(OSError, ValueError):
            digest = _digest(path)
            if digest:
                found[os.path.basename(path)] = digest
        if len(found) == _MOST_PROGRAMS:
            break
    return ", ".join(f"{name} {digest}" for name, digest in found.items())


def _digest(path: str) -> str:
    status = os.stat(path)  # before it is opened: to open a device may do something
    if not stat.S_ISREG(status.st_mode):
        return ""
    with open(path, "rb") as stream:
        content = stream.read(_MOST_BYTES)
    if not (content.startswith(b"#!") or status.st_mode & 0o111):
        return ""
    size = b"" if status.st_size == len(content) else str(status.st_size).encode()
    return hashlib.sha256(content + size).hexdigest()[:_DIGITS]
