# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel's lists of addresses, routes and rules, from the file `rtnetlink` of a host in the words of ip(8).

Written after rtnetlink(7) and the kernel's headers, apart from the parser:

    address ens5 10.0.0.5/24
    route main default via 10.0.0.1 dev ens5 metric 100
    rule 10006 from 10.0.0.6 lookup 10006
    unlisted rule
"""

from __future__ import annotations

import errno
import ipaddress
import struct
from pathlib import Path
from typing import Any, Dict, List

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

FILE = "rtnetlink"
_TABLES = {"main": 254, "local": 255}


class RoutedHost(Host):
    """A host below a root whose kernel lists what the file says."""

    def _route(self, request: bytes) -> bytes:
        return answer(Path(self.root), request)


def answer(root: Path, request: bytes) -> bytes:
    """The list for which the request asks; OSError for any other request, and without the file."""
    kind = struct.unpack_from("=IH", request)[1]
    words = {22: "address", 26: "route", 34: "rule"}.get(kind)
    if words is None or not (root / FILE).exists():
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")
    lines = [line.split() for line in (root / FILE).read_text().splitlines()]
    if ["unlisted", words] in lines:
        raise OSError(errno.EPERM, "Operation not permitted")
    make = {"address": _address, "route": _route, "rule": _rule}[words]
    bodies = [make(root, line[1:]) for line in lines if line[0] == words]
    done = _message(3, struct.pack("=i", 0))
    return b"".join(_message(kind - 2, body) for body in bodies) + done


def _message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 4711) + body


def _address(root: Path, words: List[str]) -> bytes:
    interface = ipaddress.ip_interface(words[1])
    index = _index(root, words[0])
    flags = 0x80 if "temporary" not in words else 0x01
    scope = 253 if interface.ip.is_link_local else 0
    body = struct.pack("=4BI", _family(interface.ip), interface.network.prefixlen, flags, scope, index)
    return body + _attribute(1, interface.ip.packed) + _attribute(8, struct.pack("=I", flags))


def _route(root: Path, words: List[str]) -> bytes:
    table = _TABLES.get(words[0]) or int(words[0])
    more: Dict[str, str] = dict(zip(words[2::2], words[3::2]))
    index = _index(root, more["dev"])
    network = ipaddress.ip_network(words[1]) if words[1] != "default" else None
    gateway = ipaddress.ip_address(more["via"]) if "via" in more else None
    address: Any = network.network_address if network is not None else gateway
    bits = network.prefixlen if network is not None else 0
    near, flags = min(table, 252) if table > 255 else table, 4 if "onlink" in words else 0
    body = struct.pack("=8BI", _family(address), bits, 0, 0, near, 3, 0, 1, flags)
    body += _attribute(15, struct.pack("=I", table)) + _attribute(4, struct.pack("=I", index))
    body += _attribute(1, network.network_address.packed) if network is not None else b""
    body += _attribute(5, gateway.packed) if gateway is not None else b""
    # RTAX_MTU and RTAX_HOPLIMIT
    metrics = b"".join(
        _attribute(kind, struct.pack("=I", int(more[name])))
        for kind, name in ((2, "mtu"), (10, "hoplimit"))
        if name in more
    )
    body += _attribute(8, metrics) if metrics else b""
    return body + _attribute(6, struct.pack("=I", int(more.get("metric", 0))))


def _rule(_root: Path, words: List[str]) -> bytes:
    priority, network, table = int(words[0]), ipaddress.ip_network(words[2]), int(words[4])
    source = network.network_address
    body = struct.pack("=8BI", _family(source), 0, network.prefixlen, 0, 252, 0, 0, 1, 0)
    body += _attribute(2, source.packed) + _attribute(6, struct.pack("=I", priority))
    return body + _attribute(14, struct.pack("=i", -1)) + _attribute(15, struct.pack("=I", table))


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value


def _family(address: Any) -> int:
    return 2 if address.version == 4 else 10


def _index(root: Path, name: str) -> int:
    path = root / f"sys/class/net/{name}/ifindex"
    return int(path.read_text()) if path.exists() else 99
