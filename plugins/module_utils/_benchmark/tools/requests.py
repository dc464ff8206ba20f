# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of a store or a cache: reads and writes of random keys, by a program of this collection. Pure. PRIVATE."""

from __future__ import annotations

import json
from typing import Dict, Sequence, Tuple

from ..._planning.options import Spec
from ..._prove.statistics.metrics import Metric
from . import pair
from .benchmark import Command, Limits, Machine, Options, Reader, Result
from .histogram import Histogram, times

PROGRAM = "requests"
_READER = Reader(PROGRAM)
MOST_THREADS = 128
_MOST_KEYS, _KEYS_ELSEWHERE = 10000000, 1000000  # where the user names none: in a server of ours, and in another one
_KEYS_A_SECOND = 100000  # that are written beforehand, so that this takes about as long as the measurement
_SLOWEST_KEYS = 5000  # a second, at which a run doesn't fail yet
_OF_A_KEY = 130  # bytes beside its value, in Redis and in memcached
_SHARE = 4  # of the memory that is available, one part
KINDS = ("get", "set")


def options_of(size: int) -> Spec:
    """What both benchmarks let one choose; `size` is that of a value."""
    return {
        "requests": {"type": "int", "range": (0, 1000000000), "default": 0},
        "keys": {"type": "int", "range": (1, 1000000000)},
        "bytes": {"type": "int", "range": (16, 1048576), "default": size},
        "read_percent": {"type": "int", "range": (0, 100), "default": 90},
        "pipeline": {"type": "int", "range": (1, 1000), "default": 1},
        "threads": {"type": "int", "range": (1, MOST_THREADS)},
        "client_threads": {"type": "int", "range": (1, MOST_THREADS)},
        **pair.RATE,
        **pair.OPTIONS,
    }


def fit(options: Options, machine: Machine) -> Options:
    """As many threads as CPUs, and as many keys as the host of the server has room and time for."""
    part = options["part"]
    room = machine.memory_mib * 1024 * 1024 // _SHARE // (options["bytes"] + _OF_A_KEY)
    of_load = round(options["seconds"] * _KEYS_A_SECOND) if part == pair.BOTH else _MOST_KEYS
    keys = _KEYS_ELSEWHERE if part == pair.CLIENT else max(1, min(_MOST_KEYS, room, of_load))
    of_server, of_client = pair.cpus(options, machine)
    return {
        "threads": min(of_server, MOST_THREADS),
        "client_threads": min(of_client, MOST_THREADS),
        "keys": keys,
        **options,
    }


def memory_mib(options: Options) -> int:
    """What the keys take in the server, with a quarter for what allocators lose."""
    return int(1.25 * options.get("keys", 0) * (options["bytes"] + _OF_A_KEY)) // 1048576 + 1


def limits(options: Options, connections: int) -> Limits:
    """The limits of a run on this host, with the time in which the keys are written."""
    found = pair.limits(options, connections * options["client_hosts"])
    memory = 0 if options["part"] == pair.CLIENT else memory_mib(options)
    return found._replace(
        seconds=found.seconds + options.get("keys", 0) / _SLOWEST_KEYS,
        memory_mib=found.memory_mib + memory,
        needs_mib=found.needs_mib + memory,
    )


def commands(protocol: str, options: Options, connections: int) -> Tuple[Command, ...]:
    """The load. A server alone fills its own store, and the clients wait for that."""
    alone = options["part"] == pair.SERVER
    chosen = {
        "protocol": protocol,
        "servers": (pair.listens_on if alone else pair.connects_to)(options),
        "port": options["port"],
        "connections": connections,
        "processes": min(options.get("client_threads", 1), connections),
        "keys": options.get("keys", 1),
        "fills": options["number"] == 0,
        "seconds": 0 if alone else options["seconds"],
        **{name: options[name] for name in ("bytes", "pipeline", "rate", "read_percent", "requests")},
    }
    load = Command((PROGRAM, json.dumps(chosen)), own=True)
    return (load, pair.until_served(options)) if alone else (load,)


def measured(output: str, options: Options, connections: str) -> Tuple[Dict[str, Metric], Result]:
    """The figures by their names, and a result with all else."""
    document = _READER.json(output)
    began, ended, busy = (_READER.number(_READER.value(document, name)) for name in ("began", "ended", "busy"))
    if not 0 < ended - began < 1e6:
        raise _READER.unreadable("it measured no time")
    histograms: Dict[str, Histogram] = {}
    found: Dict[str, Metric] = {}
    for kind in KINDS:
        if _READER.value(document, kind):
            answers = histograms[f"{kind}_"] = _READER.histogram(_READER.value(document, kind))
            rate = sum(count for _us, count in answers) / (ended - began)
            found.update({kind: _READER.larger(kind, rate, "1/s"), **times(f"{kind}_", answers)})
    if not found:
        raise _READER.unreadable("no answer came")
    counted = {name: _READER.whole(_READER.value(document, name)) for name in ("keys", "misses", "unsent")}
    details = {**pair.details(options, connections), **counted, "busiest_client_thread": f"{100 * busy:.0f} %"}
    details.update(bytes=options["bytes"], client_threads=options.get("client_threads", 1))
    if options["part"] == pair.BOTH:  # otherwise the server has its own
        details["threads"] = options.get("threads", 1)
    return found, Result((), details, histograms, (began, ended))


def served(outputs: Sequence[str]) -> Result:
    """The result on a host with the server alone."""
    return pair.served(outputs[-1])
