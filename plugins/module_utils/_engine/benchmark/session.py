# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes and the folder of one run of a benchmark: both end with this process, whatever ends it. PRIVATE."""

from __future__ import annotations

import os
import resource
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, Callable, List, NamedTuple, Optional, Sequence, Type

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain

NOBODY = 65534
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOST_OUTPUT = 1024 * 1024  # bytes
_LOOK = 0.05  # seconds between two looks at what runs
_STARTS = 20.0  # seconds that a server may take to listen
# It reads the numbers of sessions. When the pipe closes, because the run is over or because this process was killed,
# it kills every process of these sessions, and removes the folder.
_GUARD = r"""
folder=$1 sessions=" "
while read -r number; do sessions="$sessions$number "; done
left=1
while [ "$left" ]; do
    left=
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        set -- ${line##*) }
        [ "$1" = Z ] && continue
        case $sessions in *" $4 "*) left=1; kill -KILL "${line%% *}" ;; esac
    done
    [ "$left" ] && sleep 0.05
done
rm -rf -- "$folder"
"""
# The leader of a session starts its program only when the guard knows the session. The shell stays, because a program
# of another user in its place could not be killed by ours.
_LEADER = r"""
read -r _ || exit 1
exec </dev/null
ulimit -d "$1" || exit 1
shift
"$@"
exit $?
"""


class Usage(NamedTuple):
    """What programs used that ran to their end."""

    user_seconds: float
    system_seconds: float
    page_faults: int


class Session:
    """A context in which programs run in one folder. At its end none of them is left, and the folder is gone.

    What they used is known afterwards: until then no leader is waited for, so that no other process gets its number,
    and is killed in its place.
    """

    def __init__(self, parent: str, memory_mib: int) -> None:
        self.folder = os.path.join(parent, f"nearmetal-benchmark-{secrets.token_hex(8)}")
        self._memory_kib = memory_mib * 1024
        self.used = Usage(0.0, 0.0, 0)
        self._processes: List["subprocess.Popen[bytes]"] = []
        self._guard: Optional["subprocess.Popen[bytes]"] = None

    def __enter__(self) -> "Session":
        # The guard is there before the folder, so that no moment is left in which nobody would remove it.
        self._guard = self._new_guard()
        try:
            os.mkdir(self.folder, 0o700)
            if os.geteuid() == 0:
                os.chown(self.folder, NOBODY, NOBODY)
        except OSError as error:
            self._end()
            raise NearmetalError(
                f"{os.path.dirname(self.folder)} takes no folder for the benchmark: {os.strerror(error.errno or 0)}"
            ) from None
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._end()

    def write(self, name: str, text: str) -> None:
        """Write a file into the folder, readable by the programs."""
        path = os.path.join(self.folder, name)
        with open(path, "x", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(path, 0o644)

    def serve(self, argv: Sequence[str], port: int) -> None:
        """Start a server as nobody, and wait until it listens. Raises NearmetalError."""
        with tempfile.TemporaryFile() as output:
            process = self._start(argv, output, as_root=False)
            until = time.monotonic() + _STARTS
            while not _listens(port):
                if _ended(process) is not None:
                    raise NearmetalError(f"{argv[0]} ended at once: {_last_line(output)}")
                if time.monotonic() > until:
                    raise NearmetalError(f"{argv[0]} didn't listen on port {port} within {_STARTS:.0f} s")
                time.sleep(_LOOK)

    def complete(self, argv: Sequence[str], until: float, goes_on: Callable[[], bool], as_root: bool) -> str:
        """Run a program to its end, and return its output.

        Raises NearmetalError when it fails, or doesn't end by then (monotonic time).
        """
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
            code = self._wait(self._start(argv, output, as_root, messages), argv[0], until, goes_on)
            if code:
                reason = _last_line(messages) or _last_line(output) or "no message"
                raise NearmetalError(f"{argv[0]} failed with code {code}: {reason}")
            return _text(output)

    def answer(self, argv: Sequence[str], until: float) -> str:
        """What a program says about itself, whatever its exit code is."""
        with tempfile.TemporaryFile() as output:
            self._wait(self._start(argv, output, as_root=False), argv[0], until, lambda: True)
            return _text(output)

    def _wait(
        self, process: "subprocess.Popen[bytes]", name: str, until: float, goes_on: Callable[[], bool]
    ) -> Optional[int]:
        while True:
            code = _ended(process)
            if code is not None:
                return code
            if time.monotonic() > until:
                raise NearmetalError(f"{name} didn't end within its time: it was stopped")
            if not goes_on():
                raise NearmetalError(f"{name} was stopped, because the run ended meanwhile")
            time.sleep(_LOOK)

    def _start(
        self, argv: Sequence[str], output: IO[bytes], as_root: bool, messages: Optional[IO[bytes]] = None
    ) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LEADER, "sh", str(self._memory_kib), *argv_for(argv, as_root)],
            cwd=self.folder,
            env={"PATH": PATH, "LC_ALL": "C", "HOME": self.folder, "TMPDIR": self.folder},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=messages or output,
            start_new_session=True,
        )
        self._processes.append(process)
        _tell(self._guard, f"{process.pid}\n")
        _tell(process, "\n")
        return process

    def _new_guard(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _end(self) -> None:
        guard = self._guard
        while guard is not None:
            _close(guard)
            if guard.wait() == 0:
                break
            guard = self._new_guard()  # somebody killed the guard
            for process in self._processes:
                _tell(guard, f"{process.pid}\n")
        used = [_reap(process) for process in self._processes]
        self.used = Usage(
            round(sum(each.ru_utime for each in used), 3),
            round(sum(each.ru_stime for each in used), 3),
            sum(each.ru_minflt + each.ru_majflt for each in used),
        )


def argv_for(argv: Sequence[str], as_root: bool) -> List[str]:
    """The command line by which the program runs as nobody, if we are root and it need not be."""
    if as_root or os.geteuid() != 0:
        return list(argv)
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", *argv]


def found(program: str) -> Optional[str]:
    """Where a program is; None if it isn't installed."""
    return shutil.which(program, path=PATH)


def _listens(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def _ended(process: "subprocess.Popen[bytes]") -> Optional[int]:
    """The exit code of a leader, which stays a zombie; negative: the signal that ended it; None: it runs."""
    state = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if state is None:
        return None
    return state.si_status if state.si_code == os.CLD_EXITED else -state.si_status


def _reap(process: "subprocess.Popen[bytes]") -> "resource.struct_rusage":
    _close(process)
    _pid, process.returncode, used = os.wait4(process.pid, 0)
    return used


def _close(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


def _tell(process: Optional["subprocess.Popen[bytes]"], line: str) -> None:
    if process is not None and process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.write(line.encode())
            process.stdin.flush()


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    data = stream.read(_MOST_OUTPUT + 1)
    if len(data) > _MOST_OUTPUT:
        raise NearmetalError(f"the benchmark printed more than {_MOST_OUTPUT} bytes, which none does")
    return data.decode("utf-8", "replace")


def _last_line(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - 4096, 0))
    lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    return plain(lines[-1]) if lines else ""
