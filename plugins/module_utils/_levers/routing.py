# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever of an address's path: a rule, and the routing table of its interface. PRIVATE to the collection.

`where` is the NIC's place and the address. Interfaces get new numbers when they come back, so their numbers are
looked up at each write. Nothing is changed but rules with nearmetal's priority, and its tables.
"""

from __future__ import annotations

import errno
from typing import List

from .._error import Damaged, NearmetalError
from .._facts import routes
from .._facts.routes import MAIN, PRIORITY, State
from .._host.host import WritableHost
from .._parse import route_message
from .._parse.route_message import Address, Rule
from .._plan import Value
from .base import refused
from .network import OnNic

_MOST_ROUTES = 64


class Paths(OnNic):
    """By which routes the replies from one address leave."""

    disruptive = True

    def original(self, before: Value) -> Value:
        return MAIN  # a rule of nearmetal without a journal entry is a leftover, and no original

    def same(self, present: Value, value: Value) -> bool:
        # An address that went, with its rule, has no path but that of the main table.
        return (MAIN if present is None else present) == value

    def same_element(self, present: Value, value: Value) -> bool:
        # A rule with our priority is nobody else's, whatever its table has: routes go with their interface.
        return (present == MAIN) == (value == MAIN)

    def has_place(self, where: str) -> bool:
        place, _slash, text = where.partition("/")
        return super().has_place(place) and routes.version_of(text) is not None

    def fits(self, where: str, value: Value) -> bool:
        if not isinstance(value, str):
            return False
        listed = routes.parsed(value, routes.family_of(where.partition("/")[2]))
        return value == MAIN or (listed is not None and len(listed) <= _MOST_ROUTES)

    def read(self) -> Value:
        index, text = routes.looked_up(self.host, self.where)
        family, state = routes.family_of(text), self._state()
        held = any((address.interface, address.text) == (index, text) for address in routes.addresses(self.host) or ())
        if not held and not self._nearmetal_rules():
            return None
        return state.path(index, Address(index, family, text, 0))

    def write(self, value: Value) -> None:
        index, text = routes.looked_up(self.host, self.where)
        family, state = routes.family_of(text), self._state()
        own = state.own_routes(index, family)
        rule = Rule(family, PRIORITY, text, routes.table(index))
        stale = (
            self._nearmetal_rules()
            if value == MAIN
            else [old for old in state.nearmetal_rules(family, text) if old != rule]
        )
        if value == MAIN:
            others = [other for other in state.rules if (other.family, other.table) == (family, rule.table)]
            goal = list(own) if any(other.source != text for other in others) else []
        elif not index:
            raise NearmetalError(self.absent())
        else:
            listed = routes.parsed(str(value), family) or ()
            goal = [route._replace(interface=index, table=rule.table) for route in listed]
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

    def _state(self) -> State:
        known, rules = routes.routes(self.host), routes.rules(self.host)
        if known is None or rules is None:
            raise Damaged("the kernel doesn't list its routes and rules")  # the other concerns go on
        return State(known, rules)

    def _nearmetal_rules(self) -> List[Rule]:
        return routes.nearmetal_rules(self.host, self._state(), self.where)

    def choice(self) -> Value:
        return MAIN

    def detached(self) -> bool:
        """Whether the device left, and no rule of nearmetal is left of it."""
        return super().detached() and not self._nearmetal_rules()


def _removed(host: WritableHost, request: bytes) -> None:
    """Remove a route or rule, also one that was replaced, or went with its interface, meanwhile."""
    try:
        host.set_routing(request)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.ENOENT, errno.ENODEV):
            raise


LEVERS = (Paths("routes.paths"),)
