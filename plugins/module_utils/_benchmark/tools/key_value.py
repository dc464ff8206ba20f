# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a key-value store in memory answers, as a stand-in for larger ones: Redis. PRIVATE to the collection."""

from __future__ import annotations

import csv
from typing import Any, Dict, List, Sequence, Tuple

from ..._prove.statistics.metrics import Metric
from . import pair
from .benchmark import Benchmark, Command, Machine, Options, Reader, Result, Run, Tool, seconds_option

_TOOL = "redis-benchmark"
_READER = Reader(_TOOL)
_TESTS = ("GET", "SET")
# Amazon Linux 2023 calls the programs of its package redis6-server and redis6-benchmark.
_OTHERS = {"fedora": "redis", "amzn": "redis6", "suse": "redis"}
_OLDEST = (6, 2)  # an older client prints no percentiles
_FEWEST_REQUESTS, _MOST_REQUESTS = 1000, 1000000000
_FIRST_REQUESTS, _SECOND_REQUESTS = 2000, 20000  # of the short loads from which the length of the real one follows
_OTHER_CLIENTS = 32  # room for more connections: the load asks for the server's settings by another one
_MOST_THREADS = 128
_SERVER = Tool(
    "redis-server",
    ("--version",),
    {"debian": "redis-server", **_OTHERS},
    "redis-server",
    oldest=_OLDEST,
    also=("valkey-server", "redis6-server"),
)
_CLIENT = Tool(
    _TOOL,
    ("--version",),
    {"debian": "redis-tools", **_OTHERS},
    oldest=_OLDEST,
    also=("valkey-benchmark", "redis6-benchmark"),
)
# Anybody who reaches the port can connect, but can only read and write the keys of the load.
_CONFIGURATION = """bind {address}
protected-mode no
port {port}
save ""
appendonly no
io-threads {threads}
io-threads-do-reads yes
maxclients {clients}
user default on nopass ~key:* -@all +get +set +config|get
"""


def _check(options: Options) -> None:
    pair.check("key_value", options)


def _fit(options: Options, machine: Machine) -> Options:
    return {
        "threads": min(pair.server_cpus(options, machine), _MOST_THREADS),
        "client_threads": min(pair.client_cpus(options, machine), _MOST_THREADS),
        **options,
    }


def _run(options: Options, _folder: str) -> Run:
    configuration = _CONFIGURATION.format(
        address=pair.listens_on(options),
        port=options["port"],
        threads=options.get("threads", 1),
        # The client may connect for the next kind of request before the server has closed the last kind's connections.
        clients=2 * options["clients"] * options["client_hosts"] + _OTHER_CLIENTS,
    )
    server = ("redis-server", "redis.conf")
    if options["part"] == pair.SERVER:
        return Run((pair.until_served(options),), (server,), {"redis.conf": configuration})
    # redis-benchmark can't run for a time. Without the option `requests`, short loads say how many requests take it.
    first = _load(options, options.get("requests") or _FIRST_REQUESTS)
    if options["part"] == pair.CLIENT:
        return Run((first,))
    return Run((first,), (server,), {"redis.conf": configuration})


def _load(options: Options, requests: int) -> Command:
    threads = options.get("client_threads", 1)
    load = [
        *(_TOOL, "-h", pair.reached_at(options), "-p", str(options["port"]), "-t", "set,get", "-n", str(requests)),
        *("-c", str(options["clients"]), "-P", str(options["pipeline"]), "-d", "100", "--csv", "--precision", "3"),
        # A client with a single busy thread would be the limit of a server with several.
        *(("--threads", str(threads)) if threads > 1 else ()),
    ]
    return Command(tuple(load))


def _then(outputs: Sequence[str], options: Options) -> Tuple[Command, ...]:
    if "requests" in options or options["part"] == pair.SERVER:
        return ()
    # On a slow host the first short load is enough, and a second would take too long.
    before = 2 if _within(outputs[0], options) > _SECOND_REQUESTS else 1
    if len(outputs) < before:
        return (_load(options, _SECOND_REQUESTS),)
    if len(outputs) > before:
        return ()
    return (_load(options, min(max(_within(outputs[-1], options), _FEWEST_REQUESTS), _MOST_REQUESTS)),)


def _within(output: str, options: Options) -> int:
    """How many requests of each kind take as long as the option says, at the rates of an output."""
    rates = [metric.value for metric in _read([output], options).metrics if metric.unit == "1/s"]
    return round(float(options["seconds"]) / sum(1 / rate for rate in rates))


def _read(outputs: Sequence[str], options: Options) -> Result:
    if options["part"] == pair.SERVER:
        return pair.served(outputs[0])
    rows = [row for row in csv.reader(outputs[-1].replace("\0", "").splitlines()) if row]
    try:
        header = next(row for row in rows if row[0] == "test")
        tests = {row[0]: dict(zip(header, row)) for row in rows if row[0] in _TESTS and len(row) == len(header)}
        metrics: List[Metric] = []
        for name in _TESTS:
            row = tests[name]
            metrics.append(_READER.larger(name.lower(), _READER.number(row["rps"]), "1/s"))
            metrics.append(_READER.smaller(f"{name.lower()}_p99", _READER.number(row["p99_latency_ms"]), "ms"))
    except (StopIteration, KeyError, csv.Error) as error:
        raise _READER.unreadable(f"no row of GET and SET with {error}" if error.args else "no header") from None
    details: Dict[str, Any] = {**pair.details(options, "clients"), "client_threads": options.get("client_threads", 1)}
    if options["part"] == pair.BOTH:
        details["threads"] = options.get("threads", 1)
    return Result(tuple(metrics), details)


KEY_VALUE = Benchmark(
    name="key_value",
    question="How many reads and writes a second does a store in memory answer?",
    limitation="with part: both what a real network adds, and more than half of the host's CPUs",
    options={
        "seconds": seconds_option(10.0),
        "requests": {"type": "int", "range": (_FEWEST_REQUESTS, _MOST_REQUESTS)},
        "clients": {"type": "int", "range": (1, 10000), "default": 50},
        "pipeline": {"type": "int", "range": (1, 1000), "default": 1},
        "threads": {"type": "int", "range": (1, _MOST_THREADS)},
        "client_threads": {"type": "int", "range": (1, _MOST_THREADS)},
        "port": {"type": "int", "range": (1024, 65535), "default": 16379},
        **pair.OPTIONS,
    },
    tools=(_SERVER, _CLIENT),
    limits=lambda options: pair.limits(options, options["clients"] * options["client_hosts"]),
    run=_run,
    read=_read,
    then=_then,
    check=_check,
    needs=lambda options: pair.tools(options, _SERVER, _CLIENT),
    fit=_fit,
    divides=pair.is_divided,
)
