# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many requests a cache answers: memcached with memcaslap. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Dict, Sequence

from ..._error import NearmetalError
from . import pair
from .benchmark import Benchmark, Command, Machine, Options, Reader, Result, Run, Tool, seconds_option

_TOOL = "memcaslap"
_READER = Reader(_TOOL)
# Keys of 64 bytes and values of 1,024 bytes; command 0 is set, 1 is get, each with its share.
_LOAD = "key\n64 64 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9\n"
_MOST_THREADS = 128
_SERVER = Tool(
    "memcached",
    ("-V",),
    {"debian": "memcached", "fedora": "memcached", "amzn": "memcached", "suse": "memcached"},
    "memcached",
)
_AWESOME = "libmemcached-awesome-tools"
_LOAD_TOOL = Tool(
    _TOOL,
    ("-V",),
    {"debian": "libmemcached-tools", "fedora": _AWESOME, "amzn": _AWESOME, "suse": "libmemcached"},
    also=("memaslap",),  # its own name, which Debian changed
)
_OTHER_CONNECTIONS = 64  # memcached takes 1,024 by itself
_RATE = re.compile(r"^Run time: [0-9.]{1,20}s Ops: [0-9]{1,20} TPS: ([0-9]{1,20}) ", re.ASCII | re.MULTILINE)
_MISSES = re.compile(r"^get_misses: ([0-9]{1,20})$", re.ASCII | re.MULTILINE)


def _check(options: Options) -> None:
    pair.check("cache", options)
    if options["connections"] % options.get("client_threads", 1):
        raise NearmetalError(
            f"benchmark.options of cache has {options['connections']} connections for {options['client_threads']}"
            " client_threads: memcaslap takes a multiple of its threads"
        )


def _fit(options: Options, machine: Machine) -> Options:
    most = pair.client_cpus(options, machine)
    return {
        "threads": min(pair.server_cpus(options, machine), _MOST_THREADS),
        "client_threads": max(count for count in range(1, most + 1) if options["connections"] % count == 0),
        **options,
    }


def _run(options: Options, _folder: str) -> Run:
    port = str(options["port"])
    connections = options["connections"] * options["client_hosts"] + _OTHER_CONNECTIONS
    server = [
        *("memcached", "-l", pair.listens_on(options), "-p", port, "-U", "0", "-m", "256"),
        *("-t", str(options.get("threads", 1)), "-c", str(connections)),
    ]
    if options["part"] == pair.SERVER:
        return Run((pair.until_served(options),), (tuple(server),))
    load = [
        *(_TOOL, "-s", f"{pair.reached_at(options)}:{port}", "-T", str(options.get("client_threads", 1))),
        *("-c", str(options["connections"])),
        *("-t", f"{max(1, round(options['seconds']))}s", "-F", "load.cnf"),
    ]
    servers = (tuple(server),) if options["part"] == pair.BOTH else ()
    return Run((Command(tuple(load)),), servers, {"load.cnf": _LOAD})


def _read(outputs: Sequence[str], options: Options) -> Result:
    if options["part"] == pair.SERVER:
        return pair.served(outputs[0])
    rate, misses = _RATE.search(outputs[0]), _MISSES.search(outputs[0])
    if rate is None or misses is None:
        raise _READER.unreadable("no line with TPS and get_misses")
    details: Dict[str, Any] = {"get_misses": int(misses[1]), **pair.details(options, "connections")}
    if options["part"] == pair.BOTH:
        details["threads"] = options.get("threads", 1)
    return Result((_READER.larger("requests", _READER.number(rate[1]), "1/s"),), details)


CACHE = Benchmark(
    name="cache",
    question="How many requests a second, nine in ten of them reads, does a cache answer?",
    limitation="with part: both what a real network adds, and more than half of the host's CPUs",
    options={
        "seconds": seconds_option(10.0),
        "connections": {"type": "int", "range": (1, 10000), "default": 64},
        "threads": {"type": "int", "range": (1, _MOST_THREADS)},
        "client_threads": {"type": "int", "range": (1, 128)},
        "port": {"type": "int", "range": (1024, 65535), "default": 21211},
        **pair.OPTIONS,
    },
    tools=(_SERVER, _LOAD_TOOL),
    limits=lambda options: pair.limits(options, options["connections"] * options["client_hosts"]),
    run=_run,
    read=_read,
    check=_check,
    needs=lambda options: pair.tools(options, _SERVER, _LOAD_TOOL),
    fit=_fit,
    divides=pair.is_divided,
)
