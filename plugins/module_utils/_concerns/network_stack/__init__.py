# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_stack: rings, interrupt moderation, offloads, MTU and kernel parameters. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping

from ..._facts.facts import Facts
from ..._facts.network import OFFLOAD_NAMES, NetworkFacts, fields
from ..._facts.nic import Nic
from ..._number import is_number
from ..._plan import Plan, Wanted, joined
from ..._planning.bounds import LEAST, MAX, widen
from ..._planning.knob import Knob, Spec, options_of
from ..._planning.native import sysctl_d
from ..._planning.network_choice import (
    Choice,
    choices,
    disruption,
    driver_of,
    for_nic,
    interfaces,
    named_interfaces,
    options_per_nic,
)
from ..._planning.options import CONSENT, PERSIST, SWITCH
from ..._planning.skeleton import tuning
from . import ena, sysctl

NAME = "network_stack"


# What tuned's plugin net calls it.
_TUNED = {"rings": "ring", "offloads": "features", **{name: name for name in ("coalesce", "mtu", "txqueuelen")}}


def _nic_knob(name: str, fact: str, reference: str, spec: Spec, **more: Any) -> Knob:
    """A setting of each NIC; tuned may set those that its plugin has a name for."""
    tuned = (f"net.{_TUNED[fact]}",) if fact in _TUNED else ()
    more = {"takes_effect": "at_once", "comparable": True, "tuned": tuned, **more}
    return Knob(NAME, name, f"network.{fact}", reference, spec, within="interfaces", **more)


def _offload(name: str, reason: str) -> Knob:
    reference = "AWS, 2017; what it gains is unmeasured"
    return _nic_knob(name, "offloads", reference, SWITCH, option=f"offloads.{name}", reason=reason)


_RINGS = {
    field: _nic_knob(
        f"{field}_ring", "rings", "Netflix, 2016; ENA driver guide", {"type": "str"}, bound=LEAST, disruptive=True
    )
    for field in ("rx", "tx")
}
_MICROSECONDS: Spec = {"type": "int", "range": (0, 100000)}
_COALESCE = tuple(
    _nic_knob(name, "coalesce", "Aerospike, 2014; Netflix, 2016; ENA driver guide", spec)
    for name, spec in (("adaptive_rx", SWITCH), ("rx_usecs", _MICROSECONDS), ("tx_usecs", _MICROSECONDS))
)
_OFFLOADS = (
    _offload("gro", "the kernel handles many packets of a connection as one"),
    _offload("tso", "the NIC cuts a large send into frames"),
    _offload("gso", "a large send is cut into frames as late as possible"),
    _offload("ntuple", "with rfs, the NIC itself delivers a packet to the queue of the CPU that reads it")._replace(
        reference="Linux kernel, networking/scaling; ENA driver guide; unmeasured"
    ),
    _offload("lro", "the NIC joins packets; don't enable it on a host that forwards them"),
)
_BYTES: Spec = {"type": "int", "range": (1280, 9001)}
_NAPI = "Linux kernel, networking/napi; unmeasured"
_MTU = _nic_knob(
    "mtu", "mtu", "Netflix, 2016; EC2 User Guide, network MTU", _BYTES, disruptive=True, takes_effect="new_connections"
)
_LENGTH = {"option": "tx_queue.length", "takes_effect": "limit", "reason": "how many packets may wait for the driver"}
_NUMBERS = (
    _nic_knob("txqueuelen", "txqueuelen", "unmeasured", {"type": "int", "range": (1, 100000)}, **_LENGTH),
    *(
        _nic_knob(name, name, _NAPI, {"type": "int", "range": (0, most)}, reason=reason)
        for name, most, reason in (
            ("defer_hard_irqs", 100000, "how many polls in vain until a queue interrupts again"),
            ("gro_flush_timeout", 1000000, "how many nanoseconds before each of these polls"),
        )
    ),
)
_BQL = Knob(
    NAME, "bql", "network.bql", "amzn-ec2-ena-utilities", SWITCH, "tx_queue.bql", "interfaces", takes_effect="at_once"
)

_PER_NIC = (*_RINGS.values(), *_COALESCE, *_OFFLOADS, _MTU, *_NUMBERS, _BQL)
KNOBS = (*_PER_NIC, *sysctl.KNOBS, *ena.KNOBS)
PER_NIC = tuple(options_of(_PER_NIC))

# supported_coalesce_params of both drivers; virtio_net adapts from Linux 6.8 on, for a device that lets it.
_NEVER_ADAPTS = ("ixgbevf", "virtio_net")
# ena_set_ringparam() raises less to ENA_MIN_RING_SIZE, and rounds down to a power of two.
_ENA_LEAST_RING = 256
# ixgbevf_set_ringparam() rounds up to a multiple of 8; less than 64 one version of the driver raises, another refuses.
_IXGBEVF_LEAST_RING, _IXGBEVF_STEP = 64, 8
_IXGBEVF_MOST_USECS = 1022  # IXGBE_MAX_EITR >> 2
_MTU_EXPRESS, _MTU_INTERNET = 8900, 1500


def _interfaces(facts: Facts, wanted: Wanted) -> Plan:
    network = facts.network
    if not any(wanted.get(name) is not None for name in (*PER_NIC, "interfaces")):
        return Plan()
    if not network.nics:
        return interfaces(NAME).says("unknown", "this host shows no NIC")._replace(replan=True)
    plans: List[Plan] = [named_interfaces(NAME, network, wanted)]
    for choice in choices(NAME, network, wanted, PER_NIC):
        plans.append(_rings(facts, network, choice))
        for knob in (*_COALESCE, *_OFFLOADS, _BQL, *_NUMBERS, _MTU):
            if knob.value(choice) is not None:
                plans.append(_PLANS[knob.lever](facts, choice, knob, knob.value(choice)))
    plan = joined(*plans)
    return plan._replace(replan=bool(plan.findings))


def _rings(facts: Facts, network: NetworkFacts, choice: Choice) -> Plan:
    nic = choice.nic
    knobs = {field: for_nic(knob, nic, field) for field, knob in _RINGS.items() if knob.value(choice) is not None}
    now, maximum = fields(network.rings, nic.place), network.rings_max.get(nic.place, {})
    if not now:
        return joined(
            *(for_nic(knob, nic).says("not_applicable", f"{driver_of(nic)} has fixed rings") for knob in knobs.values())
        )
    goal: Dict[str, int] = {}
    reasons: Dict[str, str] = {}
    reason = "more descriptors absorb longer bursts; the change stops traffic for a moment"
    for field, knob in knobs.items():
        text = knob.value(choice)
        number = int(text) if is_number(text) else 0
        host_shrank = choice.wanted.stored and number > maximum[field]  # the host took more in an earlier run
        if text == MAX or host_shrank:
            number = maximum[field]
        least = _IXGBEVF_LEAST_RING if nic.driver == "ixgbevf" else 1
        if text != MAX and not least <= number <= maximum[field]:
            sentence = (
                f"network_stack.{knob.name}: {nic.name} can't have {text}; it takes {least} to {maximum[field]}, or max"
            )
            return knob.impossible(choice.wanted, sentence)
        number = _descriptors(nic, number)
        own = facts.host_value("network.rings", knob.place, now[field])
        widest, reasons[field] = widen(knob, choice.wanted, str(number), str(own), reason)
        goal[field] = int(widest)
    plans = []
    for field, knob in knobs.items():
        change = knob.change(choice.wanted, now[field], goal[field], reasons[field])
        obstacle = disruption(knob, network, choice, "new rings stop its traffic for a moment")
        plans.append(knob.gated(choice.wanted, obstacle, change))
    return joined(*plans)


def _descriptors(nic: Nic, number: int) -> int:
    """What the driver makes of a number of descriptors."""
    if nic.driver == "ena":
        return 1 << max(number, _ENA_LEAST_RING).bit_length() - 1
    return -(-number // _IXGBEVF_STEP) * _IXGBEVF_STEP if nic.driver == "ixgbevf" else number


def _coalesce(facts: Facts, choice: Choice, knob: Knob, value: Any) -> Plan:
    nic = choice.nic
    now = fields(facts.network.coalesce, nic.place)
    if knob.name == "adaptive_rx" and nic.driver in _NEVER_ADAPTS:
        return for_nic(knob, nic).says("not_applicable", f"{nic.driver} can't adapt interrupts to the traffic")
    if not now:
        return _lacking(knob, choice)
    if nic.driver == "ixgbevf" and isinstance(value, int) and value > _IXGBEVF_MOST_USECS:
        sentence = f"network_stack.{knob.name}: {nic.name} can't have {value}; it takes 0 to {_IXGBEVF_MOST_USECS}"
        return for_nic(knob, nic).impossible(choice.wanted, sentence)
    goal = int(value == "enabled") if isinstance(value, str) else value
    reason = "fewer interrupts save CPU, but each packet waits longer (Aerospike, 2014, saw no gain in throughput)"
    return for_nic(knob, nic, knob.name).change(choice.wanted, now.get(knob.name), goal, reason)


def _lacking(knob: Knob, choice: Choice) -> Plan:
    return for_nic(knob, choice.nic).says("not_applicable", f"{driver_of(choice.nic)} has no such setting")


def _switch(facts: Facts, choice: Choice, knob: Knob, value: str) -> Plan:
    """The plan for an offload, which has several names in the kernel."""
    nic, plans = choice.nic, []
    now, fixed = fields(facts.network.offloads, nic.place), facts.network.fixed.get(nic.place, ())
    goal, names = value == "enabled", OFFLOAD_NAMES[knob.name]
    for name in [name for name in names if name in now] or names[:1]:
        if not now:
            plans.append(_lacking(knob, choice))
        elif name not in now or (name in fixed and now[name] != goal):
            plans.append(for_nic(knob, nic).says("not_applicable", f"{driver_of(nic)} can't switch {name}"))
        else:
            plans.append(for_nic(knob, nic, name).change(choice.wanted, now[name], goal, knob.reason))
    return joined(*plans)


def _byte_limits(facts: Facts, choice: Choice, declared: Knob, value: str) -> Plan:
    """Byte queue limits: off is a lower limit as large as the upper one."""
    network, knob = facts.network, for_nic(declared, choice.nic)
    now, maximum = dict(network.bql.get(knob.place, {})), network.bql_max.get(knob.place)
    if not now or maximum is None:
        return knob.says("not_applicable", "this kernel shows no byte_queue_limits for it")
    goal = dict.fromkeys(now, maximum if value == "disabled" else 0)
    reason = "it keeps the queue short so that other traffic waits less; ENA Express needs it off"
    return knob.change(choice.wanted, now, goal, reason)


def _number(facts: Facts, choice: Choice, declared: Knob, goal: int) -> Plan:
    """A number that a file of the interface has."""
    knob = for_nic(declared, choice.nic)
    now = getattr(facts.network, knob.lever.partition(".")[2]).get(knob.place)
    if now is None:
        return knob.says("not_applicable", "this kernel lacks it")
    return knob.change(choice.wanted, now, goal, knob.reason)


def _mtu(facts: Facts, choice: Choice, declared: Knob, mtu: int) -> Plan:
    network, nic, knob = facts.network, choice.nic, for_nic(declared, choice.nic)
    now, upper_interfaces = network.mtu.get(nic.place), network.uppers_of(nic)
    change = knob.change(choice.wanted, now, mtu, "larger frames cost less CPU per byte within the VPC")
    obstacle = disruption(knob, network, choice, "connections would hang where ICMP is dropped")
    if upper_interfaces:
        # vlan_device_event() of net/8021q/vlan.c lowers the MTU of the interfaces above, and never raises it again.
        obstacle = (
            f"{', '.join(upper_interfaces)} above it would keep another MTU, or not get the old MTU back: set the MTU"
            " of all of them in the distribution's network configuration"
        )
    plans = [knob.gated(choice.wanted, obstacle, change)]
    if mtu > _MTU_EXPRESS and ena.may_use_express(facts, nic):
        plans.append(knob.says("advice", f"ENA Express takes frames up to {_MTU_EXPRESS} bytes"))
    if mtu > _MTU_INTERNET and network.carries_default(nic) and choice.wanted.get("mtu_probing") in (None, "disabled"):
        reason = (
            f"an internet gateway or VPN passes at most {_MTU_INTERNET} bytes: let ICMP type 3 code 4 in,"
            " or set mtu_probing: on_black_hole"
        )
        plans.append(knob.says("advice", reason))
    return joined(*plans)


_PLANS: Mapping[str, Callable[[Facts, Choice, Knob, Any], Plan]] = {
    "network.coalesce": _coalesce,
    "network.offloads": _switch,
    _BQL.lever: _byte_limits,
    **{knob.lever: _number for knob in _NUMBERS},
    _MTU.lever: _mtu,
}
CONCERN = tuning(
    NAME,
    sysctl_d,
    options={**options_per_nic(_PER_NIC), **options_of((*sysctl.KNOBS, *ena.KNOBS))},
    manner={"allow_disruptive": CONSENT, "persist": PERSIST},
    knobs=KNOBS,
    domains=("platform", "topology", "kernel", "network", "listening", "sysctl", "boot", "files", "unit"),
    decide=[_interfaces, sysctl.plan_parameters, ena.plan_arguments, ena.express],
    by_place=True,
)
