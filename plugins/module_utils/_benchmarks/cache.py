# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many requests a cache answers: memcached with memcaslap. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Sequence

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
    unreadable,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

_TOOL = "memcaslap"
# Keys of 64 bytes and values of 1,024 bytes; command 0 is set, 1 is get, each with its share.
_LOAD = "key\n64 64 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9\n"
_OTHER_CONNECTIONS = 64  # memcached takes 1,024 by itself
_RATE = re.compile(r"^Run time: [0-9.]{1,20}s Ops: [0-9]{1,20} TPS: ([0-9]{1,20}) ", re.ASCII | re.MULTILINE)
_MISSES = re.compile(r"^get_misses: ([0-9]{1,20})$", re.ASCII | re.MULTILINE)


def _check(options: Options) -> None:
    if options["connections"] % options["client_threads"]:
        raise NearmetalError(
            f"benchmark.options of cache has {options['connections']} connections for {options['client_threads']}"
            " client_threads: memcaslap takes a multiple of its threads"
        )


def _limits(options: Options) -> Limits:
    return Limits(seconds=2 * options["seconds"] + 60, port=options["port"], connections=options["connections"])


def _run(options: Options, _folder: str) -> Run:
    port = str(options["port"])
    server = [
        *("memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "256", "-t", str(options["threads"])),
        *("-c", str(options["connections"] + _OTHER_CONNECTIONS)),
    ]
    load = [
        *(_TOOL, "-s", f"127.0.0.1:{port}", "-T", str(options["client_threads"]), "-c", str(options["connections"])),
        *("-t", f"{max(1, round(options['seconds']))}s", "-F", "load.cnf"),
    ]
    return Run((Command(tuple(load)),), (tuple(server),), {"load.cnf": _LOAD})


def _read(outputs: Sequence[str], options: Options) -> Result:
    rate, misses = _RATE.search(outputs[0]), _MISSES.search(outputs[0])
    if rate is None or misses is None:
        raise unreadable(_TOOL, "no line with TPS and get_misses")
    return Result(
        (larger(_TOOL, "requests", number_of(_TOOL, rate[1]), "1/s"),),
        {"get_misses": int(misses[1]), "threads": options["threads"], "client_on": "same host"},
    )


CACHE = Benchmark(
    name="cache",
    question="How many requests a second, nine in ten of them reads, does a cache answer?",
    limitation="what a real network adds: client and server share the host's CPUs",
    options={
        "seconds": seconds_option(10.0),
        "connections": {"type": "int", "range": (1, 10000), "default": 64},
        "threads": {"type": "int", "range": (1, 128), "default": 4},
        "client_threads": {"type": "int", "range": (1, 128), "default": 2},
        "port": {"type": "int", "range": (1024, 65535), "default": 21211},
    },
    tools=(
        Tool(
            "memcached",
            ("-V",),
            {"debian": "memcached", "fedora": "memcached", "amzn": "memcached", "suse": "memcached"},
            "memcached",
        ),
        Tool(_TOOL, ("-V",), {"debian": "libmemcached-tools"}),
    ),
    limits=_limits,
    run=_run,
    read=_read,
    check=_check,
)
