# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many requests a cache answers: memcached. PRIVATE to the collection."""

from __future__ import annotations

from typing import Sequence

from . import pair, requests
from .benchmark import Benchmark, Options, Reader, Result, Run, Tool, seconds_option
from .histogram import histogram_of, times

_SERVER = Tool(
    "memcached",
    ("-V",),
    {"debian": "memcached", "fedora": "memcached", "amzn": "memcached", "suse": "memcached"},
    "memcached",
)
_OTHER_CONNECTIONS = 64  # memcached takes 1,024 by itself
_LEAST_MIB = 256


def _run(options: Options, _folder: str) -> Run:
    load = requests.commands("memcached", options, options["connections"])
    if options["part"] == pair.CLIENT:
        return Run(load)
    connections = options["connections"] * options["client_hosts"] + requests.MOST_THREADS + _OTHER_CONNECTIONS
    server = [
        *("memcached", "-l", ",".join(pair.listens_on(options)), "-p", str(options["port"]), "-U", "0"),
        *("-m", str(_LEAST_MIB + requests.memory_mib(options)), "-t", str(options.get("threads", 1))),
        *("-c", str(connections)),
    ]
    return Run(load, (tuple(server),))


def _read(outputs: Sequence[str], options: Options) -> Result:
    if options["part"] == pair.SERVER:
        return requests.served(outputs)
    found, result = requests.measured(outputs[0], options, "connections")
    answers = histogram_of([entry for each in result.histograms.values() for entry in each])
    rate = sum(found[kind].value for kind in requests.KINDS if kind in found)
    metrics = (Reader("requests").larger("requests", rate, "1/s"), times("", answers)["p99"])
    return result._replace(metrics=metrics, histograms={"": answers, **result.histograms})


CACHE = Benchmark(
    name="cache",
    options={
        "seconds": seconds_option(10.0),
        "connections": {"type": "int", "range": (1, 10000), "default": 64},
        "port": {"type": "int", "range": (1024, 65535), "default": 21211},
        **requests.options_of(size=1024),
    },
    tools=(_SERVER,),
    limits=lambda options: requests.limits(options, options["connections"]),
    run=_run,
    read=_read,
    check=lambda options: pair.check("cache", options),
    needs=lambda options: pair.tools(options, _SERVER),
    fit=requests.fit,
    divides=pair.is_divided,
)
