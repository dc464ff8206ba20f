# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checksum of what a plan depends on and may change while a host runs. PRIVATE to the collection.

An ENA reset renews queues and interrupts without any event, so a timer compares the
checksum every two minutes: that costs a few reads, no plan, and hardly any imports.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from . import irqbalance_process
from .host import Host
from .interface import NET, is_up


def fingerprint(host: Host) -> str:
    """A checksum of CPUs, nodes, NICs with resets, queues, addresses and own routes, disks, and interrupts by name."""
    return format(zlib.crc32("\n".join(_shape(host)).encode("utf-8", "replace")), "08x")


def _shape(host: Host) -> Iterator[str]:
    for path in ("/sys/devices/system/cpu/online", "/sys/devices/system/node/online"):
        yield f"{path} {host.line(path)}"
    yield f"irqbalance {irqbalance_process.arguments(host)}"
    nics = [name for name in host.names(NET) if _real(host, f"{NET}/{name}")]
    for name in nics:
        # An interface that is down isn't tuned, and no event tells that it is brought up. A driver that resets its
        # device may give new interrupts the old numbers, with other affinities, but it drops the carrier first.
        resets = host.line(f"{NET}/{name}/carrier_changes")
        yield f"{name} {is_up(host, name)} {resets} {' '.join(host.names(f'{NET}/{name}/queues'))}"
    yield from _addresses(host)
    if len(nics) > 1:
        # A program that manages the network removes rules of others, and a NIC that goes down takes its routes along.
        # No host with one NIC has any: its look imports nothing for them.
        from . import routes

        yield from routes.list_nearmetal_routes(host)
    for name in host.names("/sys/block"):
        if _real(host, f"/sys/block/{name}"):
            yield f"{name} {' '.join(host.names(f'/sys/block/{name}/mq'))}"
    for line in (host.text("/proc/interrupts") or "").splitlines():
        # "  24:  1 0 2  PCI-MSI 81920-edge eth0-Tx-Rx-0" without its counters, which may be glued to the colon.
        number, _colon, rest = line.partition(":")
        if number.strip().isdigit():
            yield f"{number.strip()} {rest.lstrip(' 0123456789').strip()}"


def _addresses(host: Host) -> Iterator[str]:
    """The host's addresses, and the routes of its NICs in the main table, which come without any event of udev."""
    before = ""
    for line in (host.text("/proc/net/fib_trie") or "").splitlines():
        # "           |-- 10.0.0.5" and below it "              /32 host LOCAL"
        if line.endswith(" host LOCAL"):
            yield before.strip(" |-")
        before = line
    for line in (host.text("/proc/net/if_inet6") or "").splitlines():
        address, _index, _prefix, scope, *_flags = [*line.split(), *[""] * 4]
        if scope == "00":
            yield address
    for line in (host.text("/proc/net/route") or "").splitlines():
        name = line.partition("\t")[0]
        if host.exists(f"{NET}/{name}") and _real(host, f"{NET}/{name}"):
            yield line


def _real(host: Host, path: str) -> bool:
    """Whether the device is hardware; devices of containers and tunnels come and go, and don't count."""
    return "/virtual/" not in (host.link(path) or "")
