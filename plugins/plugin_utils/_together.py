# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several hosts at the same moment, for an action that works on them: each in a process of its own. PRIVATE."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from contextlib import suppress
from typing import Any, Callable, Dict, List, Sequence

from ..module_utils._error import NearmetalError

Answer = Dict[str, Any]


def together(calls: Sequence[Callable[[], Answer]], fails: Callable[[Answer], bool]) -> List[Answer]:
    """What the calls return, in their order. The first one that `fails`, or raises, ends the others, whose answers are
    empty then. Raises what that one raised, as NearmetalError.
    """
    answers: List[Answer] = [{} for _call in calls]
    children: Dict[int, int] = {}  # the reading end of its pipe → the process
    said: Dict[int, bytes] = {}
    try:
        with selectors.DefaultSelector() as selector:
            for number, call in enumerate(calls):
                reader, process = _begin(call)
                children[reader], said[reader] = process, b""
                selector.register(reader, selectors.EVENT_READ, number)
            while selector.get_map():
                for key, _events in selector.select():
                    data = os.read(key.fd, 1 << 16)
                    said[key.fd] += data
                    if data:
                        continue
                    selector.unregister(key.fd)
                    answers[key.data] = _answer(said[key.fd])
                    if fails(answers[key.data]):
                        return answers
        return answers
    finally:
        for process in children.values():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)  # one that has ended is a zombie, whose number nobody else has
        for reader, process in children.items():
            os.close(reader)
            with suppress(ChildProcessError):
                os.waitpid(process, 0)


def _begin(call: Callable[[], Answer]) -> "tuple[int, int]":
    """The reading end of a pipe to a process that does the call and writes down what it returned."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    # Whoever is told to end before it knows how takes it for the play, which may not end by that.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(writer)
        return reader, process
    try:  # in the child, which never returns into the play
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        os.close(reader)
        with suppress(BaseException):
            try:
                answer = json.dumps({"answer": call()}, default=str)
            except NearmetalError as error:
                answer = json.dumps({"error": str(error)})
            with open(writer, "w", encoding="utf-8") as stream:
                stream.write(answer)
    finally:
        os._exit(0)


def _answer(said: bytes) -> Answer:
    try:
        document = json.loads(said)
    except ValueError:
        raise NearmetalError("the process that worked on another host ended without an answer") from None
    if "error" in document:
        raise NearmetalError(str(document["error"]))
    answer: Answer = document["answer"]
    return answer
