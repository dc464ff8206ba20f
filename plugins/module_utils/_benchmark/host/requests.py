# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""requests JSON: load a store or a cache with reads and writes of random keys, and print how long each took, as JSON.

A program of its own, started by the benchmarks `key_value` and `cache`; it imports nothing but the standard library.
With a rate, a request's time begins when it is due, also where no connection was free for it then, so that a slow
server isn't asked less often than users would ask it.
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import re
import select
import socket
import sys
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Tuple

_AT_ONCE, _BYTES_AT_ONCE = 200, 1 << 20  # keys of one message while the store is filled, and bytes of their values
_MARK = 10**12 - 1  # the number of the key that is written when all others are; its value is how many these are
_WAITS = 1800.0  # seconds for which a client waits until somebody has filled the store
_LOOK = 0.05
_CONNECTS = 10.0  # seconds
_VALUE = re.compile(rb"(?:\$|VALUE \S{1,250} 0 )([0-9]{1,9})\r\n")  # how an answer with a value of any size begins
_NUMBER = re.compile(rb"\n *([0-9]{1,12}) *\r\n")
Options = Dict[str, Any]


class Words(NamedTuple):
    """How a server is asked, and how many bytes it answers."""

    read: bytes
    write: bytes
    hit: bytes  # with which the answer to a read begins that found its key
    found: int
    missed: int
    stored: int


def words_of(protocol: str, size: int) -> Words:
    """The words for values of this size, with places for a key's number and for a value."""
    key = b"key:%012d"
    if protocol == "redis":
        lead = b"$%d\r\n" % size
        read, write = b"*2\r\n$3\r\nGET\r\n$16\r\n" + key + b"\r\n", b"*3\r\n$3\r\nSET\r\n$16\r\n" + key + b"\r\n"
        return Words(read, write + lead + b"%b\r\n", lead, len(lead) + size + 2, 5, 5)
    found = len(b"VALUE " + key % 0 + b" 0 %d\r\n\r\nEND\r\n" % size) + size
    return Words(b"get " + key + b"\r\n", b"set " + key + b" 0 0 %d\r\n%%b\r\n" % size, b"VALUE ", found, 5, 8)


class Connection:
    """A connection with at most one message under way, which has several requests where they are pipelined."""

    def __init__(self, server: Tuple[str, int], options: Options) -> None:
        self.socket = socket.create_connection(server, _CONNECTS)
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._words, self._value = words_of(options["protocol"], options["bytes"]), b"x" * options["bytes"]
        self.answer = b""
        self.reads, self.count, self.since = True, 0, 0.0

    def send(self, reads: bool, keys: List[int], since: float = 0.0, value: bytes = b"") -> None:
        """Ask for these keys, or write them."""
        self.reads, self.count, self.since, self.answer = reads, len(keys), since, b""
        if reads:
            self.socket.sendall(b"".join([self._words.read % key for key in keys]))
        else:
            value = value or self._value
            self.socket.sendall(b"".join([self._words.write % (key, value) for key in keys]))

    def take(self) -> int:
        """Read more of the answer: -1 until it is complete, and then how many keys were missing."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise SystemExit("the server closed a connection")
        self.answer = data = self.answer + data if self.answer else data
        words, hits = self._words, self.count
        expected = hits * (words.found if self.reads else words.stored)
        if self.reads and len(data) < expected:
            hits = data.count(words.hit)
            expected = hits * words.found + (self.count - hits) * words.missed
        complete = len(data) == expected and data.endswith(b"\r\n")
        if complete and (self.reads or data.startswith((b"+OK", b"STORED"))):
            return self.count - hits
        if data.startswith((b"-", b"ERROR", b"SERVER_ERROR", b"CLIENT_ERROR")) and b"\r\n" in data:
            raise SystemExit(f"the server answered {data.splitlines()[0].decode('latin-1')}")
        return -1

    def finish(self) -> int:
        missing = -1
        while missing < 0:
            missing = self.take()
        return missing


def marked(connection: Connection) -> int:
    """How many keys the store has; 0 if it isn't filled yet, or with values of another size."""
    connection.send(True, [_MARK])
    missing = -1
    while missing < 0:
        missing = connection.take()
        value = _VALUE.match(connection.answer) if missing < 0 else None
        end = b"\r\nEND\r\n" if connection.answer.startswith(b"V") else b"\r\n"
        if value is not None and len(connection.answer) == value.end() + int(value[1]) + len(end):
            return 0
    if missing:
        return 0
    found = _NUMBER.search(connection.answer)
    return int(found[1]) if found else 0


def fill(options: Options, number: int) -> Options:
    """Write this process's share of the keys."""
    connection = Connection(place(options, number), options)
    several = max(1, min(_AT_ONCE, _BYTES_AT_ONCE // options["bytes"]))
    for first in range(number * several, options["keys"], options["processes"] * several):
        connection.send(False, list(range(first, min(first + several, options["keys"]))))
        connection.finish()
    return {}


def place(options: Options, number: int) -> Tuple[str, int]:
    """The address of a connection: each has its turn."""
    return options["servers"][number % len(options["servers"])], options["port"]


def load(options: Options, number: int) -> Options:
    """Ask by this process's share of the connections until the time is over."""
    gc.disable()
    poll = select.epoll()
    mine = [
        Connection(place(options, each), options)
        for each in range(number, options["connections"], options["processes"])
    ]
    by_number = {each.socket.fileno(): each for each in mine}
    for each in by_number:
        poll.register(each, select.EPOLLIN)
    free: Deque[Connection] = deque(mine)
    keys, depth, share = options["keys"], options["pipeline"], options["read_percent"] / 100
    gap = depth * options["processes"] / options["rate"] if options["rate"] else 0.0
    left = math.ceil(options["requests"] / options["processes"]) or sys.maxsize
    counts: Tuple[Dict[int, int], Dict[int, int]] = ({}, {})
    draw, clock, missing = random.random, time.monotonic, 0
    time.sleep(max(0.0, options["begin"] - clock()))
    began, used, now = time.time(), time.process_time(), clock()
    due = now + gap * draw()
    until = math.inf if options["requests"] else now + options["seconds"]
    while now < until and (left > 0 or len(free) < len(mine)):
        while free and left > 0 and (not gap or due <= now):
            free.popleft().send(draw() < share, [int(draw() * keys) for _key in range(depth)], due if gap else clock())
            due, left = due + gap, left - depth
        if gap:  # by select, because epoll waits for whole milliseconds
            select.select([poll.fileno()], [], [], max(0.0, (min(due, until) if free and left > 0 else until) - now))
        for ready, _event in poll.poll(0.0 if gap else min(until - now, 1.0)):
            connection = by_number[ready]
            missed = connection.take()
            if missed >= 0:
                us, found = int((clock() - connection.since) * 1e6), counts[connection.reads]
                found[us] = found.get(us, 0) + depth
                missing += missed
                free.append(connection)
        now = clock()
    ended = time.time()
    return {
        "began": began,
        "ended": ended,
        "busy": (time.process_time() - used) / (ended - began),
        "misses": missing,
        "unsent": max(0, int((now - due) / gap)) * depth if gap else 0,
        "set": list(counts[0].items()),
        "get": list(counts[1].items()),
    }


def in_processes(call: Callable[[Options, int], Options], options: Options) -> List[Options]:
    """What the call returns in each of the processes. Ends with the first that fails."""
    readers, answers = [], []
    for number in range(options["processes"]):
        reader, writer = os.pipe()
        if not os.fork():
            with open(writer, "w", encoding="ascii") as stream:
                json.dump(call(options, number), stream)
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    for reader in readers:
        with open(reader, encoding="ascii") as stream:
            text = stream.read()
        if not text:
            raise SystemExit(1)  # the process has said why
        answers.append(json.loads(text))
    return answers


def three_digits(counts: List[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """The counts of times, which are rounded up to three digits."""
    rounded: Dict[int, int] = {}
    for us, count in counts:
        step = 10 ** max(0, len(str(us)) - 3)
        upper = -(-us // step) * step
        rounded[upper] = rounded.get(upper, 0) + count
    return sorted(rounded.items())


def main(options: Options) -> None:
    """Fill the store, if nobody has, or wait until somebody has; then measure, and print it."""
    first, until = Connection(place(options, 0), options), time.monotonic() + _WAITS
    if options["fills"] and not marked(first):
        in_processes(fill, options)
        first.send(False, [_MARK], value=b"%*d" % (options["bytes"], options["keys"]))
        first.finish()
    if not options["seconds"]:
        return
    options["keys"] = marked(first)
    while not options["keys"]:
        if time.monotonic() > until:
            raise SystemExit("nobody filled the store")
        time.sleep(_LOOK)
        options["keys"] = marked(first)
    options["begin"] = time.monotonic() + 0.1 + options["connections"] / 2000  # when all are connected
    answers = in_processes(load, options)
    found: Options = {name: sum(each[name] for each in answers) for name in ("misses", "unsent")}
    found.update((name, three_digits([pair for each in answers for pair in each[name]])) for name in ("get", "set"))
    found.update(began=min(each["began"] for each in answers), ended=max(each["ended"] for each in answers))
    sys.stdout.write(json.dumps({**found, "keys": options["keys"], "busy": max(each["busy"] for each in answers)}))


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except OSError as failure:
        raise SystemExit(f"a connection to the server failed: {failure.strerror or failure}") from None
