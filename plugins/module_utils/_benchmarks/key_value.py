# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a key-value store in memory answers, as a stand-in for larger ones: Redis. PRIVATE to the collection."""

from __future__ import annotations

import csv
from typing import List, Sequence

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
_OTHERS = {"fedora": "redis", "suse": "redis"}
_OLDEST = (6, 2)  # an older client prints no percentiles
# Every user of the host can connect: to read and write the keys of the load, and for nothing else.
_CONFIGURATION = """bind 127.0.0.1
port {port}
save ""
appendonly no
io-threads {threads}
user default on nopass ~key:* -@all +get +set +config|get
"""


def _limits(options: Options) -> Limits:
    return Limits(seconds=3 * options["seconds"] + 60, port=options["port"])


def _run(options: Options, _folder: str) -> Run:
    port = str(options["port"])
    load = [
        *(_TOOL, "-h", "127.0.0.1", "-p", port, "-t", "set,get", "-n", str(options["requests"])),
        *("-c", str(options["clients"]), "-P", str(options["pipeline"]), "-d", "100", "--csv", "--precision", "3"),
    ]
    configuration = _CONFIGURATION.format(port=port, threads=options["threads"])
    return Run((Command(tuple(load)),), (("redis-server", "redis.conf"),), {"redis.conf": configuration})


def _read(outputs: Sequence[str], _options: Options) -> Result:
    rows = [row for row in csv.reader(outputs[0].replace("\0", "").splitlines()) if row]
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
    return Result(tuple(metrics), {"client_on": "same host"})


KEY_VALUE = Benchmark(
    name="key_value",
    question="How many reads and writes a second does a store in memory answer?",
    limitation="what a real network adds: client and server share the host's CPUs",
    options={
        "seconds": seconds_option(10.0),
        "requests": {"type": "int", "range": (1000, 1000000000), "default": 500000},
        "clients": {"type": "int", "range": (1, 10000), "default": 50},
        "pipeline": {"type": "int", "range": (1, 1000), "default": 1},
        "threads": {"type": "int", "range": (1, 128), "default": 1},
        "port": {"type": "int", "range": (1024, 65535), "default": 16379},
    },
    tools=(
        Tool("redis-server", ("--version",), {"debian": "redis-server", **_OTHERS}, "redis-server", _OLDEST),
        Tool(_TOOL, ("--version",), {"debian": "redis-tools", **_OTHERS}, oldest=_OLDEST),
    ),
    limits=_limits,
    run=_run,
    read=_read,
)
