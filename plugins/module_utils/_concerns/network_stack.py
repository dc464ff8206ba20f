# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_stack: rings, interrupt moderation, offloads, MTU and kernel parameters. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.boot_argument import Argument, plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.gate import closed
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.native import by_unit
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_choice import (
    Choice,
    Knob,
    choices,
    joined,
    knob_maker,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_sysctl import (
    NAME,
    advice,
    argspec,
    plan_sysctls,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.network import NetworkFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Value, Wanted

_SWITCH: Mapping[str, Any] = {"type": "str", "choices": ["enabled", "disabled"]}
_PER_NIC: Mapping[str, Mapping[str, Any]] = {
    "rx_ring": {"type": "str"},
    "tx_ring": {"type": "str"},
    "adaptive_rx": _SWITCH,
    "rx_usecs": {"type": "int"},
    "tx_usecs": {"type": "int"},
    "gro": _SWITCH,
    "mtu": {"type": "int"},
    "txqueuelen": {"type": "int"},
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
    "ena_large_llq": {"type": "str", "choices": ["enabled", "disabled", "kernel"]},
    "tw_recycle": _SWITCH,
    "allow_disruptive": {"type": "bool", "default": False},
    "persist": {"type": "bool", "default": True},
}

# Options that are fields of the driver's one table.
_COALESCE = ("adaptive_rx", "rx_usecs", "tx_usecs")
# Its driver knows microseconds and nothing else (supported_coalesce_params in ixgbevf/ethtool.c).
_NEVER_ADAPTS = ("ixgbevf",)
_GRO = "rx-gro"
_MTU_LEAST, _MTU_MOST, _MTU_EXPRESS, _MTU_INTERNET = 1280, 9001, 8900, 1500


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
    plans = [_interfaces(facts, wanted), plan_sysctls(facts, wanted), _large_llq(facts, wanted)]
    plans.append(Plan(findings=_tw_recycle(wanted) + advice(facts, wanted)))
    return joined(plans)


def _interfaces(facts: Facts, wanted: Wanted) -> Plan:
    network = facts.network
    if not any(wanted.get(name) is not None for name in (*PER_NIC, "interfaces")):
        return Plan()
    if network is None or not network.nics:
        return Plan(findings=(Finding(NAME, "interfaces", "unknown", "this host shows no NIC"),))
    plans: List[Plan] = []
    for choice in choices(NAME, network, wanted, PER_NIC):
        plans += [_rings(network, choice, wanted), _coalesce(network, choice, wanted)]
        plans += [_offloads(network, choice, wanted), _numbers(network, choice, wanted)]
    found = joined(plans)
    if found.findings and wanted.get("persist"):
        return joined([found, by_unit(NAME, facts)])
    return found


def _rings(network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    one = choice.nic
    asked = {field: choice.get(f"{field}_ring") for field in ("rx", "tx") if choice.get(f"{field}_ring") is not None}
    if not asked:
        return Plan()
    make = knob_maker(NAME, wanted)
    knobs = {field: make(f"{field}_ring", "network.rings", "S4-05; ec2.md 2.8", True) for field in asked}
    now, most = network.rings.get(one.place), network.rings_max.get(one.place, {})
    if now is None:
        told = tuple(knob.told(one, "not_applicable", f"{one.driver} has fixed rings") for knob in knobs.values())
        return Plan(findings=told)
    goal: Dict[str, int] = {}
    for field, text in asked.items():
        if text != "max" and not (text.isdigit() and text.isascii() and 0 < int(text) <= most[field]):
            takes, by = f"1 to {most[field]}, or max", wanted.wanted_by(f"{field}_ring")
            return _impossible(knobs[field], one.name, f"{field}_ring", text, takes, by)
        goal[field] = most[field] if text == "max" else int(text)
    if {**now, **goal} != dict(now) and one.name in network.default_route and not wanted.get("allow_disruptive"):
        reason = "it carries the default route, and new rings stop its traffic for a moment: allow_disruptive: true"
        told = tuple(knob.told(one, "refused", reason, now[field], goal[field]) for field, knob in knobs.items())
        return Plan(findings=told)
    why = "more descriptors outlast longer bursts; traffic stops for a moment"
    return _shared(choice, knobs, now, goal, why)


def _coalesce(network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    asked = {option: choice.get(option) for option in _COALESCE if choice.get(option) is not None}
    goal = {field: int(value == "enabled") if isinstance(value, str) else value for field, value in asked.items()}
    if any(value < 0 or value > 100000 for value in goal.values()):
        raise NearmetalError(f"network_stack: rx_usecs and tx_usecs are 0 to 100000, not {sorted(goal.values())}")
    one, make = choice.nic, knob_maker(NAME, wanted)
    knobs = {field: make(field, "network.coalesce", "S1-09, S4-14; ec2.md 2.8") for field in goal}
    told: List[Finding] = []
    if "adaptive_rx" in goal and one.driver in _NEVER_ADAPTS:
        reason = f"{one.driver} doesn't adapt: rx_usecs is what it has"
        told.append(knobs.pop("adaptive_rx").told(one, "not_applicable", reason))
        del goal["adaptive_rx"]
    why = "fewer interrupts save CPU, each packet waits longer (S1-09 saw no more throughput)"
    return joined([Plan(findings=tuple(told)), _shared(choice, knobs, network.coalesce.get(one.place), goal, why)])


def _shared(
    choice: Choice, knobs: Mapping[str, Knob], now: "Mapping[str, int] | None", goal: Mapping[str, int], why: str
) -> Plan:
    """Change some entries of a table that several knobs share: one action, and a finding for each knob."""
    one = choice.nic
    if now is None:
        reason = f"{one.driver} has no such setting"
        return Plan(findings=tuple(knob.told(one, "not_applicable", reason) for knob in knobs.values()))
    findings = tuple(
        knob.told(one, "ok" if now.get(field) == goal[field] else "would_change", why, now.get(field), goal[field])
        for field, knob in knobs.items()
    )
    changed = [knob for field, knob in knobs.items() if now.get(field) != goal[field]]
    if not changed:
        return Plan(findings=findings, held=tuple((knob.what, one.place) for knob in knobs.values()))
    action = changed[0].action(one.place, dict(now), {**now, **goal}, f"{one.name}: {why}")
    return Plan((action,), findings)


def _offloads(network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    asked = {_GRO: choice.get("gro") == "enabled"} if choice.get("gro") is not None else {}
    knob = knob_maker(NAME, wanted)("gro", "network.offloads", "S0-38; ec2.md 2.8")
    now = network.offloads.get(choice.nic.place)
    if asked and _GRO in network.fixed.get(choice.nic.place, ()) and (now or {}).get(_GRO) != asked[_GRO]:
        return Plan(findings=(knob.told(choice.nic, "not_applicable", f"{choice.nic.driver} can't switch {_GRO}"),))
    return _table(choice, knob, now, asked, "the kernel handles many packets of a connection as one")


def _table(choice: Choice, knob: Knob, now: "Mapping[str, Value] | None", goal: Mapping[str, Value], why: str) -> Plan:
    """Change some entries of a driver's table and leave the others."""
    if not goal:
        return Plan()
    if now is None:
        return Plan(findings=(knob.told(choice.nic, "not_applicable", f"{choice.nic.driver} has no such setting"),))
    return knob.change(choice.nic, dict(now), {**now, **goal}, why)


def _numbers(network: NetworkFacts, choice: Choice, wanted: Wanted) -> Plan:
    """MTU and the length of the queue in front of the driver."""
    one, plans = choice.nic, []
    mtu, length = choice.get("mtu"), choice.get("txqueuelen")
    make = knob_maker(NAME, wanted)
    if length is not None:
        knob = make("txqueuelen", "network.txqueuelen", "ec2.md 2.10")
        if not 0 < length <= 100000:
            return _impossible(knob, one.name, "txqueuelen", length, "1 to 100000", wanted.wanted_by("txqueuelen"))
        plans.append(knob.change(one, network.txqueuelen.get(one.place), length, "packets that wait for the driver"))
    if mtu is not None:
        knob = make("mtu", "network.mtu", "S4-16; ec2.md 2.10", True)
        if not _MTU_LEAST <= mtu <= _MTU_MOST:
            takes = f"{_MTU_LEAST} to {_MTU_MOST}"
            return _impossible(knob, one.name, "mtu", mtu, takes, wanted.wanted_by("mtu"))
        now = network.mtu.get(one.place)
        if mtu != now and one.name in network.default_route and not wanted.get("allow_disruptive"):
            reason = (
                "it carries the default route; where ICMP is dropped connections would hang: allow_disruptive: true"
            )
            plans.append(Plan(findings=(knob.told(one, "refused", reason, now, mtu),)))
        else:
            plans.append(knob.change(one, now, mtu, "larger frames cost less CPU per byte within the VPC"))
        plans.append(Plan(findings=_mtu_limits(network, choice, knob, wanted)))
    return joined(plans)


def _mtu_limits(network: NetworkFacts, choice: Choice, knob: Knob, wanted: Wanted) -> Tuple[Finding, ...]:
    mtu, one = choice.get("mtu"), choice.nic
    told = []
    if mtu > _MTU_EXPRESS:
        told.append(knob.told(one, "advice", f"ENA Express takes frames up to {_MTU_EXPRESS} bytes"))
    if mtu > _MTU_INTERNET and one.name in network.default_route and wanted.get("mtu_probing") in (None, "disabled"):
        reason = (
            f"an internet gateway or VPN passes {_MTU_INTERNET} bytes: let ICMP type 3 code 4 in, or set"
            " mtu_probing: on_black_hole"
        )
        told.append(knob.told(one, "advice", reason))
    return tuple(told)


def _large_llq(facts: Facts, wanted: Wanted) -> Plan:
    """ENA's headers of 224 bytes: a parameter of the driver that only its loading sets."""
    asked = wanted.get("ena_large_llq")
    if asked is None:
        return Plan()
    drivers = {one.driver for one in facts.network.nics} if facts.network is not None else set()
    knob = knob_maker(NAME, wanted)("ena_large_llq", "boot.arguments", "ec2.md 2.8")
    if "ena" not in drivers:
        return Plan(findings=(knob.told(None, "not_applicable", "no interface of this host is ENA"),))
    value: Dict[str, str] = {"enabled": "ena.force_large_llq_header=1", "disabled": "ena.force_large_llq_header=0"}
    return plan_argument(
        facts,
        Argument(
            concern=NAME,
            knob="ena_large_llq",
            name="ena.force_large_llq_header",
            text=value.get(asked),
            reason="the driver reads it when it is loaded; with it packets of long headers aren't dropped, and the"
            " transmit ring has 512 descriptors",
            reference="ec2.md 2.8",
            wanted_by=wanted.wanted_by("ena_large_llq"),
        ),
    )


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
    domains=("platform", "topology", "network", "sysctl", "boot", "files", "unit"),
    plan=plan,
)
