# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a network carries between two hosts, how many packets, and how soon: iperf3, sockperf. PRIVATE."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Sequence, Tuple

from ..._error import NearmetalError
from ..._words import plain
from . import pair
from .benchmark import Benchmark, Command, Options, Reader, Result, Run, Tool, seconds_option
from .pair import BOTH, CLIENT, SERVER

_TOOL = "iperf3"
_SOCKPERF = "sockperf"
_OF_IPERF, _OF_SOCKPERF = Reader(_TOOL), Reader(_SOCKPERF)
_TOOLS = {
    _TOOL: Tool(_TOOL, ("--version",), {"debian": "iperf3", "fedora": "iperf3", "amzn": "iperf3", "suse": "iperf"}),
    _SOCKPERF: Tool(_SOCKPERF, ("--version",), {"debian": "sockperf", "fedora": "sockperf"}),
}
_BYTES = 64  # of the payload of one datagram
_PERCENTILE = re.compile(r"percentile ([0-9.]{1,10}) = +([0-9.]{1,20})$", re.ASCII | re.MULTILINE)
_MEAN = re.compile(r"Round trip is ([0-9.]{1,20}) usec$", re.ASCII | re.MULTILINE)
_LOST = re.compile(r"# dropped messages = ([0-9]{1,20});", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}", re.ASCII)


def _check(options: Options) -> None:
    pair.check("network", options, _ADDRESS, must_listen=False)
    other = [name for name in ("packets", "reverse") if options[name]]
    other += ["streams"] if options["streams"] > 1 else ["rate"] if options["rate"] else []
    if options["latency"] and other:
        raise NearmetalError(
            f"benchmark.options of network has latency with {other[0]}; one message at a time waits for its answer, so"
            " leave that out"
        )


def _run_sockperf(options: Options) -> Run:
    """One message of TCP at a time, so that each answer's time is known."""
    port = ("--tcp", "-p", str(options["port"]))
    if options["part"] == SERVER:
        address = _only_address("-i", options)
        several = ((_SOCKPERF, "server", "--tcp", "-p", each, *address) for each in _ports(options))
        return Run((pair.until_served(options),), tuple(several))
    client = [
        *(_SOCKPERF, "ping-pong", *port, "-i", pair.reached_at(options), "-m", str(_BYTES), "--full-rtt"),
        *("-t", str(max(1, round(options["seconds"])))),
    ]
    servers = ((_SOCKPERF, "server", *port, "-i", pair.LOOPBACK),) if options["part"] == BOTH else ()
    return Run((Command(tuple(client)),), servers)


def _run_iperf(options: Options) -> Run:
    server = (_TOOL, "--server", "--one-off", "--port", str(options["port"]))
    if options["part"] == SERVER:
        bind = _only_address("--bind", options)
        if options["client_hosts"] == 1:
            return Run((Command((*server, *bind, "--json")),))
        several = ((_TOOL, "--server", "--port", port, *bind) for port in _ports(options))
        return Run((pair.until_served(options),), tuple(several))
    client = [
        *(_TOOL, "--client", pair.reached_at(options), "--port", str(options["port"]), "--json"),
        *("--time", str(max(1, round(options["seconds"]))), "--parallel", str(options["streams"])),
    ]
    # iperf3 offers so much in each stream.
    offered = options["rate"] * (8 * _BYTES if options["packets"] else 1000000) // options["streams"]
    if options["packets"]:
        client += ["--udp", "--length", str(_BYTES)]
    if options["packets"] or offered:
        client += ["--bitrate", str(offered)]
    if options["reverse"]:
        client.append("--reverse")
    servers = ((*server[:2], *server[3:], "--bind", pair.LOOPBACK),) if options["part"] == BOTH else ()
    return Run((Command(tuple(client)),), servers)


def _only_address(option: str, options: Options) -> Tuple[str, ...]:
    """What lets a server listen on its address alone; with several, or none, it listens on all of the host's."""
    address = options.get("address")
    return (option, address) if address and "," not in address else ()


def _ports(options: Options) -> List[str]:
    """The port of each client's server: iperf3 takes one client at a time."""
    return [str(options["port"] + number) for number in range(options["client_hosts"])]


def _read(outputs: Sequence[str], options: Options) -> Result:
    if options["part"] == SERVER and options["client_hosts"] > 1:
        return pair.served(outputs[0])
    return _read_sockperf(outputs[0], options) if options["latency"] else _read_iperf(outputs, options)


def _read_sockperf(output: str, options: Options) -> Result:
    details: Dict[str, Any] = {"part": options["part"]}
    if options["part"] == SERVER:
        return pair.served(output)  # it only answers
    percentiles = dict(_PERCENTILE.findall(output))
    counts, mean = _LOST.search(output), _MEAN.search(output)
    if counts is None or mean is None or not {"50.000", "99.000", "99.900"} <= set(percentiles):
        raise _OF_SOCKPERF.unreadable("no percentiles of the answers' times")
    lost = _OF_SOCKPERF.number(counts[1])
    details.update(round_trips="TCP", message_bytes=_BYTES, lost=int(lost), offered="one message at a time")
    details["mean_us"] = _OF_SOCKPERF.number(mean[1])
    names = (("p50", "50.000"), ("p99", "99.000"), ("p99.9", "99.900"))
    return Result(
        tuple(_OF_SOCKPERF.smaller(name, _OF_SOCKPERF.number(percentiles[key]), "us") for name, key in names), details
    )


def _read_iperf(outputs: Sequence[str], options: Options) -> Result:
    document = _OF_IPERF.json(outputs[0])
    if isinstance(document, dict) and document.get("error"):
        raise NearmetalError(f"iperf3 couldn't measure: {plain(str(document['error']))}")
    end = _OF_IPERF.value(document, "end")
    protocol = _OF_IPERF.value(document, "start", "test_start", "protocol")
    sent_by = "datagrams a second" if options["packets"] else "Mbit/s"
    offered = f"{options['rate']} {sent_by} by each client" if options["rate"] else "as much as it takes"
    streams = _OF_IPERF.value(end, "streams")
    if not isinstance(streams, list):
        raise _OF_IPERF.unreadable("streams isn't a list")
    details: Dict[str, Any] = {"part": options["part"], "offered": offered, "streams": len(streams)}
    if options["part"] == SERVER and _OF_IPERF.value(document, "start", "test_start", "reverse"):
        return Result((), {**details, "figures_at": CLIENT})  # the server doesn't know what arrived
    if protocol == "TCP":
        bits = _OF_IPERF.larger("throughput", _OF_IPERF.value(end, "sum_received", "bits_per_second"), "Gbit/s")
        if len(streams) > 1:
            given = [_OF_IPERF.value(flow, "receiver", "bits_per_second") for flow in streams]
            flows = [round(_OF_IPERF.number(flow) / 1e9, 3) for flow in given]
            details.update(slowest_flow_gbit=min(flows), fastest_flow_gbit=max(flows))
        return Result((bits._replace(value=bits.value / 1e9),), details)
    received = _OF_IPERF.value(end, "sum_received") if "sum_received" in end else _OF_IPERF.value(end, "sum")
    lost, sent = (_OF_IPERF.whole(_OF_IPERF.value(received, name)) for name in ("lost_packets", "packets"))
    seconds = _OF_IPERF.number(_OF_IPERF.value(received, "seconds"))
    if not sent or not 0 < seconds < 1e6:
        raise _OF_IPERF.unreadable("it sent no packets")
    metric = _OF_IPERF.larger("packets", sent - lost, "1/s")
    rate = metric.value / seconds
    details.update(lost_percent=round(100 * lost / sent, 2), budget_ns=round(1e9 / rate, 1))
    return Result((_OF_IPERF.larger("packets", rate, "1/s"),), details)


NETWORK = Benchmark(
    name="network",
    options={
        "seconds": seconds_option(10.0),
        **pair.OPTIONS,
        "port": {"type": "int", "range": (1024, 65535), "default": 15201},
        "streams": {"type": "int", "range": (1, 128), "default": 1},
        **pair.RATE,
        "packets": {"type": "bool", "default": False},
        "reverse": {"type": "bool", "default": False},
        "latency": {"type": "bool", "default": False},
    },
    tools=tuple(_TOOLS.values()),
    # sockperf doesn't ask the kernel for a port that is still in TIME_WAIT; iperf3 leaves it so.
    limits=lambda options: pair.limits(options)._replace(takes_over=not options["latency"]),
    run=lambda options, _folder: _run_sockperf(options) if options["latency"] else _run_iperf(options),
    read=_read,
    check=_check,
    needs=lambda options: (_TOOLS[_SOCKPERF if options["latency"] else _TOOL],),
    port_each=True,
)
