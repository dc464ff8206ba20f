# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a key-value store in memory answers, as a stand-in for larger ones: Redis. PRIVATE to the collection."""

from __future__ import annotations

import csv
from typing import List, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import (
    Benchmark,
    Command,
    Limits,
    Options,
    Result,
    Run,
    Tool,
    larger,
    number_of,
    seconds_option,
    smaller,
    unreadable,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.metrics import Metric

_TOOL = "redis-benchmark"
_TESTS = ("GET", "SET")
# Amazon Linux 2023 calls the programs of its package redis6-server and redis6-benchmark.
_OTHERS = {"fedora": "redis", "amzn": "redis6", "suse": "redis"}
_OLDEST = (6, 2)  # an older client prints no percentiles
_FEWEST_REQUESTS, _FIRST_REQUESTS, _MOST_REQUESTS = 1000, 20000, 1000000000
_OTHER_CLIENTS = 32  # the load asks for the server's settings by a connection of its own
# Every user of the host can connect: to read and write the keys of the load, and for nothing else.
_CONFIGURATION = """bind 127.0.0.1
port {port}
save ""
appendonly no
io-threads {threads}
io-threads-do-reads yes
maxclients {clients}
user default on nopass ~key:* -@all +get +set +config|get
"""


def _limits(options: Options) -> Limits:
    return Limits(seconds=3 * options["seconds"] + 60, port=options["port"], connections=options["clients"])


def _run(options: Options, _folder: str) -> Run:
    configuration = _CONFIGURATION.format(
        port=options["port"], threads=options["threads"], clients=options["clients"] + _OTHER_CLIENTS
    )
    # Without a number of its own the load is as long as a short one says, because redis-benchmark has no time.
    first = _load(options, options.get("requests") or _FIRST_REQUESTS)
    return Run((first,), (("redis-server", "redis.conf"),), {"redis.conf": configuration})


def _load(options: Options, requests: int) -> Command:
    load = [
        *(_TOOL, "-h", "127.0.0.1", "-p", str(options["port"]), "-t", "set,get", "-n", str(requests)),
        *("-c", str(options["clients"]), "-P", str(options["pipeline"]), "-d", "100", "--csv", "--precision", "3"),
        # The client's own threads: one that is busy would be the limit of a server with several.
        *(("--threads", str(options["threads"])) if options["threads"] > 1 else ()),
    ]
    return Command(tuple(load))


def _then(outputs: Sequence[str], options: Options) -> Tuple[Command, ...]:
    if len(outputs) > 1 or "requests" in options:
        return ()
    rates = [metric.value for metric in _read(outputs, options).metrics if metric.unit == "1/s"]
    requests = options["seconds"] / sum(1 / rate for rate in rates)
    return (_load(options, min(max(round(requests), _FEWEST_REQUESTS), _MOST_REQUESTS)),)


def _read(outputs: Sequence[str], options: Options) -> Result:
    rows = [row for row in csv.reader(outputs[-1].replace("\0", "").splitlines()) if row]
    try:
        header = next(row for row in rows if row[0] == "test")
        tests = {row[0]: dict(zip(header, row)) for row in rows if row[0] in _TESTS and len(row) == len(header)}
        metrics: List[Metric] = []
        for name in _TESTS:
            row = tests[name]
            metrics.append(larger(_TOOL, name.lower(), number_of(_TOOL, row["rps"]), "1/s"))
            metrics.append(smaller(_TOOL, f"{name.lower()}_p99", number_of(_TOOL, row["p99_latency_ms"]), "ms"))
    except (StopIteration, KeyError, csv.Error) as error:
        raise unreadable(_TOOL, f"no row of GET and SET with {error}" if error.args else "no header") from None
    return Result(tuple(metrics), {"client_on": "same host", "threads": options["threads"]})


KEY_VALUE = Benchmark(
    name="key_value",
    question="How many reads and writes a second does a store in memory answer?",
    limitation="what a real network adds: client and server share the host's CPUs",
    options={
        "seconds": seconds_option(10.0),
        "requests": {"type": "int", "range": (_FEWEST_REQUESTS, _MOST_REQUESTS)},
        "clients": {"type": "int", "range": (1, 10000), "default": 50},
        "pipeline": {"type": "int", "range": (1, 1000), "default": 1},
        "threads": {"type": "int", "range": (1, 128), "default": 1},
        "port": {"type": "int", "range": (1024, 65535), "default": 16379},
    },
    tools=(
        Tool(
            "redis-server",
            ("--version",),
            {"debian": "redis-server", **_OTHERS},
            "redis-server",
            oldest=_OLDEST,
            also=("valkey-server", "redis6-server"),
        ),
        Tool(
            _TOOL,
            ("--version",),
            {"debian": "redis-tools", **_OTHERS},
            shares_data=True,
            oldest=_OLDEST,
            also=("valkey-benchmark", "redis6-benchmark"),
        ),
    ),
    limits=_limits,
    run=_run,
    read=_read,
    then=_then,
)
