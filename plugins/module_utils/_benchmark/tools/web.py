# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many small answers a web server gives: nginx with wrk. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from ..._error import NearmetalError
from . import pair
from .benchmark import Benchmark, Command, Machine, Options, Reader, Result, Run, Tool, seconds_option

_TOOL = "wrk"
_READER = Reader(_TOOL)
_SERVER_TOOL = Tool(
    "nginx", ("-v",), {"debian": "nginx-light", "fedora": "nginx", "amzn": "nginx", "suse": "nginx"}, "nginx"
)
_LOAD_TOOL = Tool(_TOOL, ("-v",), {"debian": "wrk"})
_MOST_THREADS = 128
_SCRIPT = """done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests": %d, "us": %d, "errors": %d, "p50_us": %.0f, "p99_us": %.0f}\\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""
_SERVER = """daemon off;
worker_processes {workers};
pid nginx.pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen {address}:{port}{reuseport};
    location / {{ return 200 "ok\\n"; }}
  }}
}}
"""


def _check(options: Options) -> None:
    pair.check("web", options)


def _fit(options: Options, machine: Machine) -> Options:
    return {
        "workers": pair.server_cpus(options, machine),
        "threads": min(pair.client_cpus(options, machine), _MOST_THREADS),
        **options,
    }


def _run(options: Options, folder: str) -> Run:
    port, seconds = options["port"], max(1, round(options["seconds"]))
    configuration = _SERVER.format(
        address=pair.listens_on(options),
        port=port,
        reuseport=" reuseport" if options["reuseport"] else "",
        workers=options.get("workers", 1),
    )
    servers = (("nginx", "-p", folder, "-c", f"{folder}/nginx.conf"),)
    if options["part"] == pair.SERVER:
        return Run((pair.until_served(options),), servers, {"nginx.conf": configuration})
    load = [
        *(_TOOL, "-t", str(min(options.get("threads", 1), options["connections"]))),
        *("-c", str(options["connections"]), "-d", f"{seconds}s"),
        *("--latency", "-s", "done.lua", f"http://{pair.reached_at(options)}:{port}/"),
    ]
    if options["part"] == pair.CLIENT:
        return Run((Command(tuple(load)),), (), {"done.lua": _SCRIPT})
    return Run((Command(tuple(load)),), servers, {"nginx.conf": configuration, "done.lua": _SCRIPT})


def _read(outputs: Sequence[str], options: Options) -> Result:
    if options["part"] == pair.SERVER:
        return pair.served(outputs[0])
    document = _READER.json(outputs[0])
    errors = _READER.value(document, "errors")
    if errors != 0:
        count = _READER.whole(errors)
        raise NearmetalError(f"wrk had {count} errors: the server doesn't keep up, use fewer connections")
    requests, us = (_READER.whole(_READER.value(document, name)) for name in ("requests", "us"))
    if not us:
        raise _READER.unreadable("it measured no time")
    p99 = _READER.smaller("p99", _READER.number(_READER.value(document, "p99_us")), "ms")
    details: Dict[str, Any] = pair.details(options)
    if options["part"] == pair.BOTH:  # otherwise the server has its own settings, which the client doesn't know
        details.update(reuseport=options["reuseport"], workers=options.get("workers", 1))
    return Result(
        (_READER.larger("requests", requests / us * 1e6, "1/s"), p99._replace(value=p99.value / 1000)), details
    )


WEB = Benchmark(
    name="web",
    question="How many small answers a second does a web server give, and how soon?",
    limitation="with part: both what a real network adds, and more than half of the host's CPUs",
    options={
        "seconds": seconds_option(10.0),
        "connections": {"type": "int", "range": (1, 4000), "default": 64},
        "threads": {"type": "int", "range": (1, _MOST_THREADS)},
        "reuseport": {"type": "bool", "default": True},
        "port": {"type": "int", "range": (1024, 65535), "default": 18080},
        **pair.OPTIONS,
    },
    tools=(_SERVER_TOOL, _LOAD_TOOL),
    limits=lambda options: pair.limits(options, options["connections"]),
    run=_run,
    read=_read,
    check=_check,
    needs=lambda options: pair.tools(options, _SERVER_TOOL, _LOAD_TOOL),
    fit=_fit,
    divides=pair.is_divided,
)
