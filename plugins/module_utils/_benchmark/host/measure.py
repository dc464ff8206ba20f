# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a ready benchmark once, within its limits. PRIVATE to the collection."""

from __future__ import annotations

import inspect
import shlex
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..._facts.host import Host
from ..._host.host import WritableHost
from ..._parse import cpulist
from ..._words import clipped, printable
from ..tools import histogram
from ..tools.benchmark import Benchmark, Command, Options, Result, Tool, tools_of
from ..tools.registry import BENCHMARKS
from . import clock_read, connections, disks, machine, page_fault, raw_device, refusals, requests
from .processes import Session, Usage

_PROGRAMS = {"clock_read": clock_read, "page_fault": page_fault, "connections": connections, "requests": requests}
_FOLDER = "/var/tmp"  # in memory on no distribution, unlike /tmp
_LONGEST_VERSION = 80


class Measured(NamedTuple):
    """One run of a benchmark, with the commands and the tools that made it."""

    result: Result
    commands: Tuple[str, ...]  # as somebody would type them
    versions: Mapping[str, str]  # tool → what it says about itself
    used: Usage
    seconds: float


def measure(host: WritableHost, name: str, options: Options, goes_on: Callable[[], bool]) -> Measured:
    """Run a benchmark once with checked options, within its limits, and as long as `goes_on`. Raises NearmetalError.

    Whatever happens, no process and no file of it is left.
    """
    benchmark = BENCHMARKS[name]
    with raw_device.claimed(host, machine.fit(host, benchmark, options)) as settled:
        _require(host, name, settled)
        return _measured(host, benchmark, settled, goes_on)


def _measured(host: WritableHost, benchmark: Benchmark, options: Options, goes_on: Callable[[], bool]) -> Measured:
    limits = benchmark.limits(options)
    require_tools(host, benchmark, options)
    before = disks.counters(host) if benchmark.disks else {}
    server_cpus, client_cpus = machine.divide_cpus(host) if benchmark.divides(options) else ((), ())
    started = time.monotonic()
    until = started + limits.seconds
    with Session(_folder(options), limits.memory_mib) as session:
        run = benchmark.run(options, session.folder)
        tools = {tool.program: tool for tool in tools_of(benchmark, options)}
        versions = {name: _version(session, tool, until) for name, tool in tools.items() if tool.version}
        for file_name, text in run.files.items():
            session.write(file_name, text)
        for number, server in enumerate(run.servers):
            session.serve(_named(server, tools), limits.port + number, server_cpus)
        outputs: List[str] = []
        begun: List[Command] = []
        commands, began = run.commands, time.time()
        while commands:
            begun += commands
            for command in commands:
                began = time.time()
                argv = _own_program(command) if command.own else _named(command.argv, tools)
                how = (command.as_root, command.result, command.messages, client_cpus)
                outputs.append(session.complete(argv, until, goes_on, *how))
            commands = benchmark.then(outputs, options)
        span = (began, time.time())
    result = benchmark.read(outputs, options)
    result = result._replace(span=result.span or span)
    details = {**result.details, **histogram.details(result.histograms, result.metrics)}
    if benchmark.divides(options):
        details.update(_division(server_cpus, client_cpus))
    if benchmark.disks:
        details.update(disks.loaded(host, details["disks"], before, disks.counters(host)))
    return Measured(
        result._replace(details=details),
        tuple(" ".join(map(shlex.quote, argv)) for argv in (*run.servers, *(command.argv for command in begun))),
        versions,
        session.used,
        round(time.monotonic() - started, 3),
    )


def _division(server: Sequence[int], client: Sequence[int]) -> Dict[str, Any]:
    """Which of the host's CPUs the server and its load had."""
    if not server:
        return {"cpus": "shared by server and client"}
    return {"server_cpus": cpulist.render(server), "client_cpus": cpulist.render(client)}


def require(host: Host, name: str, options: Options) -> None:
    """Raises NearmetalError for what keeps the benchmark from running here, its tools left out."""
    with raw_device.claimed(host, options) as settled:
        _require(host, name, settled)


def _require(host: Host, name: str, options: Options) -> None:
    benchmark = BENCHMARKS[name]
    limits = benchmark.limits(machine.fit(host, benchmark, options))
    refusals.require_setpriv()
    refusals.require_connections(host, limits)
    refusals.require_memory(host, limits)
    refusals.require_disk(host, _folder(options), limits)
    refusals.require_room(_folder(options), limits)
    refusals.require_port(limits.port, limits.takes_over)


def require_tools(host: Host, benchmark: Benchmark, options: Options) -> None:
    """Raises NearmetalError for a tool that isn't installed."""
    for tool in tools_of(benchmark, options):
        refusals.require_tool(host, tool)


def _folder(options: Options) -> str:
    return str(options.get("directory") or _FOLDER)


def _named(argv: Sequence[str], tools: Mapping[str, Tool]) -> List[str]:
    """The command with the name that its program has on this host."""
    tool = tools.get(argv[0])
    return [(refusals.program_of(tool) if tool else None) or argv[0], *argv[1:]]


def _own_program(command: Command) -> List[str]:
    # A module of Ansible's payload is no file, so Python gets its text.
    return [sys.executable, "-I", "-c", inspect.getsource(_PROGRAMS[command.argv[0]]), *command.argv[1:]]


def _version(session: Session, tool: Tool, until: float) -> str:
    lines = session.answer([refusals.program_of(tool) or tool.program, *tool.version], until).split("\n")
    said = next((line.strip() for line in lines if line.strip()), "")
    version = clipped(printable(said), _LONGEST_VERSION)
    refusals.require_version(tool, version, "\n".join(lines))
    return version
