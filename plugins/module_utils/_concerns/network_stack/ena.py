# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ENA's alone: parameters that only the loading of its driver sets, and what ENA Express wants. Pure. PRIVATE.

The numbers of queues and of receive descriptors are parameters of the driver too;
they can be changed at run time, so they are never a kernel argument here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_stack.sysctl import NAME
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.network import NetworkFacts, fields
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.nic import Nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.boot_argument import Argument, plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.network_choice import Knob, joined, knob_maker
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown

REFERENCE = "ec2.md 2.8"
CHECK = "check_express"
_KNOB = "ena_express"
_WORDS = {"enabled": "1", "disabled": "0"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of the driver; `most` is its greatest number, None for a switch."""

    name: str
    reason: str
    most: Optional[int] = None


PARAMETERS: Mapping[str, Parameter] = {
    "large_llq": Parameter(
        "force_large_llq_header",
        "with it packets of long headers aren't dropped, and the transmit ring has 512 descriptors",
    ),
    "bql": Parameter("enable_bql", "with it the driver tells the kernel how many bytes are in flight"),
    "lpc_size": Parameter("lpc_size", "thousands of pages that the driver keeps for receiving; 0 keeps none", 32),
}

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    **{
        option: {"type": "str", "choices": ["enabled", "disabled", "kernel"]} if one.most is None else {"type": "str"}
        for option, one in PARAMETERS.items()
    },
    CHECK: {"type": "bool", "default": False},
}


def plan_parameters(facts: Facts, wanted: Wanted) -> Plan:
    """The kernel arguments for the driver's parameters.

    Raises NearmetalError for a number that the driver doesn't take.
    """
    plans = []
    for option, one in PARAMETERS.items():
        asked = (wanted.get("ena") or {}).get(option)
        if asked is not None:
            plans.append(_parameter(facts, option, one, str(asked), wanted))
    return joined(plans)


def _parameter(facts: Facts, option: str, one: Parameter, asked: str, wanted: Wanted) -> Plan:
    name = f"ena.{one.name}"
    knob = knob_maker(NAME, wanted)(f"ena_{option}", "boot.arguments", REFERENCE, of="ena")
    network = facts.network
    if network is None or "ena" not in {nic.driver for nic in network.nics}:
        return Plan(findings=(knob.told(None, "not_applicable", "no interface of this host is ENA"),))
    fits = one.most is not None and asked.isdigit() and asked.isascii() and int(asked) <= one.most
    value = _WORDS.get(asked) if one.most is None else asked if fits else None
    if value is None and asked != "kernel":
        raise NearmetalError(
            f"network_stack.ena.{option}: {shown(asked)} is no number from 0 to {one.most}, and not kernel"
        )
    if one.name not in network.ena_parameters and asked != "kernel":
        reason = f"the driver that runs here has no {one.name}; Amazon's own releases have"
        return Plan(findings=(knob.told(None, "not_applicable", reason),))
    return plan_argument(
        facts,
        Argument(
            concern=NAME,
            knob=knob.name,
            name=name,
            text=None if value is None else f"{name}={value}",
            reason=f"the driver reads it when it is loaded, and at no other time; {one.reason}",
            reference=REFERENCE,
            wanted_by=knob.wanted_by,
        ),
    )


def may_use_express(facts: Facts, nic: Nic) -> bool:
    """Whether ENA Express is possible for a NIC, as far as the host knows: by ENA alone, and on no T family or a1."""
    platform = facts.platform
    family = (platform.instance_type or "").split(".")[0] if platform is not None else ""
    return nic.driver == "ena" and family != "a1" and not (platform is not None and platform.burstable)


def express(facts: Facts, wanted: Wanted) -> Tuple[Finding, ...]:
    """What keeps ENA Express from its speed on this host. Nothing is changed; each finding names what would."""
    network = facts.network
    if not (wanted.get("ena") or {}).get(CHECK) or network is None:
        return ()
    if not any(nic.driver == "ena" and nic.up for nic in network.nics):
        return (Finding(NAME, _KNOB, "not_applicable", "no interface of this host is ENA", reference=REFERENCE),)
    found = [nic for nic in network.nics if nic.up and may_use_express(facts, nic)]
    if not found:
        return (Finding(NAME, _KNOB, "not_applicable", "this instance type has no ENA Express", reference=REFERENCE),)
    told = [*_host(facts), *(finding for one in found for finding in _interface(network, one))]
    return tuple(told) or (
        Finding(NAME, _KNOB, "advice", "nothing on this host keeps ENA Express from its speed", reference=REFERENCE),
    )


def _host(facts: Facts) -> Iterator[Finding]:
    sysctl: Mapping[str, str] = facts.sysctl or {}
    limit, corking = sysctl.get("net.ipv4.tcp_limit_output_bytes", ""), sysctl.get("net.ipv4.tcp_autocorking")
    if limit.isdigit() and int(limit) < 1 << 20:
        yield _told(
            None,
            limit,
            f"only {limit} bytes of a connection on their way: net.ipv4.tcp_limit_output_bytes of 1048576 or more",
        )
    if corking == "1":
        yield _told(None, corking, "small writes wait to be joined: net.ipv4.tcp_autocorking = 0")


def _interface(network: NetworkFacts, one: Nic) -> Iterator[Finding]:
    mtu = network.mtu.get(one.place)
    rings = fields(network.rings, one.place)
    limits, most = network.bql.get(one.place, {}), network.bql_max.get(one.place)
    if mtu is not None and mtu > 8900:
        yield _told(one, mtu, f"frames of {mtu} bytes: it takes up to 8900, mtu: 8900")
    if most is not None and any(limit != most for limit in limits.values()):
        yield _told(one, None, "BQL limits the bytes in flight: tx_queue.bql: disabled")
    if rings and rings.get("tx", 0) < 1024:
        yield _told(one, rings["tx"], f"{rings['tx']} transmit descriptors, 1024 are wanted: ena.large_llq: disabled")
    if rings and rings.get("rx", 0) < 8192:
        yield _told(one, rings["rx"], f"{rings['rx']} receive descriptors, 8192 are advised: rx_ring: '8192'")


def _told(one: Optional[Nic], now: Any, reason: str) -> Finding:
    return Knob(NAME, _KNOB, "", f"{REFERENCE}, ENA Express").told(one, "advice", reason, now)
