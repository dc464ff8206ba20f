# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ENA only: parameters that its driver reads when it is loaded, and what ENA Express needs. Pure. PRIVATE.

The numbers of queues and of receive descriptors are parameters of the driver too;
they can be changed at run time, so they never become kernel arguments.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping

from ..._error import NearmetalError
from ..._facts.facts import Facts
from ..._facts.network import NetworkFacts, fields
from ..._facts.nic import Nic
from ..._number import is_number
from ..._plan import Plan, Wanted, joined
from ..._planning.boot_argument import plan_argument
from ..._planning.knob import Knob, boot_argument
from ..._planning.network_choice import for_nic
from ..._planning.options import CONSENT
from ..._words import shown
from .sysctl import NAME

_WORDS = {"enabled": "1", "disabled": "0"}
_MOST_PAGES = 32  # thousands, as the driver counts them


def _parameter(name: str, parameter: str, reason: str, spec: Mapping[str, Any]) -> Knob:
    return boot_argument(
        NAME, f"ena_{name}", f"ena.{parameter}", "ENA driver guide", option=f"ena.{name}", reason=reason, spec=spec
    )


_SWITCH: Mapping[str, Any] = {"type": "str", "choices": ["enabled", "disabled", "kernel"]}
_PARAMETERS = (
    _parameter(
        "large_llq",
        "force_large_llq_header",
        "when enabled, packets with long headers aren't dropped, and the transmit ring has 512 descriptors",
        _SWITCH,
    ),
    _parameter("bql", "enable_bql", "when enabled, the driver tells the kernel how many bytes are in flight", _SWITCH),
    _parameter(
        "lpc_size", "lpc_size", "thousands of pages that the driver keeps for receiving; 0 keeps none", {"type": "str"}
    ),
)
_EXPRESS = Knob(
    NAME,
    "ena_express",
    reference="EC2 User Guide, ENA Express; amzn-ec2-ena-utilities",
    spec=CONSENT,
    option="ena.check_express",
)
# The smallest size with ENA Express, in xlarge, and its families, by EnaSrdSupported of the API on this day.
# g6e.16xlarge, which the API leaves out, is taken for one.
_AS_OF = "2026-11-20"
_SMALLEST = {
    3: "i7ie",
    4: "c6gn c7gn c8gb c8gn i4g im4gn m8gb m8gn p5 r8gb r8gn",
    6: "i8ge",
    8: (
        "c6i c6id c6in c8g c8gd c8i c8ib c8id c8in c9g c9gd i4i i8g m6i m6id m6idn m6in m8g m8gd m8i m8ib m8id m8idb"
        " m8idn m8in m9g m9gd r6i r6id r6idn r6in r7iz r8g r8gd r8i r8ib r8id r8idb r8idn r8in r9g r9gd x2iedn x8g x8i"
    ),
    12: "c6a c7a c7g c7gd c7i g6e g7e i7i m6a m7a m7g m7gd m7i m8azn r6a r7a r7g r7gd r7i",
    16: "c8a m8a r8a x2idn",
    24: "g7 x8aedz",
    48: "g6 p5e p5en p6-b200 p6-b300",
    112: "u7i-6tb u7i-8tb",
    224: "u7i-12tb u7in-16tb u7in-24tb u7in-32tb",
}
_LEAST_SIZE = {family: size for size, families in _SMALLEST.items() for family in families.split()}
_NEWEST = 9  # the generation of the newest families of that day
_SIZE = re.compile(r"(?:metal-)?([0-9]*)xl(?:arge)?")
KNOBS = (*_PARAMETERS, _EXPRESS)


def plan_arguments(facts: Facts, wanted: Wanted) -> Plan:
    """The kernel arguments for the driver's parameters.

    Raises NearmetalError for a number that the driver doesn't take.
    """
    return joined(*(_argument(facts, knob, wanted) for knob in _PARAMETERS if knob.value(wanted) is not None))


def _argument(facts: Facts, knob: Knob, wanted: Wanted) -> Plan:
    network, requested, parameter = facts.network, str(knob.value(wanted)), knob.place[len("ena.") :]
    if "ena" not in {nic.driver for nic in network.nics}:
        return knob.at("").says("not_applicable", "no interface of this host uses ENA")
    if requested == "kernel":
        value = None
    elif knob.spec is _SWITCH:
        value = _WORDS[requested]
    elif is_number(requested) and int(requested) <= _MOST_PAGES:
        value = requested
    else:
        raise NearmetalError(
            f"network_stack.{knob.option} must be kernel or a number from 0 to {_MOST_PAGES}, not {shown(requested)}"
        )
    if parameter not in network.ena_parameters and value is not None:
        reason = f"this host's driver has no {parameter}; Amazon's own driver releases have it"
        return knob.at("").says("not_applicable", reason)
    text = None if value is None else f"{knob.place}={value}"
    reason = f"the driver reads it only when it is loaded; {knob.reason}"
    return plan_argument(facts, wanted, knob, text, reason)


def may_use_express(facts: Facts, nic: Nic) -> bool:
    """Whether ENA Express is possible for a NIC, as far as the host knows: by its driver, and by its instance type.

    A family that is newer than the table may have it in any size.
    """
    family, _dot, size = (facts.platform.instance_type or "").partition(".")
    generation = re.match("[a-z]+([0-9]+)", family)
    if not size or (generation is not None and int(generation[1]) >= _NEWEST and family not in _LEAST_SIZE):
        return nic.driver == "ena"
    known = _SIZE.fullmatch(size)
    number = int(known[1] or 1) if known else 0
    return nic.driver == "ena" and (size == "metal" or number >= _LEAST_SIZE.get(family, 0)) and family in _LEAST_SIZE


def express(facts: Facts, wanted: Wanted) -> Plan:
    """What slows ENA Express down on this host. Nothing is changed; each finding names the remedy."""
    network = facts.network
    if not _EXPRESS.value(wanted):
        return Plan()
    if not any(nic.driver == "ena" and nic.up for nic in network.nics):
        return _EXPRESS.says("not_applicable", "no interface of this host uses ENA")
    capable = [nic for nic in network.nics if nic.up and may_use_express(facts, nic)]
    if not capable:
        return _EXPRESS.says("not_applicable", f"this instance type has no ENA Express, as the API said on {_AS_OF}")
    plans = [*_host(facts), *(plan for nic in capable for plan in _interface(network, nic))]
    return joined(*plans) if plans else _EXPRESS.says("advice", "nothing on this host slows ENA Express down")


def _host(facts: Facts) -> Iterator[Plan]:
    limit = facts.sysctl.get("net.ipv4.tcp_limit_output_bytes", "")
    corking = facts.sysctl.get("net.ipv4.tcp_autocorking")
    if is_number(limit) and int(limit) < 1 << 20:
        reason = (
            f"a connection may have only {limit} bytes in flight: set net.ipv4.tcp_limit_output_bytes to"
            " 1048576 or more"
        )
        yield _EXPRESS.says("advice", reason, limit)
    if corking == "1":
        yield _EXPRESS.says("advice", "small writes wait to be joined: set net.ipv4.tcp_autocorking to 0", corking)


def _interface(network: NetworkFacts, nic: Nic) -> Iterator[Plan]:
    knob = for_nic(_EXPRESS, nic)
    mtu = network.mtu.get(nic.place)
    rings = fields(network.rings, nic.place)
    limits, most = network.bql.get(nic.place, {}), network.bql_max.get(nic.place)
    if mtu is not None and mtu > 8900:
        yield knob.says(
            "advice", f"the MTU is {mtu}, but ENA Express takes frames of at most 8900 bytes: set mtu: 8900", mtu
        )
    if most is not None and any(limit != most for limit in limits.values()):
        yield knob.says("advice", "BQL limits the bytes in flight: set tx_queue.bql: disabled")
    largest = network.rings_max.get(nic.place, {})
    if rings and rings.get("tx", 0) < 1024:
        # Of Nitro v5 the driver takes 1024 with the large header too; of Nitro v4 it says that 512 are the most.
        remedy = "tx_ring: '1024'" if largest.get("tx", 0) >= 1024 else "ena.large_llq: disabled"
        reason = f"the transmit ring has {rings['tx']} descriptors, but ENA Express wants 1024: set {remedy}"
        yield knob.says("advice", reason, rings["tx"])
    advised = min(8192, largest.get("rx", 8192))
    if rings and rings.get("rx", 0) < advised:
        reason = f"the receive ring has {rings['rx']} descriptors, but {advised} are advised: set rx_ring: '{advised}'"
        yield knob.says("advice", reason, rings["rx"])
