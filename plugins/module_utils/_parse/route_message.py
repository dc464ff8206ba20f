# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of rtnetlink(7): addresses, routes and rules, as the kernel lists and takes them. PRIVATE to the collection.

After <linux/netlink.h>, <linux/rtnetlink.h>, <linux/if_addr.h> and <linux/fib_rules.h>.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Dict, Iterator, NamedTuple, Tuple

from .._error import NearmetalError

# Message types. A list of all is a question; nothing else that is here only reads.
GET_ADDRESSES, GET_ROUTES, GET_RULES = 22, 26, 34
READING = (GET_ADDRESSES, GET_ROUTES, GET_RULES)
ERROR, DONE = 2, 3
_NEW_ADDRESS, _NEW_ROUTE, _DELETE_ROUTE, _NEW_RULE, _DELETE_RULE = 20, 24, 25, 32, 33

_REQUEST, _ACK, _DUMP, _REPLACE, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x300, 0x100, 0x200, 0x400
_HEADER = struct.Struct("=IHHII")  # length, type, flags, number of the question, sender
_BODY = struct.Struct("=8BI")  # rtmsg and fib_rule_hdr
_ADDRESS = struct.Struct("=4BI")  # ifaddrmsg
_ATTRIBUTE = struct.Struct("=HH")
_WORD = struct.Struct("=I")

MAIN_TABLE = 254
_UNICAST, _TO_TABLE = 1, 1
# Who made a route or rule. systemd-networkd leaves what the kernel made alone, and removes what other programs made
# (systemd, issue 19106). Before Linux 4.17 rules have no such attribute.
_BY_KERNEL = 2
_GLOBAL, _LINK, _ANY = 0, 253, 255  # scopes
_CLONED = 0x200
_INVERTED = 0x2
_ON_LINK = 0x4
_METRICS, _ENCAPSULATION, _HOP_LIMIT = 8, 22, 10
# An address that isn't usable yet, or no longer, or that the kernel will replace by another one of its choice.
_PASSING = 0x01 | 0x08 | 0x20 | 0x40
_SECONDARY = 0x01  # what the first of these bits means for IPv4: a further address of the same subnet
_CONDITIONS = frozenset((3, 10, 17, 20, 22, 23, 24))  # of a rule: interfaces, mark, user, protocol, ports
IPV4, IPV6 = 2, 10  # AF_INET and AF_INET6 of Linux
_FAMILIES = (IPV4, IPV6)


class Address(NamedTuple):
    """An address of an interface."""

    interface: int
    family: int
    text: str
    prefix: int  # bits of its subnet


class Route(NamedTuple):
    """A route by one interface."""

    interface: int
    family: int
    table: int
    destination: str  # 10.0.0.0/24, or default
    gateway: str  # empty: the destination is on the link
    metric: int
    special: bool = False  # it has an MTU, another property, or a router outside of its subnets


class Rule(NamedTuple):
    """A rule that looks all packets from an address or a subnet up in a table."""

    family: int
    priority: int
    source: str  # 10.0.0.6, or 10.0.0.0/24
    table: int


def question(kind: int) -> bytes:
    """The request for a list of all addresses, routes or rules."""
    return _HEADER.pack(_HEADER.size + 4, kind, _REQUEST | _DUMP, 1, 0) + bytes(4)


def kind(request: bytes) -> int:
    """The type of the first message."""
    return int(_HEADER.unpack_from(request)[1])


def messages(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """Type and body of each message. Raises NearmetalError for what is none."""
    while data:
        if len(data) < _HEADER.size:
            raise NearmetalError("the kernel's answer about routes ends in the middle of a message")
        length, message, _flags, _number, _sender = _HEADER.unpack_from(data)
        if not _HEADER.size <= length <= len(data):
            raise NearmetalError(f"the kernel's answer about routes has a message of {length} bytes")
        yield message, data[_HEADER.size : length]
        data = data[_aligned(length) :]


def errno_of(body: bytes) -> int:
    """The error number of a message of the type ERROR; 0 confirms the request."""
    return -int(struct.unpack_from("=i", body)[0]) if len(body) >= _WORD.size else 0


def addresses(data: bytes) -> Tuple[Address, ...]:
    """The lasting addresses that are valid beyond the link."""
    entries = []
    for (family, prefix, flags, scope, index), attributes in _listed(data, _NEW_ADDRESS, _ADDRESS):
        text = _text(family, attributes.get(2) or attributes.get(1))
        passing = _PASSING if family == IPV6 else _PASSING & ~_SECONDARY
        if text and scope == _GLOBAL and not (flags | _word(attributes, 8)) & passing:
            entries.append(Address(index, family, text, prefix))
    return tuple(entries)


def routes(data: bytes) -> Tuple[Route, ...]:
    """The routes of all tables that lead out by one interface."""
    entries = []
    for fields, attributes in _listed(data, _NEW_ROUTE, _BODY):
        family, bits, from_bits, tos, table, _protocol, _scope, sort, flags = fields
        index, gateway = _word(attributes, 4), attributes.get(5)
        destination = _text(family, attributes.get(1)) if bits else "default"
        plain = sort == _UNICAST and not from_bits and not tos and not flags & _CLONED
        # A gateway of the other family has an attribute of its own (RTA_VIA), and no table of nearmetal takes it.
        if plain and index and destination and family in _FAMILIES and 18 not in attributes:
            text = f"{destination}/{bits}" if bits else destination
            table = _word(attributes, 15) or table
            # The kernel gives the hop limit of a router's advertisement to its route.
            special = bool(flags & _ON_LINK or {*_attributes(attributes.get(_METRICS, b""))} - {_HOP_LIMIT})
            special = special or _ENCAPSULATION in attributes
            entries.append(Route(index, family, table, text, _text(family, gateway), _word(attributes, 6), special))
    return tuple(entries)


def rules(data: bytes) -> Tuple[Rule, ...]:
    """The rules for all packets from one address or subnet; other conditions make other rules."""
    entries = []
    for fields, attributes in _listed(data, _NEW_RULE, _BODY):
        family, to_bits, bits, tos, table, _none, _unused, action, flags = fields
        source = _text(family, attributes.get(2))
        conditions = _CONDITIONS.intersection(attributes)
        plain = not to_bits and not tos and not flags & _INVERTED and not conditions
        if source and plain and action == _TO_TABLE:
            text = source if bits == _bits(family) else f"{source}/{bits}"
            entries.append(Rule(family, _word(attributes, 6), text, _word(attributes, 15) or table))
    return tuple(entries)


def with_route(route: Route) -> bytes:
    """The request that makes the route, or replaces that of the same destination."""
    scope = _GLOBAL if route.gateway or route.family == IPV6 else _LINK
    return _route(route, _NEW_ROUTE, _CREATE | _REPLACE, _BY_KERNEL, scope)


def without_route(route: Route) -> bytes:
    """The request that removes the route, whoever made it."""
    return _route(route, _DELETE_ROUTE, 0, 0, _ANY)


def with_rule(rule: Rule) -> bytes:
    """The request that makes the rule."""
    return _rule(rule, _NEW_RULE, _CREATE | _EXCLUSIVE)


def without_rule(rule: Rule) -> bytes:
    """The request that removes the rule."""
    return _rule(rule, _DELETE_RULE, 0)


def _route(route: Route, message: int, flags: int, protocol: int, scope: int) -> bytes:
    network, _slash, bits = route.destination.partition("/")
    body = _BODY.pack(route.family, int(bits or 0), 0, 0, 0, protocol, scope, _UNICAST, 0)
    body += _number(15, route.table) + _number(4, route.interface)
    body += _attribute(1, _packed(network)) if bits else b""
    body += _attribute(5, _packed(route.gateway)) if route.gateway else b""
    body += _number(6, route.metric) if route.metric else b""
    return _message(message, flags, body)


def _rule(rule: Rule, message: int, flags: int) -> bytes:
    body = _BODY.pack(rule.family, 0, _bits(rule.family), 0, 0, 0, 0, _TO_TABLE, 0)
    body += _attribute(2, _packed(rule.source)) + _number(15, rule.table) + _number(6, rule.priority)
    body += _attribute(21, bytes([_BY_KERNEL])) if message == _NEW_RULE else b""
    return _message(message, flags, body)


def _message(message: int, flags: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), message, _REQUEST | _ACK | flags, 1, 0) + body


def _number(kind_of: int, value: int) -> bytes:
    return _attribute(kind_of, _WORD.pack(value))


def _attribute(kind_of: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind_of) + value.ljust(_aligned(length) - _ATTRIBUTE.size, b"\0")


def _listed(data: bytes, wanted: int, head: struct.Struct) -> Iterator[Tuple[Tuple[int, ...], Dict[int, bytes]]]:
    """The numbers at the head of each message of a type, and its attributes."""
    for message, body in messages(data):
        if message == wanted and len(body) >= head.size:
            yield head.unpack_from(body), _attributes(body[head.size :])


def _attributes(data: bytes) -> Dict[int, bytes]:
    """Type → value; what follows a damaged attribute is left out."""
    attributes = {}
    while len(data) >= _ATTRIBUTE.size:
        length, kind_of = _ATTRIBUTE.unpack_from(data)
        if not _ATTRIBUTE.size <= length <= len(data):
            break
        attributes[kind_of & 0x3FFF] = data[_ATTRIBUTE.size : length]  # the upper two bits are flags of netlink
        data = data[_aligned(length) :]
    return attributes


def _word(attributes: Dict[int, bytes], kind_of: int) -> int:
    value = attributes.get(kind_of, b"")
    return int(_WORD.unpack(value)[0]) if len(value) == _WORD.size else 0


def _text(family: int, value: "bytes | None") -> str:
    """An address as text; empty without one."""
    if family not in _FAMILIES or value is None or len(value) * 8 != _bits(family):
        return ""
    return str(ipaddress.ip_address(value))


def _packed(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def _bits(family: int) -> int:
    return 32 if family == IPV4 else 128


def _aligned(length: int) -> int:
    return length + 3 & ~3
