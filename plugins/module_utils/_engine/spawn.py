# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a tool of the distribution. PRIVATE to the collection.

The agent has no AnsibleModule, whose run_command would serve a module. asyncio waits
for ever where a pipe of its can't be set up: a failing FIONBIO showed it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import time
from contextlib import ExitStack, suppress
from typing import BinaryIO, List, Mapping, Sequence, Tuple


def to_end(argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> Tuple[int, bytes, bytes]:
    """Exit code (negative: the signal that ended it), output and errors of a program.

    Raises TimeoutError when it doesn't end in so many seconds, having killed it, and OSError when it can't be started.
    """
    end = time.monotonic() + timeout
    # A name without a path is looked up where the program itself would look; a missing one fails as it is.
    program = shutil.which(argv[0], path=environment.get("PATH")) or argv[0]
    with ExitStack() as closing:
        out, child_out = _pipe(closing)
        err, child_err = _pipe(closing)
        process = os.posix_spawn(
            program,
            list(argv),
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, child_out.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, child_err.fileno(), 2),
            ],
            # Python ignores them, and a child inherits that.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
        try:
            child_out.close()
            child_err.close()
            said = _read([out, err], end)
            return _exit_code(process, end), said[0], said[1]
        except BaseException:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            raise


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
