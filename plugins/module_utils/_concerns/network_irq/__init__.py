# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_irq: which CPU each queue of each NIC interrupts, and which CPUs share its work. Pure. PRIVATE.

An interrupt whose mask names several CPUs is still delivered to one of them, so
a wide mask spreads nothing (S1-08): each queue gets one CPU of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_irq import steering
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_irq.compute import plan_compute
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_irq.irqbalance import plan_ban
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_irq.spread import Demand, spread
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.network import NetworkFacts, cpus
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.nic import Nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import TopologyFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed, host_class, may_be_burstable
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import by_unit
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.network_choice import (
    Choice,
    Knob,
    choices,
    cpu_list,
    driver_of,
    gone,
    joined,
    knob_maker,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown

NAME = "network_irq"
REFERENCE = "S1-08, S4-13; ec2.md 2.9"
POLICIES = ["auto", "spread", "dedicated", "irqbalance", "kernel"]

# One core of eight, where there are eight. perftune takes one of sixteen and cuts the queues to that number, which
# leaves a Graviton of 8 or 16 vCPUs one queue; AWS's Graviton guide wants one queue per core.
CORES_PER_DEDICATED = 8

# S1-13: one core full of interrupts while the host as a whole is half idle.
HOT, HOT_OVER_OTHERS = 0.25, 4

_PER_NIC: Mapping[str, Mapping[str, Any]] = {
    "policy": {"type": "str", "choices": POLICIES},
    "queues": {"type": "str"},
    "rps": {"type": "str"},
    "rfs": {"type": "str"},
    "xps": {"type": "str"},
}
KNOBS = tuple(_PER_NIC)

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    **_PER_NIC,
    "irq_cpus": {"type": "str"},
    "compute_units": {"type": "list", "elements": "str"},
    "interfaces": {
        "type": "list",
        "elements": "dict",
        "options": {"name": {"type": "str", "required": True}, **_PER_NIC},
    },
    "allow_disruptive": {"type": "bool", "default": False},
    "restart_irqbalance": {"type": "bool", "default": False},
    "persist": {"type": "bool", "default": True},
}


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for interrupts and steering of every NIC.

    Raises NearmetalError for CPUs, queues or interfaces that the host doesn't have, and for CPUs without a policy.
    """
    _demand_policy(wanted)
    asked = [knob for knob in KNOBS if wanted.get(knob) is not None] or ["interfaces"]
    if wanted.get(asked[0]) is None:
        return Plan()
    shut = [finding for knob in asked for finding in closed(NAME, knob, facts, wanted)]
    if shut:
        return Plan(findings=tuple(shut))
    network, topology = facts.network, facts.topology
    if network is None or topology is None or not topology.cpus_online or not network.nics:
        reason = "this host shows no NIC, or not which CPUs are online"
        return Plan(findings=tuple(Finding(NAME, knob, "unknown", reason, reference=REFERENCE) for knob in asked))
    everyone = choices(NAME, network, wanted, KNOBS)
    chosen = tuple(choice for choice in everyone if choice.nic.up)
    down = [choice.nic for choice in everyone if choice.options and not choice.nic.up]
    queues, counts = _queues(network, chosen, wanted)
    pinned, assigned = _policy(facts, network, topology, chosen, counts, wanted)
    placed = project(facts, pinned.actions).network or network
    steered = steering.plan_steering(facts, steering.Scene(placed, topology, counts, assigned), chosen, wanted)
    everything = joined([queues, pinned, steered])
    lasting = any(finding.status != "advice" for finding in everything.findings)
    kept = by_unit(NAME, facts) if lasting and wanted.get("persist") else Plan()
    told = tuple(
        Finding(NAME, "interfaces", "advice", f"{one.name} is down: nothing to place", where=one.place) for one in down
    )
    return joined([everything, kept, gone(NAME, network, wanted), Plan(findings=told + _hotspot(network))])


def _demand_policy(wanted: Wanted) -> None:
    """Raise NearmetalError for irq_cpus alone: a run without a policy takes back what an earlier one placed."""
    waived = [waiver["knob"] for waiver in wanted.get("waivers") or ()]
    policies = [wanted.get("policy"), *(entry.get("policy") for entry in wanted.get("interfaces") or ())]
    if wanted.get("irq_cpus") is None or wanted.stored or "policy" in waived or any(policies):
        return
    raise NearmetalError("network_irq.irq_cpus: it says where a policy places interrupts; set policy too")


def _queues(network: NetworkFacts, chosen: Tuple[Choice, ...], wanted: Wanted) -> Tuple[Plan, Dict[str, int]]:
    """The plan for the number of queues, and that number as it will be."""
    counts = dict(network.queues)
    knob = knob_maker(NAME, wanted)("queues", "network.queues", "S4-04, S4-13; ec2.md 2.8", True)
    plans = []
    for choice in chosen:
        asked, one = choice.get("queues"), choice.nic
        if asked is None:
            continue
        most, now = network.queues_max.get(one.place), counts.get(one.place)
        if not most or now is None:
            plans.append(
                Plan(findings=(knob.told(one, "not_applicable", f"{driver_of(one)} has a fixed number", now),))
            )
            continue
        if wanted.stored and asked.isdigit() and asked.isascii() and int(asked) > most:
            asked = "max"  # an earlier run was on a host that took more
        if asked != "max" and not (asked.isdigit() and asked.isascii() and 0 < int(asked) <= most):
            sentence = f"network_irq.queues: {one.name} can't have {shown(asked)} queues; it takes 1 to {most}, or max"
            if wanted.wanted_by("queues") != "workload":
                raise NearmetalError(sentence)
            plans.append(Plan(findings=(knob.told(one, "not_applicable", sentence, now),)))
            continue
        goal = most if asked == "max" else int(asked)
        if goal != now and network.carries_default(one) and not wanted.get("allow_disruptive"):
            reason = (
                "it carries the default route, and the change stops its traffic for a moment: allow_disruptive: true"
            )
            plans.append(Plan(findings=(knob.told(one, "refused", reason, now, goal),)))
            continue
        counts[one.place] = goal
        reason = "each queue can have a CPU of its own; the change interrupts traffic for a moment"
        plans.append(knob.change(one, now, goal, reason))
    return joined(plans), counts


def _policy(
    facts: Facts,
    network: NetworkFacts,
    topology: TopologyFacts,
    chosen: Tuple[Choice, ...],
    counts: Mapping[str, int],
    wanted: Wanted,
) -> Tuple[Plan, Dict[str, Tuple[int, ...]]]:
    """The plan for affinities, and per place the CPU of each queue as it will be."""
    knob = knob_maker(NAME, wanted)("policy", "network.affinity", REFERENCE)
    plans: List[Plan] = []
    ours: List[Tuple[Nic, str]] = []
    for choice in chosen:
        stop = _stop(facts, network, topology, choice, counts, knob, wanted)
        if stop is not None:
            plans.append(Plan(findings=(stop,)))
        elif choice.get("policy") == "kernel":
            plans.append(_to_kernel(network, choice.nic, counts, knob))
        elif choice.get("policy") is not None:
            ours.append((choice.nic, choice.get("policy")))
    every = wanted.get("policy") not in (None, "irqbalance", "kernel")
    placed = [one for one, _policy in ours]
    banned, free = plan_ban(facts, placed, [one for one in network.nics if one not in placed], every, wanted)
    if not free:
        return joined([*plans, _waiting(network, ours, knob, banned)]), {}
    plans.append(banned)
    found = _assign(network, topology, ours, counts, wanted)
    for one, policy in ours:
        now = dict(network.affinity.get(one.place, {}))
        goal = table(one, found[one.place])
        reason = "a CPU for each queue, cores of its node first; of a mask of several the kernel would use only one"
        if policy == "dedicated":
            reason = "the interrupts of all queues on a few cores, the others are for the application"
        plans.append(knob.change(one, {label: now[label] for label in goal if label in now}, goal, reason))
    if any(policy == "dedicated" for _one, policy in ours):
        plans.append(plan_compute(facts, topology, found, wanted))
    return joined(plans), {place: tuple(one.values()) for place, one in found.items()}


def _stop(
    facts: Facts,
    network: NetworkFacts,
    topology: TopologyFacts,
    choice: Choice,
    counts: Mapping[str, int],
    knob: Knob,
    wanted: Wanted,
) -> Optional[Finding]:
    """The finding for a NIC whose interrupts aren't ours to place."""
    policy, one = choice.get("policy"), choice.nic
    if policy is None:
        return None
    if policy == "irqbalance":
        told = "left to irqbalance" if network.irqbalance else "irqbalance doesn't run here: nobody moves interrupts"
        return knob.told(one, "advice", told)
    if not one.vectors or not counts.get(one.place):
        return knob.told(one, "not_applicable", "the names of its interrupts say nothing of queues")
    if len(topology.cpus_online or ()) < 2:
        return knob.told(one, "not_applicable", "the host has one CPU")
    if facts.platform is not None and facts.platform.burstable and policy != "kernel":
        return knob.told(one, "refused", "a burstable type has few vCPUs, and pinning takes them from the scheduler")
    asked = may_be_burstable(facts) if policy != "kernel" else ""
    if asked:
        return knob.told(one, "refused", f"this may be a burstable type, on which nothing is pinned: {asked}")
    if host_class(facts, wanted) == "xen_pv" and policy == "auto":
        return knob.told(one, "refused", "on Xen PV the event channels follow the vCPUs; policy: spread does it")
    if policy != "kernel" and not _allowed(network, topology, wanted):
        return knob.told(one, "not_applicable", f"none of irq_cpus ({wanted.get('irq_cpus')}) is online any more")
    if policy == "dedicated" and wanted.get("irq_cpus") is None and len(topology.cores or ()) < CORES_PER_DEDICATED:
        reason = f"fewer than {CORES_PER_DEDICATED} cores: one for interrupts alone is too many; irq_cpus says which"
        return knob.told(one, "refused", reason)
    return None


def _waiting(network: NetworkFacts, ours: List[Tuple[Nic, str]], knob: Knob, banned: Plan) -> Plan:
    """What to say of NICs that irqbalance doesn't leave alone yet."""
    last = banned.findings[-1]
    kept = banned if last.status != "refused" else Plan()
    told = []
    for one, _policy in ours:
        now = dict(network.affinity.get(one.place, {}))
        told.append(replace(knob.told(one, last.status, last.reason, now), owner="irqbalance"))
    return joined([kept, Plan(findings=tuple(told))])


def _to_kernel(network: NetworkFacts, one: Nic, counts: Mapping[str, int], knob: Knob) -> Plan:
    default = network.default_affinity
    if default is None:
        return Plan(findings=(knob.told(one, "unknown", "the kernel's own choice can't be read"),))
    now = dict(network.affinity.get(one.place, {}))
    goal = dict.fromkeys(labels(one, counts[one.place]), default)
    return knob.change(one, {label: now[label] for label in goal if label in now}, goal, "the kernel's own choice")


def _assign(
    network: NetworkFacts,
    topology: TopologyFacts,
    ours: List[Tuple[Nic, str]],
    counts: Mapping[str, int],
    wanted: Wanted,
) -> Dict[str, Dict[int, int]]:
    few = allowed = _allowed(network, topology, wanted)
    if wanted.get("irq_cpus") is None:
        few = dedicated(topology, allowed, [one.node for one, policy in ours if policy == "dedicated"])
    found: Dict[str, Dict[int, int]] = {}
    for policy, usable in (("dedicated", few), ("", allowed)):
        demands = [
            Demand(one.place, one.node, counts[one.place], _pinned(network, one, counts[one.place]))
            for one, name in ours
            if (name == "dedicated") == bool(policy)
        ]
        found.update(spread(topology, usable, demands))
    return found


def _allowed(network: NetworkFacts, topology: TopologyFacts, wanted: Wanted) -> FrozenSet[int]:
    """The CPUs that may get interrupts; none when those of an earlier run are gone."""
    if wanted.get("irq_cpus") is not None:
        return frozenset(cpu_list("network_irq.irq_cpus", wanted.get("irq_cpus"), topology, wanted.stored))
    online = frozenset(topology.cpus_online or ())
    return online - frozenset(cpus(network.isolated)) or online


def dedicated(topology: TopologyFacts, allowed: FrozenSet[int], nodes: List[Optional[int]]) -> FrozenSet[int]:
    """The CPUs for interrupts alone: whole cores, one of eight on each node that has such a NIC, the first ones."""
    cores = [tuple(cpu for cpu in core if cpu in allowed) for core in topology.cores or ()]
    cores = [core for core in cores if core]
    taken: List[int] = []
    for node in dict.fromkeys(nodes):
        local = [one.cpus for one in topology.nodes if one.id == node]
        here = [core for core in cores if not local or core[0] in local[0]] or cores
        for core in here[: max(1, len(here) // CORES_PER_DEDICATED)]:
            taken += core
    return frozenset(taken)


def labels(one: Nic, queues: int) -> Tuple[str, ...]:
    """The names of a NIC's interrupts when it has so many queues; a queue may have none, if it shares another's."""
    kinds, present = sorted({vector.kind for vector in one.vectors}), {vector.label for vector in one.vectors}
    names = {str(queue) if kind == "both" else f"{kind}-{queue}": queue for queue in range(queues) for kind in kinds}
    return tuple(name for name, queue in names.items() if name in present or queue >= len(one.rx))


def table(one: Nic, found: Mapping[int, int]) -> Dict[str, str]:
    """Interrupt label → its CPU; both directions of a queue share one."""
    return {label: str(found[int(label.rpartition("-")[2])]) for label in labels(one, len(found))}


def _pinned(network: NetworkFacts, one: Nic, queues: int) -> Dict[int, int]:
    """Queue → the one CPU that its interrupts may go to now."""
    affinity = network.affinity.get(one.place, {})
    found: Dict[int, int] = {}
    for label in labels(one, queues):
        text = affinity.get(label, "")
        if text.isdigit():
            found.setdefault(int(label.rpartition("-")[2]), int(text))
    return found


def _hotspot(network: NetworkFacts) -> Tuple[Finding, ...]:
    """S1-13: one CPU drowns in interrupts while the others are idle."""
    if len(network.load) < 2:
        return ()
    cpu, share = max(network.load.items(), key=lambda item: (item[1], -item[0]))
    others = (sum(network.load.values()) - share) / (len(network.load) - 1)
    if share < HOT or share < HOT_OVER_OTHERS * others:
        return ()
    reason = (
        f"CPU {cpu} spent {share:.0%} of its time since boot in interrupts, the others {others:.1%}: a queue too few,"
        " or interrupts on one CPU"
    )
    return (replace(Finding(NAME, "irq_hotspot", "advice", reason, reference="S1-13"), where=f"cpu{cpu}"),)


CONCERN = Concern(
    name=NAME,
    options=OPTIONS,
    domains=("platform", "topology", "kernel", "network", "irqbalance", "services", "sysctl", "files", "unit"),
    plan=plan,
    after=("smt",),
    by_place=True,
    checks=("compute_cpus", "irq_hotspot", "irqbalance"),
)
