# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a ready benchmark once, within its limits. PRIVATE to the collection."""

from __future__ import annotations

import inspect
import shlex
import sys
import time
from typing import Any, Callable, List, Mapping, NamedTuple, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import (
    Command,
    Result,
    Tool,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.registry import BENCHMARKS
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.benchmark import clock_read, refusals
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.benchmark.session import Session, Usage
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import clipped, printable

_PROGRAMS = {"clock_read": clock_read}
_FOLDER = "/var/tmp"  # in memory on no distribution, unlike /tmp
_LONGEST_VERSION = 80


class Measured(NamedTuple):
    """One run of a benchmark, and by what."""

    result: Result
    commands: Tuple[str, ...]  # as somebody would type them
    versions: Mapping[str, str]  # tool → what it says about itself
    used: Usage
    seconds: float


def measure(
    host: Host,
    name: str,
    options: Mapping[str, Any],
    goes_on: Callable[[], bool],
    seconds: float = float("inf"),
) -> Measured:
    """Run a benchmark once with checked options, for at most `seconds`, and as long as `goes_on`.

    Raises NearmetalError.

    Whatever happens, no process and no file of it is left.
    """
    benchmark = BENCHMARKS[name]
    limits = benchmark.limits(options)
    folder = str(options.get("directory") or _FOLDER)
    demand(host, name, options)
    started = time.monotonic()
    until = started + min(limits.seconds, seconds)
    with Session(folder, limits.memory_mib) as session:
        run = benchmark.run(options, session.folder)
        versions = {tool.program: _version(session, tool, until) for tool in benchmark.tools}
        for file_name, text in run.files.items():
            session.write(file_name, text)
        for server in run.servers:
            session.serve(server, limits.port)
        outputs: List[str] = []
        begun: List[Command] = []
        commands = run.commands
        while commands:
            begun += commands
            outputs += [
                session.complete(_argv(command), until, goes_on, command.as_root, command.result)
                for command in commands
            ]
            commands = benchmark.then(outputs, options)
    return Measured(
        benchmark.read(outputs, options),
        tuple(shlex.join(argv) for argv in (*run.servers, *(command.argv for command in begun))),
        versions,
        session.used,
        round(time.monotonic() - started, 3),
    )


def demand(host: Host, name: str, options: Mapping[str, Any]) -> None:
    """Raises NearmetalError for what keeps the benchmark from running here."""
    benchmark = BENCHMARKS[name]
    limits = benchmark.limits(options)
    folder = str(options.get("directory") or _FOLDER)
    for tool in benchmark.tools:
        refusals.demand_tool(host, tool)
    refusals.demand_setpriv()
    refusals.demand_memory(host, limits)
    refusals.demand_disk(host, folder, limits)
    refusals.demand_room(folder, limits)
    refusals.demand_port(limits.port)


def _argv(command: Command) -> List[str]:
    if not command.own:
        return list(command.argv)
    # A module of Ansible's payload is no file, so Python gets its text.
    return [sys.executable, "-I", "-c", inspect.getsource(_PROGRAMS[command.argv[0]]), *command.argv[1:]]


def _version(session: Session, tool: Tool, until: float) -> str:
    lines = session.answer([tool.program, *tool.version], until).split("\n")
    said = next((line.strip() for line in lines if line.strip()), "")
    version = clipped(printable(said), _LONGEST_VERSION)
    refusals.demand_version(tool, version, "\n".join(lines))
    return version
