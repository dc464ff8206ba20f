# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_routes: replies leave through the interface on which the request arrived. Pure. PRIVATE to the collection."""

from __future__ import annotations

import ipaddress
from typing import Iterator, List, Optional, Tuple

from .._facts import systemd
from .._facts.facts import Facts
from .._facts.routes import IPV4, MAIN, MAIN_TABLE, Address, Route, RoutesFacts, table, written
from .._plan import Plan, Wanted, joined
from .._planning.knob import Knob
from .._planning.native import FOREIGN_STAYS, networkd_conf
from .._planning.options import PERSIST
from .._planning.skeleton import tuning

NAME = "network_routes"

_OWN = Knob(
    NAME,
    "own_routes",
    "routes.paths",
    "EC2 User Guide, secondary network interfaces; ip-rule(8)",
    {"type": "str", "choices": ["enabled", "kernel"]},
    disruptive=True,
    takes_effect="at_once",
    # The network plugin of a Kubernetes node writes rules for interfaces of its own.
    kubelet=True,
)
KNOBS = (_OWN,)

_GAIN = "Aerospike, 2014: 250,000 → 960,000 transactions per second with four interfaces; not measured by us"
_LOCAL_TABLE = 255
_MOST_ROUTES = 64
_MOST_NAMED = 3


def _decide(facts: Facts, wanted: Wanted) -> Plan:
    routing, enabled = facts.routes, _OWN.value(wanted) == "enabled"
    if routing.addresses is None:
        return _OWN.says("unknown", "the kernel didn't list its addresses, routes and rules")
    if not enabled:
        keys = [(_OWN.at(key, routing.names[key.partition("/")[0]]), path) for key, path in routing.paths.items()]
        reason = "its replies follow the main table"
        return joined(*(knob.change(wanted, path, MAIN, reason) for knob, path in keys))
    left_to_program = routing.program is not None and wanted.get("owner_conflict") != "take_over"
    version = facts.unit.version
    needed = routing.networkd and not left_to_program
    lines = {key: text for key, text in FOREIGN_STAYS.items() if needed and systemd.reads(version, f"{key}=")}
    # The unit plans for interfaces and addresses that come later, too.
    return joined(Plan(replan=not left_to_program, at_boot=lines), *_interfaces(facts, routing, wanted))


def _interfaces(facts: Facts, routing: RoutesFacts, wanted: Wanted) -> Iterator[Plan]:
    places = sorted(
        (place for place in routing.names if routing.for_nic(place)), key=lambda place: routing.indexes[place]
    )
    if len(places) < 2:
        reason = "no second interface has an address, so replies need no routes of their own"
        yield _OWN.says("not_applicable", reason)
    for place in places if len(places) > 1 else ():
        for address in routing.for_nic(place):
            yield _lasting(routing, place, address, wanted, _address(facts, routing, place, address, wanted))


def _lasting(routing: RoutesFacts, place: str, address: Address, wanted: Wanted, plan: Plan) -> Plan:
    """The plan, but no routes for an address to which an earlier run gave none.

    At a boot the default route of another interface, a VPN or a rule of another program may not be there yet.
    """
    knob, outcome = _OWN.at(f"{place}/{address.text}"), plan.findings[0]
    if outcome.wanted not in (None, MAIN):
        return knob.gated(wanted, "", plan)
    known = _first(routing, address.family) is not None
    return plan._replace(remember={(knob.name, knob.place): outcome.reason} if known else {})


def _address(facts: Facts, routing: RoutesFacts, place: str, address: Address, wanted: Wanted) -> Plan:
    knob = _OWN.at(f"{place}/{address.text}", routing.names[place])
    now, first = routing.paths[knob.place], _first(routing, address.family)
    if first is None:
        version = ipaddress.ip_address(address.text).version
        reason = f"there is no default route of IPv{version}, so it isn't known which interface is the primary one"
        return knob.says("unknown", reason, now)
    if address.interface == first:
        return knob.change(wanted, now, MAIN, "the main table's default route leads through this interface")
    rules = routing.foreign_rules(address)
    if rules:
        return _plan_for_others(routing, knob, address, rules[0].table, wanted)
    if routing.program is not None and wanted.get("owner_conflict") != "take_over":
        reason = (
            f"{routing.program} should give it routes, but there are none for {address.text} yet: find out why, or set"
            " owner_conflict: take_over"
        )
        return Plan(findings=(knob.finding("refused", reason, now)._replace(owner=routing.program),))
    behind = _behind_software(routing, address.family)
    if behind and wanted.get("owner_conflict") != "take_over":
        named = ", ".join(behind[:_MOST_NAMED])
        reason = (
            f"replies to {named}, behind interfaces without hardware such as a VPN, would leave through it:"
            " if none of these peers uses its address, set owner_conflict: take_over"
        )
        return knob.says("refused", reason, now)
    goal, obstacle = _goal(facts, routing, address)
    if obstacle:
        return knob.says("unknown", obstacle, now)
    names = {index: routing.names[place] for place, index in routing.indexes.items()}
    reason = (
        f"replies from {address.text} leave through it; by the main table they leave through"
        f" {names.get(first, 'another')}, where EC2 drops packets with another interface's address"
    )
    return knob.change(wanted, now, goal, reason, _GAIN)


def _plan_for_others(routing: RoutesFacts, knob: Knob, address: Address, number: int, wanted: Wanted) -> Plan:
    """The plan for an address for which somebody else has made a rule: nearmetal's rule is taken back."""
    own = [route for route in routing.routes if (route.table, route.interface) == (number, address.interface)]
    program = routing.program or "another program"
    if not any(route.destination == "default" for route in own):
        reason = f"{program} has a rule for {address.text}, but table {number} has no default route by this interface"
        return knob.says("advice", reason, routing.paths[knob.place])
    reason = f"{program} has given it routes of its own, in table {number}"
    plan = knob.change(wanted, routing.paths[knob.place], MAIN, reason)
    return plan._replace(findings=tuple(finding._replace(owner=routing.program or "") for finding in plan.findings))


def _first(routing: RoutesFacts, family: int) -> Optional[int]:
    """The number of the interface whose default route the kernel prefers; None without a default route."""
    key = (MAIN_TABLE, family, "default")
    defaults = [route for route in routing.routes if (route.table, route.family, route.destination) == key]
    first = _first(routing, IPV4) if family != IPV4 else None
    order = sorted((route.metric, route.interface != first, route.interface) for route in defaults)
    return order[0][2] if order else None


def _goal(facts: Facts, routing: RoutesFacts, address: Address) -> Tuple[str, str]:
    """The path for all addresses of this family on an interface, or else why there is none."""
    others = [
        route
        for route in routing.routes
        if (route.interface, route.family) == (address.interface, address.family)
        and route.table not in (_LOCAL_TABLE, table(address.interface))
        and not _is_narrow(route.destination)
    ]
    if any(route.special for route in others):
        return "", "its routes have an MTU or other properties that nearmetal doesn't copy"
    subnets = _subnets(routing, address)
    chosen = {text: Route(address.interface, address.family, 0, text, "", 0) for text in subnets}
    for route in sorted(others, key=lambda route: -route.metric):
        chosen[route.destination] = route
    if "default" not in chosen or not chosen["default"].gateway:
        gateway = _router(facts, routing, address, subnets)
        if not gateway:
            several = ", and several subnets" if len(subnets) > 1 else ""
            return "", f"its router isn't known: it has no default route{several}"
        chosen["default"] = Route(address.interface, address.family, 0, "default", gateway, 0)
    if len(chosen) > _MOST_ROUTES:
        return "", f"it has {len(chosen)} routes, as a router has, which another program manages"
    return written(chosen.values()), ""


def _behind_software(routing: RoutesFacts, family: int) -> List[str]:
    """Where the main table leads by interfaces without hardware, as those of VPNs, VLANs and containers."""
    hardware = set(routing.indexes.values())
    return sorted(
        {
            route.destination
            for route in routing.routes
            if (route.table, route.family) == (MAIN_TABLE, family) and route.interface not in hardware
            if route.destination != "default" and not _is_of_the_host(route.destination)
        }
    )


def _is_of_the_host(destination: str) -> bool:
    """Whether a route leads to no other network: to the host itself, or to the link alone."""
    network = ipaddress.ip_network(destination)
    return network.is_loopback or network.is_link_local or network.is_multicast


def _is_narrow(destination: str) -> bool:
    """Whether a route leads to a single host, or only to the link itself: neither says where replies go."""
    if destination == "default":
        return False
    network = ipaddress.ip_network(destination)
    return network.prefixlen == network.max_prefixlen or network.is_link_local or network.is_multicast


def _subnets(routing: RoutesFacts, address: Address) -> List[str]:
    """The subnets of the addresses of this family on the interface."""
    same = [
        other
        for other in routing.addresses or ()
        if (other.interface, other.family) == (address.interface, address.family)
    ]
    networks = {ipaddress.ip_network(f"{other.text}/{other.prefix}", strict=False) for other in same}
    return sorted(str(network) for network in networks if network.prefixlen < network.max_prefixlen)


def _router(facts: Facts, routing: RoutesFacts, address: Address, subnets: List[str]) -> str:
    """The router behind the interface: that of its own table, else in EC2 the first address of the subnet."""
    own = (address.interface, address.family, table(address.interface), "default")
    for route in routing.routes:
        if (route.interface, route.family, route.table, route.destination) == own:
            return route.gateway
    ec2 = facts.platform.host_class not in ("not_ec2", "container")
    # Of several subnets it isn't known in which the VPC's router is.
    if address.family != IPV4 or not ec2 or len(subnets) != 1:
        return ""
    return str(ipaddress.ip_network(subnets[0]).network_address + 1)


CONCERN = tuning(
    NAME,
    networkd_conf,
    knobs=KNOBS,
    manner={"persist": PERSIST},
    domains=("platform", "routes", "files", "unit"),
    decide=[_decide],
    by_place=True,
)
