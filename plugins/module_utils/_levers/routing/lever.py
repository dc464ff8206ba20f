# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever of an address's path: a rule, and the routing table of its interface. PRIVATE to the collection.

`where` is the NIC's place and the address. Interfaces get new numbers when they come back, so their numbers are
looked up at each write. Nothing is changed but rules with nearmetal's priority, and its tables.
"""

from __future__ import annotations

import errno
import ipaddress
from typing import List, Optional, Tuple

from ..._error import Damaged, NearmetalError
from ..._facts import nic, routes
from ..._facts.interface import NET
from ..._facts.routes import MAIN, NO_ROUTES, PRIORITY, State
from ..._host.host import WritableHost
from ..._parse import route_message
from ..._parse.route_message import Address, Route, Rule
from ..._plan import Value
from ..base import refused
from ..network import OnNic
from ..values import Values

_MOST_ROUTES = 64


class PathValues(Values):
    """Routes, or a word for none of nearmetal."""

    def original(self, before: Value) -> Value:
        return MAIN  # a rule of nearmetal without a journal entry is a leftover, and no original

    def same(self, present: Value, value: Value) -> bool:
        # An address that went, with its rule, has no path but that of the main table.
        return (MAIN if present is None else present) == value

    def same_element(self, present: Value, value: Value) -> bool:
        # A rule with our priority is nobody else's, whatever its table has: routes go with their interface.
        return (present == MAIN) == (value == MAIN)


class Paths(OnNic):
    """By which routes the replies from one address leave."""

    values = PathValues()

    disruptive = True

    def has_place(self, where: str) -> bool:
        place, _slash, text = where.partition("/")
        return super().has_place(place) and _address(text) is not None

    def fits(self, where: str, value: Value) -> bool:
        parts = value.split(", ") if isinstance(value, str) else []
        family = routes.family_of(where.partition("/")[2])
        return value in (MAIN, NO_ROUTES) or (
            0 < len(parts) <= _MOST_ROUTES and all(_route(part, family) for part in parts)
        )

    def read(self) -> Value:
        index, text = looked_up(self.host, self.where)
        family, state = routes.family_of(text), _state(self.host)
        held = any((address.interface, address.text) == (index, text) for address in routes.addresses(self.host) or ())
        if not held and not _nearmetal_rules(self.host, self.where):
            return None
        return state.path(index, Address(index, family, text, 0))

    def write(self, value: Value) -> None:
        index, text = looked_up(self.host, self.where)
        family, state = routes.family_of(text), _state(self.host)
        own = state.own_routes(index, family)
        rule = Rule(family, PRIORITY, text, routes.table(index))
        stale = (
            _nearmetal_rules(self.host, self.where)
            if value == MAIN
            else [old for old in state.nearmetal_rules(family, text) if old != rule]
        )
        if value == MAIN:
            others = [other for other in state.rules if (other.family, other.table) == (family, rule.table)]
            goal = list(own) if any(other.source != text for other in others) else []
        elif not index:
            raise NearmetalError(self.absent())
        else:
            goal = [_made(part, family, index) for part in str(value).split(", ") if value != NO_ROUTES]
        try:
            # The rule comes first and goes last: with an empty table the next rule decides, as it did before.
            if value != MAIN and rule not in state.rules:
                self.host.set_routing(route_message.with_rule(rule))
            for route in (route for route in goal if route not in own):
                self.host.set_routing(route_message.with_route(route))
            for route in (route for route in own if route not in goal):
                _removed(self.host, route_message.without_route(route))
            for other in stale:
                _removed(self.host, route_message.without_rule(other))
        except OSError as error:
            raise refused(error, f"the path of {text}: {value}") from None

    def obstacle(self) -> str:
        listed = None not in (routes.addresses(self.host), routes.routes(self.host), routes.rules(self.host))
        return "" if listed else "the kernel doesn't list its addresses, routes and rules: run on the host itself"

    def choice(self) -> Value:
        return MAIN

    def detached(self) -> bool:
        """Whether the device left, and no rule of nearmetal is left of it."""
        return super().detached() and not _nearmetal_rules(self.host, self.where)


def looked_up(host: WritableHost, where: str) -> Tuple[int, str]:
    """The number of the interface, 0 without one, and the address."""
    place, _slash, text = where.partition("/")
    name = nic.name_at(host, place)
    return (host.number(f"{NET}/{name}/ifindex") or 0 if name is not None else 0), text


def _nearmetal_rules(host: WritableHost, where: str) -> List[Rule]:
    """nearmetal's rules for the address, without that of another interface to which it has moved."""
    index, text = looked_up(host, where)
    elsewhere = {
        routes.table(address.interface)
        for address in routes.addresses(host) or ()
        if address.text == text and address.interface != index
    }
    return [rule for rule in _state(host).nearmetal_rules(routes.family_of(text), text) if rule.table not in elsewhere]


def _removed(host: WritableHost, request: bytes) -> None:
    """Remove a route or rule, also one that was replaced, or went with its interface, meanwhile."""
    try:
        host.set_routing(request)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.ENOENT, errno.ENODEV):
            raise


def _state(host: WritableHost) -> State:
    known, rules = routes.routes(host), routes.rules(host)
    if known is None or rules is None:
        raise Damaged("the kernel doesn't list its routes and rules")  # the other concerns go on
    return State(known, rules)


def _made(text: str, family: int, index: int) -> Route:
    route = _route(text, family)
    if route is None:
        raise NearmetalError(f"{text} isn't a route")
    return route._replace(interface=index, table=routes.table(index))


def _route(text: str, family: int) -> Optional[Route]:
    """The route that a part of a path names; None for a text that names none."""
    destination, via, gateway = text.partition(" via ")
    version = 6 if family == routes.IPV6 else 4
    try:
        if destination != "default" and str(ipaddress.ip_network(destination)) != destination:
            return None
    except ValueError:
        return None
    versions: List[int] = [ipaddress.ip_network(destination).version] if destination != "default" else []
    if via:
        versions.append(_address(gateway) or 0)
    if any(number != version for number in versions) or not (via or versions):
        return None
    # IPv6 gives every route a metric; this is its default (IP6_RT_PRIO_USER).
    return Route(0, family, 0, destination, gateway, 1024 if version == 6 else 0)


def _address(text: str) -> Optional[int]:
    """The version of an address in its usual form; None for any other text."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return address.version if str(address) == text else None


LEVERS = (Paths("routes.paths"),)
