# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes and the folder of a benchmark or a profile: both end with this process, whatever ends it. PRIVATE."""

from __future__ import annotations

import os
import resource
import secrets
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import IO, Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type

from ..._error import NearmetalError
from ..._number import process_numbers
from ..._parse import json_text, listening
from ..._words import plain

NOBODY = 65534
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOST_OUTPUT = 1024 * 1024  # bytes
_LINES_AT_ONCE = 4096
_LOOK = 0.05  # seconds between two looks at what runs
_STARTS = 20.0  # seconds that a server may take to listen
_PROC = "/proc"
_LOOKS = 600  # times that the guard looks at processes that don't end, until it gives them up
_GUARDS = 5  # that are started, one after the other, when somebody kills them
_ENDS = 300.0  # seconds that a guard may take; removing files on a server that is gone takes forever
_OWN, _SHARED = "root", "programs"  # the folders inside the run's folder, by who may write there
# It reads the numbers of sessions. When the pipe closes, because the run is over or because this process was killed,
# it kills every process of these sessions, and removes the folder. It prints what it can't end, and fails if anything
# is left. A process that waits for a disk ends only when the disk answers, which may be never.
_GUARD = r"""
folder=$1 proc=$2 looks=$3 sessions=" " left=start looked=0 code=0
while read -r number; do sessions="$sessions$number "; done
while [ "$left" ] && [ "$looked" -lt "$looks" ]; do
    before=$left left=
    for stat in "$proc"/[0-9]*/stat; do
        read -r line <"$stat" || continue
        set -- ${line##*) }
        [ "$1" = Z ] && continue
        case $sessions in *" $4 "*) left="$left ${line%% *}"; kill -KILL "${line%% *}" ;; esac
    done 2>/dev/null
    [ "$left" = "$before" ] && looked=$((looked + 1)) || looked=0
    [ "$left" ] && sleep 0.05
done
[ "$left" ] && code=1 && echo "processes that don't end:$left"
rm -rf -- "$folder" || code=1
exit $code
"""
# The leader of a session starts its program only when the guard knows the session. The shell stays, because a program
# of another user in its place could not be killed. If the host runs out of memory, the benchmark ends first.
_LEADER = r"""
read -r _ || exit 1
exec </dev/null
echo 1000 >/proc/self/oom_score_adj
ulimit -d "$1" || exit 1
ulimit -Sn "$(ulimit -Hn)"
shift
"$@"
exit $?
"""


def finished(argv: Sequence[str], descriptor: int, seconds: float) -> "subprocess.CompletedProcess[bytes]":
    """Run a program as root to its end, with a descriptor of this process, in a session of its own.

    Raises OSError, or TimeoutExpired after these seconds.
    """
    return subprocess.run(
        list(argv),
        env={"PATH": PATH, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=(descriptor,),
        timeout=seconds,
        check=False,
    )


class Usage(NamedTuple):
    """What the programs that ran to their end used."""

    user_seconds: float
    system_seconds: float
    page_faults: int


class Session:
    """A context in which programs run in one folder. At its end none of them is left, and the folder is gone.

    What they used is known afterwards: until then no leader is waited for, so that no other process gets its number,
    and is killed in its place.
    """

    def __init__(self, parent: str, memory_mib: int, purpose: str = "benchmark") -> None:
        self._purpose = purpose
        self._outer = os.path.join(parent, f"nearmetal-{purpose}-{secrets.token_hex(8)}")
        # Other daemons of the host may be nobody too: no file of theirs is in a folder in which root works.
        self.folder = os.path.join(self._outer, _SHARED)
        self._own_folder = os.path.join(self._outer, _OWN)
        self._memory_kib = memory_mib * 1024
        self.used = Usage(0.0, 0.0, 0)
        self._processes: List["subprocess.Popen[bytes]"] = []
        self._commands: List["subprocess.Popen[bytes]"] = []
        self._guard: Optional["subprocess.Popen[bytes]"] = None
        self._said: Optional[IO[bytes]] = None

    def __enter__(self) -> "Session":
        # The guard is there before the folder, so that no moment is left in which nobody would remove it.
        self._said = tempfile.TemporaryFile()
        self._guard = self._new_guard()
        try:
            self._make_folders()
        except OSError as error:
            self._end()
            raise NearmetalError(
                f"no folder for the {self._purpose} can be made in {os.path.dirname(self._outer)}:"
                f" {os.strerror(error.errno or 0)}"
            ) from None
        return self

    def _make_folders(self) -> None:
        os.mkdir(self._outer, 0o700)
        # By its descriptor, because the parent may belong to somebody who puts another folder in its place.
        outer = os.open(self._outer, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in (_OWN, _SHARED):
                os.mkdir(name, 0o700, dir_fd=outer)
            if os.geteuid() == 0:
                os.chown(_SHARED, NOBODY, NOBODY, dir_fd=outer, follow_symlinks=False)
            os.fchmod(outer, 0o711)
        finally:
            os.close(outer)

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        failure = self._end()
        if failure and (error is None or isinstance(error, NearmetalError)):
            raise NearmetalError(f"{error}; {failure}" if error else failure) from error

    def write(self, name: str, text: str) -> None:
        """Write a file into the programs' folder, readable by them."""
        with open(os.path.join(self.folder, name), "x", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), 0o644)
            stream.write(text)

    def serve(self, argv: Sequence[str], port: int, cpus: Sequence[int] = ()) -> None:
        """Start a server as nobody, on these CPUs, and wait until it listens. Raises NearmetalError."""
        with tempfile.TemporaryFile() as output:
            process = self._start(argv, output, as_root=False, cpus=cpus)
            until = time.monotonic() + _STARTS
            while not _listens(port, process.pid):
                if _ended(process) is not None:
                    raise NearmetalError(f"{argv[0]} ended at once: {_last_line(output)}")
                if time.monotonic() > until:
                    raise NearmetalError(f"{argv[0]} didn't listen on port {port} within {_STARTS:.0f} s")
                time.sleep(_LOOK)

    def complete(
        self,
        argv: Sequence[str],
        until: float,
        goes_on: Callable[[], bool],
        as_root: bool,
        result: str = "",
        with_messages: bool = False,
        cpus: Sequence[int] = (),
    ) -> str:
        """Run a program to its end, and return its output, or the file `result` that it wrote as root.

        With `with_messages` its standard error is part of its output. Raises NearmetalError when it fails, or doesn't
        end by then (monotonic time).
        """
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
            process = self._start(argv, output, as_root, output if with_messages else messages, cpus)
            self._commands.append(process)
            code = self._wait(process, argv[0], until, goes_on)
            if code:
                reason = _error_in_json(output) or _last_line(messages) or _last_line(output) or "no message"
                raise NearmetalError(f"{argv[0]} failed with code {code}: {reason}")
            return self._written(argv[0], result) if result else _text(output)

    def _written(self, name: str, result: str) -> str:
        try:
            number = os.open(os.path.join(self._own_folder, result), os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise NearmetalError(f"{name} wrote no {result}: {os.strerror(error.errno or 0)}") from None
        with open(number, "rb") as stream:
            return _text(stream)

    def stream(
        self, argv: Sequence[str], take: Callable[[Iterable[str]], None], until: float, goes_on: Callable[[], bool]
    ) -> None:
        """Run a program as root to its end, and hand on the lines of its output as they come. Raises NearmetalError."""
        reader, writer = os.pipe()
        with open(reader, encoding="utf-8", errors="replace") as lines, tempfile.TemporaryFile() as messages:
            with open(writer, "wb") as output:
                process = self._start(argv, output, True, messages)
            for part in iter(lambda: list(islice(lines, _LINES_AT_ONCE)), []):
                take(part)
                if time.monotonic() > until or not goes_on():
                    raise NearmetalError(f"{argv[0]} {argv[1]} was stopped: it took too long, or the run had ended")
            if self._wait(process, argv[0], until, goes_on):
                raise NearmetalError(f"{argv[0]} {argv[1]} failed: {_last_line(messages)}")

    def answer(self, argv: Sequence[str], until: float, as_root: bool = False) -> str:
        """What a program says about itself, whatever its exit code is."""
        with tempfile.TemporaryFile() as output:
            self._wait(self._start(argv, output, as_root), argv[0], until, lambda: True)
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
                raise NearmetalError(f"{name} was stopped, because the run had ended")
            time.sleep(_LOOK)

    def _start(
        self,
        argv: Sequence[str],
        output: IO[bytes],
        as_root: bool,
        messages: Optional[IO[bytes]] = None,
        cpus: Sequence[int] = (),
    ) -> "subprocess.Popen[bytes]":
        folder = self._own_folder if as_root else self.folder
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LEADER, "sh", str(self._memory_kib), *argv_for(argv, as_root)],
            cwd=folder,
            env={"PATH": PATH, "LC_ALL": "C", "HOME": folder, "TMPDIR": folder},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=messages or output,
            start_new_session=True,
        )
        self._processes.append(process)
        if cpus:
            os.sched_setaffinity(process.pid, cpus)
        send_line(self._guard, f"{process.pid}\n")
        send_line(process, "\n")
        return process

    def _new_guard(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", self._outer, _PROC, str(_LOOKS)],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )

    def _end(self) -> str:
        """End every process and remove the folder; what is left, in one sentence, or nothing."""
        code = self._ended_guard(self._guard)
        guards = 1
        while code is not None and code < 0 and guards < _GUARDS:  # somebody killed the guard
            guard = self._new_guard()
            for process in self._processes:
                send_line(guard, f"{process.pid}\n")
            code = self._ended_guard(guard)
            guards += 1
        used = [usage for usage in map(_reap, self._processes) if usage is not None]
        commands = [usage for process, usage in used if process in self._commands]
        self.used = Usage(
            round(sum(each.ru_utime for each in commands), 3),
            round(sum(each.ru_stime for each in commands), 3),
            sum(each.ru_minflt + each.ru_majflt for each in commands),
        )
        leftovers = "" if code == 0 else self._left(code)
        if self._said is not None:
            self._said.close()
        return leftovers

    def _ended_guard(self, guard: Optional["subprocess.Popen[bytes]"]) -> Optional[int]:
        if guard is None:
            return 0
        _close(guard)
        try:
            return guard.wait(_ENDS)
        except subprocess.TimeoutExpired:
            return None

    def _left(self, code: Optional[int]) -> str:
        said = _lines(self._said) if self._said is not None else []
        reason = "; ".join(said[-2:]) or (
            "the process that removes it didn't end" if code is None else "the process that removes it was killed"
        )
        return (
            f"the {self._purpose} may have left {self._outer} on the host: end its processes and remove it ({reason})"
        )


def argv_for(argv: Sequence[str], as_root: bool) -> List[str]:
    """The command line by which the program runs as nobody, if we are root and it need not be."""
    if as_root or os.geteuid() != 0:
        return list(argv)
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", *argv]


def program_path(program: str) -> Optional[str]:
    """Where a program is; None if it isn't installed."""
    return shutil.which(program, path=PATH)


def _listens(port: int, session: int) -> bool:
    """Whether a process of a session listens on a port; another server there would answer, too."""
    inodes = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/net/{name}", encoding="ascii") as stream:
            inodes |= {inode for inode, number in listening.parse(stream.read()).items() if number == port}
    return any(inode in inodes for inode in _sockets(session)) if inodes else False


def _sockets(session: int) -> Iterator[Optional[str]]:
    for number in process_numbers(os.listdir("/proc")):
        with suppress(OSError):  # a process that ended meanwhile
            if os.getsid(number) == session:
                for descriptor in os.listdir(f"/proc/{number}/fd"):
                    yield listening.inode(os.readlink(f"/proc/{number}/fd/{descriptor}"))


def _ended(process: "subprocess.Popen[bytes]") -> Optional[int]:
    """The exit code of a leader, which stays a zombie; negative: the signal that ended it; None: it runs."""
    state = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if state is None:
        return None
    return state.si_status if state.si_code == os.CLD_EXITED else -state.si_status


def _reap(process: "subprocess.Popen[bytes]") -> "Optional[Tuple[subprocess.Popen[bytes], resource.struct_rusage]]":
    """A leader that ended, with what it used; None if the guard couldn't end it."""
    _close(process)
    pid, status, used = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        return None
    process.returncode = status
    return process, used


def _close(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


def send_line(process: Optional["subprocess.Popen[bytes]"], line: str) -> None:
    """Write a line to what a process reads, if it still does."""
    if process is not None and process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.write(line.encode())
            process.stdin.flush()


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    data = stream.read(_MOST_OUTPUT + 1)
    if len(data) > _MOST_OUTPUT:
        raise NearmetalError(
            f"the benchmark printed more than {_MOST_OUTPUT} bytes, and no benchmark of nearmetal does"
        )
    return data.decode("utf-8", "replace")


def _last_line(stream: IO[bytes]) -> str:
    return next(reversed(_lines(stream)), "")


def _lines(stream: IO[bytes]) -> List[str]:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - 4096, 0))
    return [plain(line) for line in stream.read().decode("utf-8", "replace").strip().splitlines()]


def _error_in_json(output: IO[bytes]) -> str:
    """What a program that prints JSON says of its failure there, as iperf3 does."""
    try:
        answer = json_text.parse(_text(output))
    except ValueError:
        return ""
    error = answer.get("error") if isinstance(answer, dict) else None
    return plain(error) if isinstance(error, str) else ""
