# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a host of the lab: tune killed after each of its writes to the kernel, and restored each time.

Arguments: the agent's archive, concerns with their options as JSON, and the patterns of files to compare.
Prints JSON: the number of writes, after how many kills the files were a mixture, and what wasn't restored.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List

sys.path.insert(0, sys.argv[1])

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import restore_requests, tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost

JOURNAL = "/var/lib/nearmetal/journal.json"


class DiesAfter(WritableHost):
    """Its process is killed after so many writes."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def write_value(self, path: str, text: str) -> None:
        super().write_value(path, text)
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def tune(writes: int) -> int:
    """Do a run that may be killed; return how many writes it had left."""
    host = DiesAfter(writes)
    done = run(host, lambda known: tune_requests([], CONCERNS, {"persist": False}, known))
    errors = [outcome.error for outcome in done.outcomes if outcome.error]
    if errors:
        raise RuntimeError(errors)
    return host.left


def restore() -> int:
    done = run(WritableHost(), lambda known: restore_requests(None, known))
    return sum(bool(outcome.error) for outcome in done.outcomes)


def in_own_process(function: Callable[[], int]) -> int:
    """The function's result in a process of its own; -9 if it was killed."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(sender, str(function()).encode())
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    os.close(sender)
    with os.fdopen(receiver) as stream:
        answer = stream.read()
    _pid, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return -os.WTERMSIG(status)
    if not answer:
        raise RuntimeError("a run failed without being killed")
    return int(answer)


def state() -> Dict[str, str]:
    paths = sorted(path for pattern in sys.argv[3:] for path in glob.glob(pattern))
    found = {}
    for path in paths:
        try:
            found[path] = Path(path).read_text()
        except OSError:
            found[path] = "unreadable"  # as xps_cpus of a NIC with one queue
    return found


CONCERNS = json.loads(sys.argv[2])
MANY = 100000


def main() -> None:
    started = time.monotonic()
    before = state()
    writes = MANY - in_own_process(partial(tune, MANY))
    tuned = state()
    wrong: List[str] = []
    mixtures = 0
    for number in (0, *range(1, writes + 1)):
        # The kernel may give in one write what took two the first time, such as huge pages: then the run is complete.
        if number and in_own_process(partial(tune, number)) != -signal.SIGKILL and state() != tuned:
            wrong.append(f"{number}: neither killed nor complete")
        mixtures += state() not in (before, tuned)
        failed = in_own_process(restore)
        now = state()
        lost = [f"{path}: {before[path]!r} → {now.get(path)!r}" for path in before if now.get(path) != before[path]]
        if failed or lost or os.path.exists(JOURNAL):
            wrong.append(f"{number}: {failed} failed, journal {os.path.exists(JOURNAL)}, {lost}")
    seconds = time.monotonic() - started
    print(json.dumps({"writes": writes, "mixtures": mixtures, "seconds": round(seconds), "wrong": wrong}))


main()
