# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_stack: rings, interrupt moderation, offloads, MTU and kernel parameters. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_stack import ena as network_ena
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_stack.sysctl import (
    NAME,
    advice,
    argspec,
    bounds,
    plan_sysctls,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.network import NetworkFacts, fields
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Value, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.bounds import LEAST, MAX, binds, kept_reason
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import by_unit
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.network_choice import (
    Choice,
    Knob,
    choices,
    driver_of,
    gone,
    joined,
    knob_maker,
)

_SWITCH: Mapping[str, Any] = {"type": "str", "choices": ["enabled", "disabled"]}
# option → the kernel's names of the offload, and what it does.
_OFFLOADS = {
    "gro": (("rx-gro",), "the kernel handles many packets of a connection as one"),
    "tso": (("tx-tcp-segmentation", "tx-tcp6-segmentation"), "the NIC cuts a large send into frames"),
    "gso": (("tx-generic-segmentation",), "a large send is cut into frames as late as possible"),
    "lro": (("rx-lro",), "the NIC joins packets; never on a host that forwards them"),
}
_PER_NIC: Mapping[str, Mapping[str, Any]] = {
    "rx_ring": {"type": "str"},
    "tx_ring": {"type": "str"},
    "adaptive_rx": _SWITCH,
    "rx_usecs": {"type": "int", "range": (0, 100000)},
    "tx_usecs": {"type": "int", "range": (0, 100000)},
    "offloads": {"type": "dict", "options": dict.fromkeys(_OFFLOADS, _SWITCH)},
    "mtu": {"type": "int", "range": (1280, 9001)},
    "tx_queue": {"type": "dict", "options": {"length": {"type": "int", "range": (1, 100000)}, "bql": _SWITCH}},
}
PER_NIC = tuple(_PER_NIC)

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    **_PER_NIC,
    **argspec(),
    "interfaces": {
        "type": "list",
        "elements": "dict",
        "options": {"name": {"type": "str", "required": True}, **_PER_NIC},
    },
    "ena": {"type": "dict", "options": network_ena.OPTIONS},
    "tw_recycle": _SWITCH,
    "allow_disruptive": {"type": "bool", "default": False},
    "persist": {"type": "bool", "default": True},
}

# Options that are fields of the driver's one table.
_COALESCE = ("adaptive_rx", "rx_usecs", "tx_usecs")
# Its driver knows microseconds and nothing else (supported_coalesce_params in ixgbevf/ethtool.c).
_NEVER_ADAPTS = ("ixgbevf",)
# ena_set_ringparam() raises less to ENA_MIN_RING_SIZE, and rounds down to a power of two.
_ENA_LEAST_RING = 256
_MTU_EXPRESS, _MTU_INTERNET = 8900, 1500


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for the settings of each NIC and for the kernel parameters.

    Raises NearmetalError for values that no driver or kernel takes.
    """
    files = plan_sysctls(facts, replace(wanted, options={"persist": False}))
    knobs = [name for name, rule in OPTIONS.items() if "default" not in rule and wanted.get(name) is not None]
    if not knobs:
        return files
    shut = closed(NAME, knobs[0], facts, wanted)
    if shut:
        return Plan(files.actions, shut + files.findings)
    interfaces, parameters = _interfaces(facts, wanted), plan_sysctls(facts, wanted)
    kept = parameters.replan or (wanted.get("persist") and interfaces.findings)
    lasting = by_unit(NAME, facts) if kept else Plan()
    plans = [interfaces, lasting, replace(parameters, replan=False), network_ena.plan_parameters(facts, wanted)]
    plans.append(Plan(findings=_tw_recycle(wanted) + advice(facts, wanted) + network_ena.express(facts, wanted)))
    return joined(plans)


def _interfaces(facts: Facts, wanted: Wanted) -> Plan:
    network = facts.network
    if not any(wanted.get(name) is not None for name in (*PER_NIC, "interfaces")):
        return Plan()
    if network is None or not network.nics:
        return Plan(findings=(Finding(NAME, "interfaces", "unknown", "this host shows no NIC"),))
    plans: List[Plan] = [gone(NAME, network, wanted)]
    for choice in choices(NAME, network, wanted, PER_NIC):
        plans += [_rings(facts, network, choice, wanted), _coalesce(network, choice, wanted)]
        plans += [
            _offloads(network, choice, wanted),
            _bql(network, choice, wanted),
            _numbers(facts, network, choice, wanted),
        ]
    return joined(plans)


def _rings(facts: Facts, network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    one = choice.nic
    asked = {field: choice.get(f"{field}_ring") for field in ("rx", "tx") if choice.get(f"{field}_ring") is not None}
    if not asked:
        return Plan()
    make = knob_maker(NAME, wanted)
    knobs = {field: make(f"{field}_ring", "network.rings", "S4-05; ec2.md 2.8", True) for field in asked}
    now, most = fields(network.rings, one.place), network.rings_max.get(one.place, {})
    if not now:
        told = tuple(knob.told(one, "not_applicable", f"{driver_of(one)} has fixed rings") for knob in knobs.values())
        return Plan(findings=told)
    goal: Dict[str, int] = {}
    why = "more descriptors outlast longer bursts; traffic stops for a moment"
    for field, text in asked.items():
        number = int(text) if text.isdigit() and text.isascii() else 0
        if text == MAX or (wanted.stored and number > most[field]):  # an earlier run was on a host that took more
            number = most[field]
        if text != MAX and not 0 < number <= most[field]:
            takes, by = f"1 to {most[field]}, or max", wanted.wanted_by(f"{field}_ring")
            return _impossible(knobs[field], one.name, f"{field}_ring", text, takes, by)
        goal[field] = _power_of_two(number) if one.driver == "ena" else number
        own = facts.own("network.rings", f"{one.place}/{field}", now[field])
        if binds(wanted, f"{field}_ring") and isinstance(own, int) and own > goal[field]:
            why = kept_reason(LEAST, str(goal[field]), str(own), str(own), why)
            goal[field] = own
    if {**now, **goal} != now and network.carries_default(one) and not wanted.get("allow_disruptive"):
        reason = "it carries the default route, and new rings stop its traffic for a moment: allow_disruptive: true"
        told = tuple(knob.told(one, "refused", reason, now[field], goal[field]) for field, knob in knobs.items())
        return Plan(findings=told)
    return _fields(choice, knobs, now, goal, why)


def _power_of_two(number: int) -> int:
    """What ENA's driver makes of a number of descriptors."""
    return 1 << max(number, _ENA_LEAST_RING).bit_length() - 1


def _coalesce(network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    asked = {option: choice.get(option) for option in _COALESCE if choice.get(option) is not None}
    goal = {field: int(value == "enabled") if isinstance(value, str) else value for field, value in asked.items()}
    one, make = choice.nic, knob_maker(NAME, wanted)
    knobs = {field: make(field, "network.coalesce", "S1-09, S4-14; ec2.md 2.8") for field in goal}
    told: List[Finding] = []
    if "adaptive_rx" in goal and one.driver in _NEVER_ADAPTS:
        reason = f"{one.driver} doesn't adapt: rx_usecs is what it has"
        told.append(knobs.pop("adaptive_rx").told(one, "not_applicable", reason))
        del goal["adaptive_rx"]
    why = "fewer interrupts save CPU, each packet waits longer (Aerospike, 2014, saw no more throughput)"
    return joined([Plan(findings=tuple(told)), _fields(choice, knobs, fields(network.coalesce, one.place), goal, why)])


def _fields(
    choice: Choice, knobs: Mapping[str, Knob], now: Mapping[str, Value], goal: Mapping[str, Value], why: str
) -> Plan:
    """Change some fields of a driver's table, each a knob of its own; the engine writes those of a NIC in one go."""
    one = choice.nic
    if not now:
        reason = f"{driver_of(one)} has no such setting"
        return Plan(findings=tuple(knob.told(one, "not_applicable", reason) for knob in knobs.values()))
    return joined([knob.change(one, now.get(field), goal[field], why, field) for field, knob in knobs.items()])


def _offloads(network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    one, make = choice.nic, knob_maker(NAME, wanted)
    plans = []
    now = fields(network.offloads, one.place)
    for option, asked in (choice.get("offloads") or {}).items():
        if asked is None:
            continue
        names, why = _OFFLOADS[option]
        knob, goal = make(option, "network.offloads", "S0-38; ec2.md 2.8", of="offloads"), asked == "enabled"
        for name in [name for name in names if name in now] or names[:1]:
            if now and (name not in now or (name in network.fixed.get(one.place, ()) and now[name] != goal)):
                plans.append(
                    Plan(findings=(knob.told(one, "not_applicable", f"{driver_of(one)} can't switch {name}"),))
                )
            else:
                plans.append(_fields(choice, {name: knob}, now, {name: goal}, why))
    return joined(plans)


def _bql(network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    """Byte queue limits: off is a lower limit as large as the upper one."""
    one, asked = choice.nic, (choice.get("tx_queue") or {}).get("bql")
    if asked is None:
        return Plan()
    knob = knob_maker(NAME, wanted)("bql", "network.bql", "S4-12; ec2.md 2.8", of="tx_queue")
    now, most = dict(network.bql.get(one.place, {})), network.bql_max.get(one.place)
    if not now or most is None:
        return Plan(findings=(knob.told(one, "not_applicable", "this kernel shows no byte_queue_limits for it"),))
    goal = dict.fromkeys(now, most if asked == "disabled" else 0)
    return knob.change(one, now, goal, "it keeps a queue short for the latency of others; ENA Express wants it off")


def _numbers(facts: Facts, network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    """MTU and the length of the queue in front of the driver."""
    one, plans = choice.nic, []
    mtu, length = choice.get("mtu"), (choice.get("tx_queue") or {}).get("length")
    make = knob_maker(NAME, wanted)
    if length is not None:
        knob = make("txqueuelen", "network.txqueuelen", "ec2.md 2.10", of="tx_queue")
        plans.append(knob.change(one, network.txqueuelen.get(one.place), length, "packets that wait for the driver"))
    if mtu is not None:
        knob = make("mtu", "network.mtu", "S4-16; ec2.md 2.10", True)
        now = network.mtu.get(one.place)
        above = network.above(one)
        if mtu != now and above:
            # vlan_device_event() of net/8021q/vlan.c: what lies above is lowered with it, and never raised again.
            reason = (
                f"{', '.join(above)} above it would keep another MTU, or not get its own back: set all of them where"
                " the distribution sets the network up"
            )
            plans.append(Plan(findings=(knob.told(one, "refused", reason, now, mtu),)))
        elif mtu != now and network.carries_default(one) and not wanted.get("allow_disruptive"):
            reason = (
                "it carries the default route; where ICMP is dropped connections would hang: allow_disruptive: true"
            )
            plans.append(Plan(findings=(knob.told(one, "refused", reason, now, mtu),)))
        else:
            plans.append(knob.change(one, now, mtu, "larger frames cost less CPU per byte within the VPC"))
        plans.append(Plan(findings=_mtu_limits(facts, network, choice, knob, wanted)))
    return joined(plans)


def _mtu_limits(facts: Facts, network: NetworkFacts, choice: Choice, knob: Knob, wanted: Wanted) -> Tuple[Finding, ...]:
    mtu, one = choice.get("mtu"), choice.nic
    told = []
    if mtu > _MTU_EXPRESS and network_ena.may_use_express(facts, one):
        told.append(knob.told(one, "advice", f"ENA Express takes frames up to {_MTU_EXPRESS} bytes"))
    if mtu > _MTU_INTERNET and network.carries_default(one) and wanted.get("mtu_probing") in (None, "disabled"):
        reason = (
            f"an internet gateway or VPN passes {_MTU_INTERNET} bytes: let ICMP type 3 code 4 in, or set"
            " mtu_probing: on_black_hole"
        )
        told.append(knob.told(one, "advice", reason))
    return tuple(told)


def _tw_recycle(wanted: Wanted) -> Tuple[Finding, ...]:
    if wanted.get("tw_recycle") is None:
        return ()
    knob = knob_maker(NAME, wanted)("tw_recycle", "sysctl", "ec2.md 2.10")
    if wanted.get("tw_recycle") == "disabled":
        return (knob.told(None, "ok", "Linux 4.12 removed it"),)
    reason = "it dropped connections of clients behind one address, and Linux 4.12 removed it"
    return (knob.told(None, "refused", reason),)


def _impossible(knob: Knob, name: str, option: str, value: Value, takes: str, by: str) -> Plan:
    sentence = f"network_stack.{option}: {name} can't have {value}; it takes {takes}"
    if by != "workload":
        raise NearmetalError(sentence)
    return Plan(findings=(Finding(NAME, option, "not_applicable", sentence, reference=knob.reference),))


CONCERN = Concern(
    name=NAME,
    options=OPTIONS,
    domains=("platform", "topology", "kernel", "network", "sysctl", "boot", "files", "unit"),
    plan=plan,
    by_place=True,
    checks=("bql", "ena_bql", "ena_express", "ena_large_llq", "ena_lpc_size", "gro", "txqueuelen"),
    bounds={"rx_ring": LEAST, "tx_ring": LEAST, **bounds()},
)
