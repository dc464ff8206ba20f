# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""numa: whether memory moves between nodes, which services are bound to a node. Pure. PRIVATE to the collection.

Local memory is faster than another node's. The kernel can move memory after the threads that use it;
where programs bind their own threads, this costs time and brings nothing (AWS, 2017).
"""

from __future__ import annotations

from typing import Tuple

from ..._facts.facts import Facts
from ..._facts.sysctl import NUMA_BALANCING, ZONE_RECLAIM
from ..._plan import Plan, Wanted, joined
from ..._planning import unit
from ..._planning.boot_argument import plan_argument
from ..._planning.gate import gate_refusal, host_class
from ..._planning.knob import Knob, boot_argument
from ..._planning.native import sysctl_d
from ..._planning.options import CONSENT, PERSIST
from ..._planning.skeleton import tuning
from . import services

NAME = "numa"

_BALANCING = Knob(
    NAME,
    "balancing",
    "sysctl",
    "AWS, 2017",
    {"type": "str", "choices": ["kernel", "enabled", "disabled"]},
    place=NUMA_BALANCING,
    takes_effect="slowly",
)
_RECLAIM = Knob(
    NAME,
    "zone_reclaim_mode",
    "sysctl",
    "Linux kernel, sysctl/vm; tuned, hpc-compute",
    {"type": "int", "range": (0, 7)},
    place=ZONE_RECLAIM,
    takes_effect="at_once",
)
_NODES = boot_argument(NAME, "nodes", "numa", "AWS, 2017", spec={"type": "str", "choices": ["kernel", "hidden"]})
KNOBS = (_BALANCING, _RECLAIM, _NODES, services.SERVICES)

# Share of a node's pages, in per mille: when CPUs of another node took more, there is advice.
_MUCH = 100


def _unbound(facts: Facts, wanted: Wanted) -> Plan:
    """The plan that takes back what an earlier run bound, where no service is wanted or none can be bound."""
    refused = gate_refusal(NAME, "services", facts, wanted) or _without_nodes(services.SERVICES, facts, wanted)
    if services.SERVICES.value(wanted) is None or refused:
        return services.plan(facts, Wanted())
    return Plan()


def _decide(facts: Facts, wanted: Wanted) -> Plan:
    plans = []
    for knob in KNOBS:
        if knob.value(wanted) is None:
            continue
        reason = _without_nodes(knob, facts, wanted)
        if reason:
            value = knob.value(wanted) if knob is not services.SERVICES else None
            plans.append(knob.at("").says("not_applicable", reason, None, value))
        elif knob is _NODES:
            plans.append(_nodes(facts, wanted))
        elif knob is services.SERVICES:
            plans.append(services.plan(facts, wanted))
        else:
            plans.append(_parameter(facts, wanted, knob))
    return joined(*plans, _remote(facts), Plan(replan=_may_get_nodes(facts, wanted)))


def _without_nodes(knob: Knob, facts: Facts, wanted: Wanted) -> str:
    """Why the knob has no nodes to act on; empty where it has."""
    if host_class(facts, wanted) == "xen_pv":
        return "Xen PV shows its guests no NUMA nodes"
    hidden = facts.numa.off_argument
    if len(facts.nodes) >= 2 or (hidden and knob is _NODES):
        return ""
    why = "numa=off hides its nodes" if hidden else "all memory is local"
    return f"this host has one node: {why}"


def _may_get_nodes(facts: Facts, wanted: Wanted) -> bool:
    """Whether the unit plans a parameter at boot: the same disk may start as a type with several nodes."""
    parameters = any(knob.value(wanted) is not None for knob in (_BALANCING, _RECLAIM))
    single = len(facts.topology.nodes) < 2
    can_plan = not unit.obstacle(facts.unit)
    return parameters and single and can_plan and host_class(facts, wanted) != "xen_pv"


def _parameter(facts: Facts, wanted: Wanted, knob: Knob) -> Plan:
    now, requested = facts.sysctl.get(knob.place), knob.value(wanted)
    if now is None:
        return knob.at("").says("not_applicable", f"this kernel has no {knob.place}", None, requested)
    goal, reason = _balance(facts, requested, now) if knob is _BALANCING else _reclaim(requested)
    return knob.change(wanted, now, goal, reason)


def _balance(facts: Facts, requested: str, now: str) -> Tuple[str, str]:
    if requested == "kernel" and facts.numa.balancing_argument == "disable":
        return "0", "numa_balancing=disable is on the kernel command line"
    if requested == "disabled":
        return (
            "0",
            "memory stays on the node where it was allocated; bind threads to that node, or they read remote memory",
        )
    if now in ("2", "3"):  # 2 also moves cold pages to slower memory: balancing is on
        return now, f"NUMA balancing is on already, in mode {now}"
    return "1", "the kernel moves memory to the node whose CPUs use it"


def _reclaim(requested: int) -> Tuple[str, str]:
    if requested == 0:
        return "0", "a full node takes memory of another node instead of dropping its file cache"
    return str(requested), "the requested value"


def _nodes(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for numa=off, which is hardly ever right and so needs its own opt-in."""
    hidden = _NODES.value(wanted) == "hidden"
    if hidden and facts.burstable:
        return _NODES.at("").says("refused", "a burstable type has one node by design", None, "hidden")
    if hidden and not wanted.get("allow_hidden_nodes"):
        reason = (
            "numa=off doesn't make memory local: it hides the nodes from the scheduler, irqbalance,"
            " numactl and ENA, and memory fills node by node; use balancing: disabled and bind with"
            " numactl or systemd's NUMAPolicy=, or spread with numactl --interleave=all;"
            " allow_hidden_nodes: true sets it anyway"
        )
        return _NODES.at("").says("refused", reason, None, "hidden")
    text = "numa=off" if hidden else None
    reason = "the kernel looks for its nodes only once, at boot"
    return plan_argument(facts, wanted, _NODES, text, reason)


def _remote(facts: Facts) -> Plan:
    """Advice about nodes that gave much of their memory to CPUs of another node."""
    shares = facts.numa.remote
    large = [
        f"{share / 10:.0f} % on {node}" for node, share in sorted(shares.items()) if share is not None and share > _MUCH
    ]
    if not large or len(shares) < 2:
        return Plan()
    reason = (
        f"CPUs of another node took much of the memory ({', '.join(large)}): bind services to their"
        " node with numactl or systemd's NUMAPolicy="
    )
    return _BALANCING.at("").says("advice", reason)


CONCERN = tuning(
    NAME,
    sysctl_d,
    knobs=KNOBS,
    manner={"persist": PERSIST, "allow_hidden_nodes": CONSENT},
    domains=("platform", "topology", "numa", "sysctl", "boot", "unit", "files"),
    decide=[_decide],
    also=_unbound,
)
