# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about the addresses of NICs, and by which routes the replies from each of them leave. PRIVATE.

A path is a text: `main`, or the routes of the interface's own table ("10.0.0.0/24, default via 10.0.0.1").
"""

from __future__ import annotations

import ipaddress
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from .._parse import route_message
from . import nic
from .host import Host
from .interface import NET, devices

IPV4, IPV6, MAIN_TABLE = route_message.IPV4, route_message.IPV6, route_message.MAIN_TABLE
Address = route_message.Address
Route = route_message.Route
Rule = route_message.Rule
# No distribution and none of the programs below uses these numbers: amazon-ec2-net-utils counts from 10000.
PRIORITY = 27000
_FIRST_TABLE = 2700000
MAIN = "main"  # no rule of nearmetal: the main table decides
NO_ROUTES = "a table without routes"
_ETHERNET = "1"
# Programs that give the interfaces of EC2 routing tables of their own, each with files that only it installs or
# enables.
_PROGRAMS = {
    "amazon-ec2-net-utils": (
        "/usr/lib/systemd/system/policy-routes@.service",
        "/lib/systemd/system/policy-routes@.service",
    ),
    "ec2-net-utils": ("/etc/udev/rules.d/53-ec2-network-interfaces.rules",),
    "nm-cloud-setup": ("/etc/systemd/system/timers.target.wants/nm-cloud-setup.timer",),
    "cloud-netconfig": (
        "/etc/systemd/system/timers.target.wants/cloud-netconfig.timer",
        "/usr/lib/udev/rules.d/75-cloud-persistent-net-generator.rules",
    ),
}


class RoutesFacts(NamedTuple):
    """None is what the kernel doesn't say, as in a capture."""

    names: Mapping[str, str]  # place of a NIC → its name
    indexes: Mapping[str, int]  # place of a NIC → its number
    addresses: Optional[Tuple[Address, ...]]
    routes: Tuple[Route, ...]
    rules: Tuple[Rule, ...]
    paths: Mapping[str, str]  # place/address → its path
    program: Optional[str]  # a program that is there to give each interface its own routes
    networkd: bool  # systemd-networkd runs

    def for_nic(self, place: str) -> Tuple[Address, ...]:
        """The addresses of a NIC."""
        return tuple(address for address in self.addresses or () if address.interface == self.indexes.get(place))

    def foreign_rules(self, address: Address) -> Tuple[Rule, ...]:
        """Other programs' rules about replies from an address, or from a subnet that has it."""
        own = ipaddress.ip_address(address.text)
        return tuple(
            rule
            for rule in self.rules
            if (rule.family == address.family and rule.priority != PRIORITY)
            and own in ipaddress.ip_network(rule.source, strict=False)
        )


def observe(host: Host) -> RoutesFacts:
    """Ask the kernel for its addresses, routes and rules."""
    names = places(host)
    indexes = {place: host.number(f"{NET}/{name}/ifindex") or 0 for place, name in names.items()}
    lists = addresses(host), routes(host), rules(host)
    # Without one of the lists the others say too little: a rule of somebody could be missed.
    valid = lists[0] if None not in lists else None
    known = State(lists[1] or (), lists[2] or ())
    return RoutesFacts(
        names=names,
        indexes=indexes,
        addresses=valid,
        routes=known.routes,
        rules=known.rules,
        paths={
            f"{place}/{address.text}": known.path(index, address)
            for place, index in indexes.items()
            for address in valid or ()
            if address.interface == index
        },
        program=next((name for name, files in _PROGRAMS.items() if any(map(host.exists, files))), None),
        networkd=host.exists("/run/systemd/netif/state"),
    )


class State(NamedTuple):
    """The routes and rules of all tables."""

    routes: Tuple[Route, ...]
    rules: Tuple[Rule, ...]

    def own_routes(self, index: int, family: int) -> Tuple[Route, ...]:
        """The routes in the interface's own table; what else somebody gave them doesn't make them others."""
        return tuple(
            route._replace(special=False)
            for route in self.routes
            if (route.interface, route.family, route.table) == (index, family, table(index))
        )

    def nearmetal_rules(self, family: int, text: str) -> Tuple[Rule, ...]:
        """nearmetal's rules about replies from an address; a rule of an interface outlives its device."""
        return tuple(
            rule
            for rule in self.rules
            if (rule.family, rule.source, rule.priority) == (family, text, PRIORITY) and rule.table > _FIRST_TABLE
        )

    def path(self, index: int, address: Address) -> str:
        """How replies from an address leave."""
        rules = self.nearmetal_rules(address.family, address.text)
        if not rules:
            return MAIN
        looked_up = any(rule.table == table(index) for rule in rules)
        return written(self.own_routes(index, address.family) if looked_up else ())


def table(index: int) -> int:
    """The number of an interface's own table."""
    return _FIRST_TABLE + index


def written(own_routes: Iterable[Route]) -> str:
    """A table as text, routes by gateway last."""
    texts = {
        f"{route.destination} via {route.gateway}" if route.gateway else route.destination: (
            bool(route.gateway),
            route.destination == "default",
            route.destination,
        )
        for route in own_routes
    }
    return ", ".join(sorted(texts, key=lambda text: texts[text])) or NO_ROUTES


def parsed(path: str, family: int) -> Optional[List[Route]]:
    """The routes in a table's text, without interface and table; None for any other text."""
    listed = [_route(part, family) for part in path.split(", ") if path != NO_ROUTES]
    known = [route for route in listed if route is not None]
    return known if len(known) == len(listed) else None


def _route(text: str, family: int) -> Optional[Route]:
    """The route that a part of a path names; None for a text that names none."""
    destination, via, gateway = text.partition(" via ")
    version = 6 if family == IPV6 else 4
    try:
        if destination != "default" and str(ipaddress.ip_network(destination)) != destination:
            return None
    except ValueError:
        return None
    versions: List[int] = [ipaddress.ip_network(destination).version] if destination != "default" else []
    if via:
        versions.append(version_of(gateway) or 0)
    if any(number != version for number in versions) or not (via or versions):
        return None
    # IPv6 gives every route a metric; this is its default (IP6_RT_PRIO_USER).
    return Route(0, family, 0, destination, gateway, 1024 if version == 6 else 0)


def version_of(text: str) -> Optional[int]:
    """The version of an address in its usual form; None for any other text."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return address.version if str(address) == text else None


def looked_up(host: Host, where: str) -> Tuple[int, str]:
    """The number of the interface of a place/address, 0 without one, and the address."""
    place, _slash, text = where.partition("/")
    name = nic.name_at(host, place)
    return (host.number(f"{NET}/{name}/ifindex") or 0 if name is not None else 0), text


def nearmetal_rules(host: Host, state: State, where: str) -> List[Rule]:
    """nearmetal's rules for the address, without that of another interface to which it has moved."""
    index, text = looked_up(host, where)
    elsewhere = {
        table(address.interface)
        for address in addresses(host) or ()
        if address.text == text and address.interface != index
    }
    return [rule for rule in state.nearmetal_rules(family_of(text), text) if rule.table not in elsewhere]


def places(host: Host) -> Dict[str, str]:
    """Place → name of every interface with hardware behind it."""
    found = devices(host).items()
    return {place: name for name, place in found if host.line(f"{NET}/{name}/type") == _ETHERNET}


def addresses(host: Host) -> Optional[Tuple[Address, ...]]:
    """The lasting addresses of all interfaces; None when the kernel lists none."""
    answer = host.routing(route_message.question(route_message.GET_ADDRESSES))
    return route_message.addresses(answer) if answer is not None else None


def routes(host: Host) -> Optional[Tuple[Route, ...]]:
    """The routes of all tables; None when the kernel lists none."""
    answer = host.routing(route_message.question(route_message.GET_ROUTES))
    return route_message.routes(answer) if answer is not None else None


def rules(host: Host) -> Optional[Tuple[Rule, ...]]:
    """The rules by source address; None when the kernel lists none."""
    answer = host.routing(route_message.question(route_message.GET_RULES))
    return route_message.rules(answer) if answer is not None else None


def list_nearmetal_routes(host: Host) -> List[str]:
    """nearmetal's rules, and the routes of the tables that they lead to, each as a line."""
    made = [rule for rule in rules(host) or () if rule.priority == PRIORITY and rule.table > _FIRST_TABLE]
    tables = {rule.table for rule in made}
    leading = [route for route in routes(host) or () if route.table in tables] if made else []
    return sorted(" ".join(map(str, each)) for each in [*made, *leading])


def family_of(text: str) -> int:
    """The family of an address."""
    return IPV6 if ":" in text else IPV4
