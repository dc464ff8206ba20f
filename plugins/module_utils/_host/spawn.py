# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a tool of the distribution. PRIVATE to the collection.

The agent has no AnsibleModule, whose run_command would serve a module. ansible-test refuses subprocess in what a
collection sends to a host, and ansible-lint's profile `production` takes no exception to that. asyncio waits for ever
where a pipe of its can't be set up: a failing FIONBIO showed it.
"""

from __future__ import annotations

import errno
import os
import select
import shutil
import signal
import time
from contextlib import ExitStack, suppress
from typing import BinaryIO, List, Mapping, NoReturn, Sequence, Tuple


def to_end(argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> Tuple[int, bytes, bytes]:
    """Exit code (negative: the signal that ended it), output and errors of a program.

    Raises TimeoutError when it doesn't end in so many seconds, having killed it, and OSError when it can't be started.
    """
    end = time.monotonic() + timeout
    program = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=environment["PATH"])
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    with ExitStack() as closing:
        out, child_out = _pipe(closing)
        err, child_err = _pipe(closing)
        ready, failed = _pipe(closing)
        process = os.fork()
        if process == 0:
            _become(program, argv, environment, (child_out.fileno(), child_err.fileno()), failed.fileno())
        try:
            for written_by_the_child in (child_out, child_err, failed):
                written_by_the_child.close()
            number = ready.read(1)
            if number:
                raise OSError(number[0], os.strerror(number[0]), program)
            said = _read([out, err], end)
            return _exit_code(process, end), said[0], said[1]
        except BaseException:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            raise


def _become(
    program: str, argv: Sequence[str], environment: Mapping[str, str], output: Tuple[int, int], failed: int
) -> NoReturn:
    """In the child: the program instead of us, or the reason why not, into a pipe that closes when it starts."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output[0], 1)
        os.dup2(output[1], 2)
        # Python ignores them, and a child inherits that.
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        os.execve(program, list(argv), dict(environment))
    except OSError as error:
        os.write(failed, bytes((error.errno or errno.EIO,)))
    finally:
        os._exit(127)


def _pipe(closing: ExitStack) -> Tuple[BinaryIO, BinaryIO]:
    reading, writing = os.pipe()
    return (
        closing.enter_context(os.fdopen(reading, "rb", buffering=0)),
        closing.enter_context(os.fdopen(writing, "wb", buffering=0)),
    )


def _read(pipes: Sequence[BinaryIO], end: float) -> List[bytes]:
    """What comes out of each until all are closed at their other end."""
    said = {pipe.fileno(): b"" for pipe in pipes}
    poll = select.poll()
    for number in said:
        poll.register(number, select.POLLIN)
    still = len(said)
    while still:
        for number, _event in poll.poll(_left(end) * 1000):
            data = os.read(number, 65536)
            said[number] += data
            if not data:
                poll.unregister(number)
                still -= 1
    return list(said.values())


def _exit_code(process: int, end: float) -> int:
    """A program that has closed its output has mostly ended, too."""
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        time.sleep(min(0.001, _left(end)))


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
