# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many small answers a web server gives: nginx with wrk. PRIVATE to the collection."""

from __future__ import annotations

from typing import Sequence

from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import (
    Benchmark,
    Command,
    Limits,
    Options,
    Result,
    Run,
    Tool,
    at,
    json_of,
    larger,
    number_of,
    seconds_option,
    smaller,
    unreadable,
    whole,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

_TOOL = "wrk"
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
worker_processes auto;
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
    listen 127.0.0.1:{port}{reuseport};
    location / {{ return 200 "ok\\n"; }}
  }}
}}
"""


def _limits(options: Options) -> Limits:
    return Limits(seconds=2 * options["seconds"] + 60, port=options["port"], connections=options["connections"])


def _run(options: Options, folder: str) -> Run:
    port = options["port"]
    server = _SERVER.format(port=port, reuseport=" reuseport" if options["reuseport"] else "")
    load = [
        *(_TOOL, "-t", str(min(options["threads"], options["connections"])), "-c", str(options["connections"])),
        *("-d", f"{max(1, round(options['seconds']))}s", "--latency", "-s", "done.lua", f"http://127.0.0.1:{port}/"),
    ]
    return Run(
        (Command(tuple(load)),),
        (("nginx", "-p", folder, "-c", f"{folder}/nginx.conf"),),
        {"nginx.conf": server, "done.lua": _SCRIPT},
    )


def _read(outputs: Sequence[str], options: Options) -> Result:
    found = json_of(_TOOL, outputs[0])
    errors = at(_TOOL, found, "errors")
    if errors != 0:
        count = whole(_TOOL, errors)
        raise NearmetalError(f"wrk had {count} errors: the server doesn't keep up, use fewer connections")
    requests, us = (whole(_TOOL, at(_TOOL, found, name)) for name in ("requests", "us"))
    if not us:
        raise unreadable(_TOOL, "it measured no time")
    p99 = smaller(_TOOL, "p99", number_of(_TOOL, at(_TOOL, found, "p99_us")), "ms")
    return Result(
        (larger(_TOOL, "requests", requests / us * 1e6, "1/s"), p99._replace(value=p99.value / 1000)),
        {"reuseport": options["reuseport"], "client_on": "same host"},
    )


WEB = Benchmark(
    name="web",
    question="How many small answers a second does a web server give, and how soon?",
    limitation="what a real network adds: client and server share the host's CPUs",
    options={
        "seconds": seconds_option(10.0),
        "connections": {"type": "int", "range": (1, 4000), "default": 64},
        "threads": {"type": "int", "range": (1, 128), "default": 2},
        "reuseport": {"type": "bool", "default": True},
        "port": {"type": "int", "range": (1024, 65535), "default": 18080},
    },
    tools=(
        Tool(
            "nginx",
            ("-v",),
            {"debian": "nginx-light", "fedora": "nginx", "amzn": "nginx", "suse": "nginx"},
            "nginx",
        ),
        Tool(_TOOL, ("-v",), {"debian": "wrk"}),
    ),
    limits=_limits,
    run=_run,
    read=_read,
)
