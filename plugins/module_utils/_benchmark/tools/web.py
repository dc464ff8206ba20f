# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many small answers a web server gives: nginx with wrk. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from ..._error import NearmetalError
from . import pair
from .benchmark import Benchmark, Command, Machine, Options, Reader, Result, Run, Tool, seconds_option
from .histogram import times

_TOOL = "wrk"
_READER = Reader(_TOOL)
_SERVER_TOOL = Tool(
    "nginx", ("-v",), {"debian": "nginx-light", "fedora": "nginx", "amzn": "nginx", "suse": "nginx"}, "nginx"
)
_LOAD_TOOL = Tool(_TOOL, ("-v",), {"debian": "wrk"})
_MOST_THREADS = 128
# The answers' times are counted by three digits. With a rate, a thread sends its next request when that is due.
_SCRIPT = """done = function(summary, latency, requests)
  local errors, counts, bins = summary.errors, {{}}, {{}}
  for i = 1, #latency do
    local us, count = latency(i)
    local step = 10 ^ math.max(0, math.floor(math.log10(math.max(us, 1))) - 2)
    us = math.ceil(us / step) * step
    counts[us] = (counts[us] or 0) + count
  end
  for us, count in pairs(counts) do bins[#bins + 1] = string.format('[%.0f,%.0f]', us, count) end
  io.write(string.format(
    '{{"requests": %d, "us": %d, "errors": %d, "bins": [%s]}}\\n', summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout, table.concat(bins, ',')))
end
local rate, sent, began = {rate:g}, 0, nil
if rate > 0 then
  local ffi = require('ffi')
  ffi.cdef('int gettimeofday(int64_t now[2], void *zone);')
  local time = ffi.new('int64_t[2]')
  function delay()
    ffi.C.gettimeofday(time, nil)
    local now = tonumber(time[0]) + tonumber(time[1]) / 1e6
    began, sent = began or now, sent + 1
    return math.max(0, (began + sent / rate - now) * 1000)
  end
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
{listen}
    location / {{ return 200 "ok\\n"; }}
  }}
}}
"""


def _fit(options: Options, machine: Machine) -> Options:
    workers, threads = pair.cpus(options, machine)
    return {"workers": workers, "threads": min(threads, _MOST_THREADS), **options}


def _run(options: Options, folder: str) -> Run:
    port, seconds = options["port"], max(1, round(options["seconds"]))
    reuseport = " reuseport" if options["reuseport"] else ""
    configuration = _SERVER.format(
        listen="\n".join(f"    listen {address}:{port}{reuseport};" for address in pair.listens_on(options)),
        workers=options.get("workers", 1),
    )
    servers = (("nginx", "-p", folder, "-c", f"{folder}/nginx.conf"),)
    if options["part"] == pair.SERVER:
        return Run((pair.until_served(options),), servers, {"nginx.conf": configuration})
    threads = min(options.get("threads", 1), options["connections"])
    load = [
        *(_TOOL, "-t", str(threads), "-c", str(options["connections"]), "-d", f"{seconds}s"),
        *(() if options["keep_alive"] else ("-H", "Connection: close")),
        *("-s", "done.lua", f"http://{pair.reached_at(options)}:{port}/"),
    ]
    script = {"done.lua": _SCRIPT.format(rate=options["rate"] / threads)}
    if options["part"] == pair.CLIENT:
        return Run((Command(tuple(load)),), (), script)
    return Run((Command(tuple(load)),), servers, {"nginx.conf": configuration, **script})


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
    answers = _READER.histogram(_READER.value(document, "bins"))
    details: Dict[str, Any] = pair.details(options, "connections")
    if options["part"] == pair.BOTH:  # otherwise the server has its own settings, which the client doesn't know
        details.update(reuseport=options["reuseport"], workers=options.get("workers", 1))
    rate = _READER.larger("requests", requests / us * 1e6, "1/s")
    return Result((rate, times("", answers)["p99"]), details, {"": answers})


WEB = Benchmark(
    name="web",
    options={
        "seconds": seconds_option(10.0),
        "connections": {"type": "int", "range": (1, 4000), "default": 64},
        "threads": {"type": "int", "range": (1, _MOST_THREADS)},
        "reuseport": {"type": "bool", "default": True},
        "keep_alive": {"type": "bool", "default": True},
        "port": {"type": "int", "range": (1024, 65535), "default": 18080},
        **pair.RATE,
        **pair.OPTIONS,
    },
    tools=(_SERVER_TOOL, _LOAD_TOOL),
    limits=lambda options: pair.limits(options, options["connections"] * options["client_hosts"]),
    run=_run,
    read=_read,
    check=lambda options: pair.check("web", options),
    needs=lambda options: pair.tools(options, _SERVER_TOOL, _LOAD_TOOL),
    fit=_fit,
    divides=pair.is_divided,
)
