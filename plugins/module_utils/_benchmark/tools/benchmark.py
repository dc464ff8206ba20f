# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a ready benchmark is: a declaration, the commands of one run, and what their output says. Pure. PRIVATE."""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._error import NearmetalError
from ..._parse import json_text
from ..._planning.options import Spec
from ..._prove.statistics.metrics import LARGER, LARGEST, SMALLER, SMALLEST, Metric
from ..._words import shown
from .histogram import Histogram, histogram_of

Options = Mapping[str, Any]
Span = Optional[Tuple[float, float]]  # when the load itself ran, by its host's clock: seconds since 1970

# The families of distributions, by ID or ID_LIKE of os-release, and how each installs a package.
INSTALLS: Mapping[str, str] = {
    "debian": "apt-get install",
    "amzn": "dnf install",
    "fedora": "dnf install",
    "suse": "zypper install",
}
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
_LONGEST_NUMBER = 40
_PATH = re.compile(r"(/[A-Za-z0-9_.+@-]{1,255}){1,32}/?", re.ASCII)


class Tool(NamedTuple):
    """A program that a benchmark starts."""

    program: str  # its name, or the path that the user gave
    version: Tuple[str, ...]  # the arguments by which it says its version; empty: it doesn't
    packages: Mapping[str, str]  # a family of INSTALLS → its package; a family without it has none
    service: str = ""  # which Debian's package starts, and Ubuntu's
    oldest: Tuple[int, ...] = ()  # the first version with what the benchmark needs
    has: str = ""  # what it must name among its options, which `version` lists
    also: Tuple[str, ...] = ()  # what others call the same program


class Machine(NamedTuple):
    """What of a host some options depend on that the user left out."""

    cpus: int  # online
    cache_kib: int  # of the largest cache that a CPU uses; 0: the kernel names none
    # Where server and load share the host, the CPUs of each.
    server_cpus: int = 1
    client_cpus: int = 1
    memory_mib: int = 0  # available


class Limits(NamedTuple):
    """What one run may use. More of it ends the run, or keeps it from starting."""

    seconds: float
    memory_mib: int = 1024  # of each process
    needs_mib: int = 128  # of memory that must be available
    disk_mib: int = 0  # that its files need
    port: int = 0  # on which its server listens; 0: it has none
    takes_over: bool = True  # whether the server takes a port on which connections of an earlier run still end
    connections: int = 0  # to its server, from one process


class Command(NamedTuple):
    """A program that is run to its end. Its output is read."""

    argv: Tuple[str, ...]
    own: bool = False  # a program of this collection: the first word names its file in _benchmark/host
    as_root: bool = False  # otherwise it runs as nobody
    result: str = ""  # the file that a command as root writes and that is read in place of its output
    messages: bool = False  # its figures may be among its messages, on standard error


class Run(NamedTuple):
    """What one run starts: the servers together, then the commands, one after the other."""

    commands: Tuple[Command, ...]
    servers: Tuple[Tuple[str, ...], ...] = ()
    files: Mapping[str, str] = {}  # name → text, in the run's folder


class Result(NamedTuple):
    """What a run measured."""

    metrics: Tuple[Metric, ...]  # the first one decides in prove
    details: Mapping[str, Any]  # what belongs to the figures and isn't compared: "clock_source": "tsc"
    histograms: Mapping[str, Histogram] = {}  # the start of its figures' names, such as "read_" → the answers' times
    span: Span = None


class Benchmark(NamedTuple):
    """One ready benchmark. docs/benchmarks.md says what it answers, and what it can't say."""

    name: str
    options: Spec  # each benchmark has `seconds`, the time that it measures
    tools: Tuple[Tool, ...]  # all of them
    run: Callable[[Options, str], Run]  # the options and the run's folder → what is started
    read: Callable[[Sequence[str], Options], Result]  # the commands' outputs → the result; raises NearmetalError
    limits: Callable[[Options], Limits] = lambda options: Limits(2 * options["seconds"] + 60)
    check: Callable[[Options], None] = lambda options: None  # raises NearmetalError for options that don't fit
    # The tools that a run with these options starts; by default all of them.
    needs: Optional[Callable[[Options], Tuple[Tool, ...]]] = None
    # The options with what the user left out and only the host knows; by default there is nothing of the kind.
    fit: Optional[Callable[[Options, Machine], Options]] = None
    # The outputs so far → the commands that follow from them; none ends the run. Raises NearmetalError.
    then: Callable[[Sequence[str], Options], Tuple[Command, ...]] = lambda outputs, options: ()
    disks: bool = False  # whether its details name the disks that it loaded
    # Whether its servers and its commands are to have CPUs of their own.
    divides: Callable[[Options], bool] = lambda options: False
    port_each: bool = False  # whether a server takes one client, so that each of several has one at a port of its own


def tools_of(benchmark: Benchmark, options: Options) -> Tuple[Tool, ...]:
    """The tools that a run with these options starts."""
    return benchmark.needs(options) if benchmark.needs else benchmark.tools


def require_path(name: str, options: Options, what: str) -> None:
    """Raises NearmetalError where the option `path` doesn't say where the user has a tool."""
    path = options.get("path")
    if path is None or not _PATH.fullmatch(path) or "/.." in path:
        raise NearmetalError(
            f"benchmark.options of {name} has path: {shown(path)}; it must be the absolute path of {what}, which"
            " no distribution has"
        )


def seconds_option(default: float) -> Mapping[str, Any]:
    """The option that each benchmark has."""
    return {"type": "float", "default": default}


class Reader(NamedTuple):
    """Reads what a tool printed. Raises NearmetalError for anything that no benchmark prints."""

    tool: str

    def smaller(self, name: str, value: Any, unit: str) -> Metric:
        """A metric of which less is better."""
        return Metric(name, self._figure(name, value), unit, SMALLER)

    def larger(self, name: str, value: Any, unit: str) -> Metric:
        """A metric of which more is better."""
        return Metric(name, self._figure(name, value), unit, LARGER)

    def _figure(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not SMALLEST <= value <= LARGEST:
            raise NearmetalError(
                f"{self.tool} has {shown(value)} for {name}, which isn't a number above zero: run the benchmark again"
            )
        return float(value)

    def number(self, value: Any) -> float:
        """The number of a text or of JSON."""
        text = value if isinstance(value, str) else ""
        if text and not (len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text)):
            raise self.unreadable(f"{shown(text)} isn't a number")
        if not text and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise self.unreadable(f"{shown(value)} isn't a number")
        return float(value)

    def whole(self, value: Any) -> int:
        """A count of JSON."""
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            raise self.unreadable("a count isn't a whole number")
        return value

    def histogram(self, bins: Any) -> Histogram:
        """The times of the tool's answers, of which there must be some."""
        try:
            histogram = histogram_of(bins)
        except ValueError as error:
            raise self.unreadable(str(error)) from None
        if not histogram:
            raise self.unreadable("no answer came")
        return histogram

    def json(self, output: str) -> Any:
        """The JSON that the tool printed, with what stood before it left out."""
        start = output.find("{")
        try:
            return json_text.parse(output[max(start, 0) :])
        except ValueError as error:
            raise self.unreadable(str(error)) from None

    def value(self, document: Any, *path: Any) -> Any:
        """The value at a path into the JSON."""
        for step in path:
            try:
                document = document[step]
            except (KeyError, IndexError, TypeError):
                raise self.unreadable(f"{'.'.join(map(str, path))} is absent") from None
        return document

    def unreadable(self, reason: str) -> NearmetalError:
        """The error for an output of another form."""
        return NearmetalError(
            f"{self.tool} printed what this version of nearmetal can't read ({reason}): this version of {self.tool}"
            " may be too old or too new"
        )
