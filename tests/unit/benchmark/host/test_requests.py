# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of a store: it fills it once, asks in the shares and at the rate that it is told, and times what is late."""

from __future__ import annotations

import contextlib
import inspect
import json
import random
import re
import socket
import subprocess
import sys
import threading
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import requests

CHOSEN: Dict[str, Any] = json.loads(
    '{"servers": ["127.0.0.1"], "connections": 4, "processes": 2, "keys": 300, "fills": true, "seconds": 0.5,'
    ' "bytes": 20, "pipeline": 1, "rate": 0, "read_percent": 75, "requests": 0}'
)
ASKED = {
    "redis": re.compile(
        rb"\*2\r\n\$3\r\nGET\r\n\$16\r\n(key:\d{12})\r\n|SET\r\n\$16\r\n(key:\d{12})\r\n\$\d+\r\n([x \d]+)\r\n"
    ),
    "memcached": re.compile(rb"get (key:\d{12})\r\n|set (key:\d{12}) 0 0 \d+\r\n([x \d]+)\r\n"),
}
ANSWERS = {
    "redis": (b"$%d\r\n%b\r\n", b"$-1\r\n", b"+OK\r\n"),
    "memcached": (b"VALUE key:%012d 0 %%d\r\n%%b\r\nEND\r\n" % 0, b"END\r\n", b"STORED\r\n"),
}


class Store:
    """A server of one of the protocols, which answers in pieces, as a network may deliver them."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.kept: Dict[bytes, bytes] = {}
        self.asked: List[Tuple[str, bytes]] = []
        self.stall = 0.0  # seconds for which each connection pauses once
        self.server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self.server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):  # a client that goes before its answer
            self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        data, stalled = b"", False
        found, missed, stored = ANSWERS[self.protocol]
        while True:
            more = connection.recv(4096)
            if not more:
                return
            data, answer, end = data + more, b"", 0
            for match in ASKED[self.protocol].finditer(data):
                end = match.end()
                if match[1]:
                    self.asked.append(("get", match[1]))
                    value = self.kept.get(match[1], b"")
                    answer += found % (len(value), value) if value else missed
                else:
                    self.asked.append(("set", match[2]))
                    self.kept[match[2]] = match[3]
                    answer += stored
            data = data[end:]
            if self.stall and not stalled and len(self.asked) > 340:
                stalled = True
                threading.Event().wait(self.stall)
            half = random.Random(len(answer)).randrange(len(answer) + 1)
            connection.sendall(answer[:half])
            connection.sendall(answer[half:])


@pytest.fixture(params=["redis", "memcached"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    found = Store(request.param)
    yield found
    found.server.close()


def started(store: Store, **more: Any) -> "subprocess.CompletedProcess[str]":
    options = json.dumps({**CHOSEN, "protocol": store.protocol, "port": store.port, **more})
    program = [sys.executable, "-I", "-c", inspect.getsource(requests), options]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def run(store: Store, **more: Any) -> Dict[str, Any]:
    done = started(store, **more)
    assert done.returncode == 0, done.stderr
    found: Dict[str, Any] = json.loads(done.stdout or "{}")
    return found


def count(bins: List[List[int]]) -> int:
    return sum(number for _us, number in bins)


def test_it_fills_the_store_once_and_reads_as_many_as_its_share(store: Store) -> None:
    found = run(store, requests=400)
    reads, writes = count(found["get"]), count(found["set"])
    assert (reads + writes, found["misses"], found["keys"]) == (400, 0, 300)
    assert 240 <= reads <= 360
    assert len(store.kept) == 301, "all keys, and how many these are"
    loaded = store.asked[-400:]
    assert [sum(kind == name for kind, _key in loaded) for name in ("get", "set")] == [reads, writes]
    assert len({key for _kind, key in loaded}) > 150, "and not one key again and again"
    before = len(store.asked)
    assert run(store, requests=40, keys=7, fills=False)["keys"] == 300, "others learn it from the store"
    assert len(store.asked) - before == 41


def test_messages_may_have_several_requests(store: Store) -> None:
    found = run(store, requests=400, pipeline=10)
    assert (count(found["get"]) + count(found["set"]), found["misses"]) == (400, 0)


def test_keys_that_the_store_lost_are_counted(store: Store) -> None:
    run(store, seconds=0)
    for key in [name for name in store.kept if name[-1:] in b"02468"]:
        del store.kept[key]
    found = run(store, requests=400, read_percent=100, pipeline=5)
    assert 120 <= found["misses"] <= 280
    assert not found["set"]


def test_a_store_with_values_of_another_size_is_filled_again(store: Store) -> None:
    run(store)
    first = len(store.asked)
    assert run(store, bytes=30)["misses"] == 0
    assert len({key for kind, key in store.asked[first:] if kind == "set"}) == CHOSEN["keys"] + 1
    assert len(store.kept[b"key:000000000000"]) == 30


def test_a_request_s_time_begins_when_it_is_due(store: Store) -> None:
    run(store, seconds=0)
    store.stall = 0.3
    found = run(store, rate=400, seconds=1.5, processes=1, connections=1, read_percent=100)
    late = sum(number for us, number in found["get"] if us > 100_000)
    assert late + found["unsent"] >= 60, (
        "a closed loop would see one slow answer of a stall, in which 120 requests were due"
    )
    assert count(found["get"]) <= 1.05 * 400 * 1.5


def test_a_server_that_refuses_ends_it_with_the_server_s_words(monkeypatch: pytest.MonkeyPatch) -> None:
    full = b"-OOM command not allowed\r\n"
    monkeypatch.setitem(ANSWERS, "redis", (b"", b"$-1\r\n", full))
    store = Store("redis")
    done = started(store)
    store.server.close()
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "the server answered -OOM command not allowed")


def test_a_server_that_is_gone_is_said_in_a_sentence(store: Store) -> None:
    store.server.close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        store.port = taken.getsockname()[1]
    done = started(store)
    assert (done.returncode, done.stderr) == (1, "a connection to the server failed: Connection refused\n")


def test_times_keep_three_digits() -> None:
    assert requests.three_digits([(999, 1), (1001, 2), (1005, 3), (123456, 1)]) == [(999, 1), (1010, 5), (124000, 1)]
