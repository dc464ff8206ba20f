# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server and its load, on one host or on a host each. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Tuple

from ..._error import NearmetalError
from ..._planning.options import Spec
from ..._words import shown
from .benchmark import Command, Limits, Machine, Options, Reader, Result, Tool

BOTH, SERVER, CLIENT = "both", "server", "client"
PROGRAM = "connections"
_READER = Reader(PROGRAM)
LOOPBACK = "127.0.0.1"
# Seconds that a server waits for its client: Ansible starts one after the other, which takes long on slow hosts.
WAITS = 120
# A name or an address of IPv4: nginx and wrk take what follows a colon for the port.
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)

OPTIONS: Spec = {
    "part": {"type": "str", "choices": [BOTH, SERVER, CLIENT], "default": BOTH},
    "server": {"type": "str"},
    "address": {"type": "str"},
    "client_hosts": {"type": "int", "range": (1, 64), "default": 1},
    "number": {"type": "int", "range": (0, 63), "default": 0},
}
# What is offered: as much as the connections get answered, or so many requests a second.
RATE: Spec = {"rate": {"type": "int", "range": (0, 100000000), "default": 0}}


def check(name: str, options: Options, pattern: "re.Pattern[str]" = _ADDRESS, must_listen: bool = True) -> None:
    """Raises NearmetalError where the options don't say where the server listens, or where the client finds it."""
    part, server, address = options["part"], options.get("server"), options.get("address")
    wrong = address is not None and (part != SERVER or not all(map(pattern.fullmatch, address.split(","))))
    if wrong or (part == SERVER and must_listen and address is None):
        raise NearmetalError(
            f"benchmark.options of {name} has address: {shown(address)}; it must be the address of the host on"
            " which part: server listens"
        )
    if part == CLIENT and not (server and all(map(pattern.fullmatch, server.split(",")))):
        raise NearmetalError(
            f"benchmark.options of {name} has server: {shown(server)}; part: client needs the name or the address of"
            " the host on which part: server runs"
        )
    if part != CLIENT and server is not None:
        raise NearmetalError(f"benchmark.options of {name} has server: {shown(server)}; only part: client takes it")


def listens_on(options: Options) -> List[str]:
    """The addresses of the server on its own host."""
    return str(options.get("address") or LOOPBACK).split(",")


def connects_to(options: Options) -> List[str]:
    """The server's addresses for the client."""
    return str(options.get("server") or LOOPBACK).split(",")


def reached_at(options: Options) -> str:
    """The one of the server's addresses at which this client's turn is, for a tool that takes one."""
    addresses = connects_to(options)
    return addresses[int(options["number"]) % len(addresses)]


def until_served(options: Options) -> Command:
    """On a host with the server alone: wait until the client has come and gone."""
    longest = 3 * options["seconds"] + 60
    return Command((PROGRAM, str(options["port"]), str(WAITS), f"{longest:g}"), own=True)


def limits(options: Options, connections: int = 0) -> Limits:
    """The limits of a run on this host. A server alone also waits for its client; a client alone has no port."""
    seconds = 3 * options["seconds"] + 60 + (WAITS if options["part"] == SERVER else 0)
    return Limits(seconds, port=0 if options["part"] == CLIENT else int(options["port"]), connections=connections)


def cpus(options: Options, machine: Machine) -> Tuple[int, int]:
    """How many CPUs the server and the load have."""
    of_both = options["part"] == BOTH
    return (machine.server_cpus, machine.client_cpus) if of_both else (machine.cpus, machine.cpus)


def served(output: str) -> Result:
    """The result on a host with the server alone: the client has the figures."""
    most = _READER.whole(_READER.value(_READER.json(output), "connections"))
    if not most:
        raise NearmetalError(
            f"no client came within {WAITS} s: check that the port is open to it and that it got this address"
        )
    return Result((), {"part": SERVER, "connections": most, "figures_at": CLIENT})


def details(options: Options, connections: str) -> Dict[str, Any]:
    """Where the load came from, and what it offered: part of what each figure means."""
    closed = f"as much as {options[connections]} connections get answered"
    offered = f"{options['rate']} 1/s by each client" if options.get("rate") else closed
    return {"client_on": "same host" if options["part"] == BOTH else "a host of its own", "offered": offered}


def tools(options: Options, server: Tool, *client: Tool) -> Tuple[Tool, ...]:
    """The tools that this host needs."""
    return {BOTH: (server, *client), SERVER: (server,), CLIENT: client}[options["part"]]


def is_divided(options: Mapping[str, Any]) -> bool:
    """Whether server and load are to have CPUs of their own on one host."""
    return bool(options["part"] == BOTH)
