# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a key-value store in memory answers, as a stand-in for larger ones: Redis. PRIVATE to the collection."""

from __future__ import annotations

from typing import Sequence

from . import pair, requests
from .benchmark import Benchmark, Options, Result, Run, Tool, seconds_option

_OTHER_CLIENTS = 32  # room for more connections: those that fill the store
_SERVER = Tool(
    "redis-server",
    ("--version",),
    {"debian": "redis-server", "fedora": "redis", "amzn": "redis6", "suse": "redis"},
    "redis-server",
    oldest=(6, 2),
    also=("valkey-server", "redis6-server"),  # Amazon Linux 2023 calls it by the name of its package
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
user default on nopass ~key:* -@all +get +set
"""


def _run(options: Options, _folder: str) -> Run:
    load = requests.commands("redis", options, options["clients"])
    if options["part"] == pair.CLIENT:
        return Run(load)
    configuration = _CONFIGURATION.format(
        address=" ".join(pair.listens_on(options)),
        port=options["port"],
        threads=options.get("threads", 1),
        clients=options["clients"] * options["client_hosts"] + requests.MOST_THREADS + _OTHER_CLIENTS,
    )
    return Run(load, (("redis-server", "redis.conf"),), {"redis.conf": configuration})


def _read(outputs: Sequence[str], options: Options) -> Result:
    if options["part"] == pair.SERVER:
        return requests.served(outputs)
    found, result = requests.measured(outputs[0], options, "clients")
    names = [name for kind in requests.KINDS for name in (kind, f"{kind}_p99") if name in found]
    return result._replace(metrics=tuple(found[name] for name in names))


KEY_VALUE = Benchmark(
    name="key_value",
    options={
        "seconds": seconds_option(10.0),
        "clients": {"type": "int", "range": (1, 10000), "default": 50},
        "port": {"type": "int", "range": (1024, 65535), "default": 16379},
        **requests.options_of(size=100),
    },
    tools=(_SERVER,),
    limits=lambda options: requests.limits(options, options["clients"]),
    run=_run,
    read=_read,
    check=lambda options: pair.check("key_value", options),
    needs=lambda options: pair.tools(options, _SERVER),
    fit=requests.fit,
    divides=pair.is_divided,
)
