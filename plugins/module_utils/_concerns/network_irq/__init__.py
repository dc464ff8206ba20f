# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_irq: which CPU each queue of each NIC interrupts, and which CPUs share its work. Pure. PRIVATE.

An interrupt whose mask names several CPUs is still delivered to one of them, so
a wide mask spreads nothing (Aerospike, 2014): each queue gets one CPU of its own.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, Optional, Tuple

from ..._error import NearmetalError
from ..._facts.facts import Facts, project
from ..._facts.network import NetworkFacts, cpus
from ..._facts.nic import Nic
from ..._facts.topology import TopologyFacts
from ..._number import is_number
from ..._plan import Plan, Wanted, joined
from ..._planning.gate import host_class, loses_time, may_be_burstable
from ..._planning.knob import Knob, options_of
from ..._planning.network_choice import (
    Choice,
    choices,
    cpu_list,
    disruption,
    driver_of,
    for_nic,
    interfaces,
    named_interfaces,
    options_per_nic,
)
from ..._planning.options import CONSENT, PERSIST
from ..._planning.skeleton import tuning, unobserved
from ..._words import shown
from . import compute, irqbalance, isolation, steering
from .spread import Demand, spread

NAME = "network_irq"
_PLACED = ("auto", "spread", "dedicated")
POLICIES = [*_PLACED, "irqbalance", "kernel"]

_POLICY = Knob(
    NAME,
    "policy",
    "network.affinity",
    "Aerospike, 2014; Netflix, 2016; Graviton guide",
    {"type": "str", "choices": POLICIES},
    manner=("irq_cpus",),
    within="interfaces",
    takes_effect="at_once",
)
_QUEUES = Knob(
    NAME,
    "queues",
    "network.queues",
    "Netflix, 2016; ENA driver guide",
    {"type": "str"},
    within="interfaces",
    disruptive=True,
    takes_effect="at_once",
    tuned=("net.channels",),
    comparable=True,
)
_HOTSPOT = Knob(NAME, "irq_hotspot", reference="Aerospike, 2014")
_PER_NIC = (_POLICY, _QUEUES, *steering.PER_NIC)
KNOBS = (*_PER_NIC, *steering.KNOBS, *compute.KNOBS, *isolation.KNOBS, irqbalance.KNOB, _HOTSPOT)
PER_NIC = tuple(options_of(_PER_NIC))
# Without one of these nothing is placed; the other options only say how.
_MANAGED = options_per_nic(_PER_NIC)

# One core of eight, where there are eight. perftune takes one of sixteen and cuts the queues to that number, which
# leaves a Graviton of 8 or 16 vCPUs one queue; AWS's Graviton guide wants one queue per core.
CORES_PER_DEDICATED = 8

# igb gives each direction of a queue an interrupt, or a queue one for both if they are many or there are virtual
# functions.
_RENAME = ("igb",)

# Aerospike, 2014: one core full of interrupts while the host as a whole is half idle.
HOT, HOT_OVER_OTHERS = 0.25, 4


def _decide(facts: Facts, wanted: Wanted) -> Plan:
    network, topology = facts.network, facts.topology
    if not topology.cpus_online or not network.nics:
        return unobserved(KNOBS, _MANAGED, wanted, "this host shows no NIC, or doesn't show which CPUs are online")
    all_choices = choices(NAME, network, wanted, PER_NIC)
    chosen = tuple(choice for choice in all_choices if choice.nic.up)
    down = [choice for choice in all_choices if choice.options and not choice.nic.up]
    queues, counts = _queues(network, chosen)
    pinned, assigned, busy = _policy(isolation.placeable(facts, wanted), chosen, down, counts, wanted)
    isolated = isolation.plan_isolation(facts, busy, wanted)
    placed = project(facts, pinned.actions).network
    steered = steering.plan_steering(facts, steering.Scene(placed, topology, counts, assigned), chosen)
    plan = joined(queues, pinned, steered, isolated)
    replan = Plan(replan=any(finding.status != "advice" for finding in plan.findings))
    of_down_nics = [
        interfaces(NAME, nic.place).says("advice", f"{nic.name} is down: it has no interrupts to place")
        for nic in (choice.nic for choice in down)
    ]
    return joined(plan, replan, named_interfaces(NAME, network, wanted), *of_down_nics, _hotspot(network))


def _require_policy(wanted: Wanted) -> None:
    """Raise NearmetalError for irq_cpus alone: a run without a policy takes back what an earlier one placed."""
    policies = [wanted.get("policy"), *(entry.get("policy") for entry in wanted.get("interfaces") or ())]
    if wanted.get("irq_cpus") is None or wanted.stored or any(policies):
        return
    raise NearmetalError("network_irq.irq_cpus says where a policy places interrupts: set policy too")


def _queues(network: NetworkFacts, chosen: Tuple[Choice, ...]) -> Tuple[Plan, Dict[str, int]]:
    """The plan for the number of queues, and place → number of queues after it."""
    counts = dict(network.queues)
    plans = []
    for choice in chosen:
        requested, nic = _QUEUES.value(choice), choice.nic
        if requested is None:
            continue
        knob = for_nic(_QUEUES, nic)
        maximum, now = network.queues_max.get(nic.place), counts.get(nic.place)
        if not maximum or now is None:
            plans.append(knob.says("not_applicable", f"{driver_of(nic)} has a fixed number of queues", now))
            continue
        if choice.wanted.stored and is_number(requested) and int(requested) > maximum:
            requested = "max"  # an earlier run was on a host that took more
        if requested != "max" and not (is_number(requested) and 0 < int(requested) <= maximum):
            sentence = (
                f"network_irq.queues: {nic.name} can't have {shown(requested)} queues; it takes 1 to {maximum}, or max"
            )
            plans.append(knob.impossible(choice.wanted, sentence, now))
            continue
        goal = maximum if requested == "max" else int(requested)
        reason = "each queue can have a CPU of its own; the change interrupts traffic for a moment"
        obstacle = disruption(knob, network, choice, "the change stops its traffic for a moment")
        plan = knob.gated(choice.wanted, obstacle, knob.change(choice.wanted, now, goal, reason))
        counts[nic.place] = goal if plan.actions else now
        plans.append(plan)
    return joined(*plans), counts


def _policy(
    facts: Facts, chosen: Tuple[Choice, ...], down: List[Choice], counts: Mapping[str, int], wanted: Wanted
) -> Tuple[Plan, Dict[str, Tuple[int, ...]], Optional[FrozenSet[int]]]:
    """The plan for affinities, place → CPU of each queue after it, and CPUs that it takes; None if not dedicated."""
    network = facts.network
    plans: List[Plan] = []
    placed: List[Choice] = []
    for choice in chosen:
        policy = _POLICY.value(choice)
        refusal = _refusal(facts, choice, counts, wanted)
        if refusal is not None:
            plans.append(refusal)
        elif policy == "kernel":
            plans.append(_to_kernel(network, choice, counts))
        elif policy is not None:
            placed.append(choice)
    every = wanted.get("policy") in _PLACED
    nics = [choice.nic for choice in placed]
    # irqbalance is kept off a NIC that is down, too: at a boot one comes up after the other.
    comes_up = [choice for choice in down if _POLICY.value(choice) in _PLACED]
    kept_off = [*nics, *(choice.nic for choice in comes_up if _refusal(facts, choice, {}, wanted) is None)]
    others = [nic for nic in network.nics if nic not in kept_off]
    banned, free = irqbalance.plan_ban(facts, kept_off, others, every, wanted)
    if not free:
        return joined(*plans, _waiting(network, nics, banned)), {}, None
    plans.append(banned)
    assigned = _assign(facts, placed, counts, wanted)
    for choice in placed:
        knob = for_nic(_POLICY, choice.nic)
        goal = table(choice.nic, assigned[knob.place])
        reason = (
            "each queue gets a CPU, cores of its node first; of a mask of several CPUs the kernel would use only one"
        )
        if _POLICY.value(choice) == "dedicated":
            reason = "a few cores take the interrupts of all queues, and the application keeps the others"
        plans.append(knob.change_entries(choice.wanted, network.affinity.get(knob.place, {}), goal, reason))
    busy = None
    if any(_POLICY.value(choice) == "dedicated" for choice in placed):
        busy = compute.busy_cpus(facts.topology, assigned)
        plans.append(compute.plan_compute(facts, busy, wanted))
        if not any(action.what == _POLICY.lever for plan in plans for action in plan.actions):
            alone = [assigned[choice.nic.place] for choice in placed if _POLICY.value(choice) == "dedicated"]
            plans.append(compute.used(network.load, frozenset(cpu for table in alone for cpu in table.values())))
    return joined(*plans), {place: tuple(cpus_of.values()) for place, cpus_of in assigned.items()}, busy


def _refusal(facts: Facts, choice: Choice, counts: Mapping[str, int], wanted: Wanted) -> Optional[Plan]:
    """The findings for a NIC whose interrupts can't be placed; None where they can."""
    policy, nic, network = _POLICY.value(choice), choice.nic, facts.network
    if policy is None:
        return None
    knob = for_nic(_POLICY, nic)
    if policy == "irqbalance":
        runs = "left to irqbalance" if network.irqbalance else "irqbalance doesn't run: nothing moves interrupts"
        return knob.says("advice", runs)
    if nic.up and not (nic.vectors and counts.get(nic.place)):
        return knob.says("not_applicable", "the names of its interrupts don't tell which queue they serve")
    if len(facts.online) < 2:
        return knob.says("not_applicable", "the host has one CPU")
    pins = policy != "kernel" and wanted.get("irq_cpus") is None  # a user who names the CPUs has already decided
    if facts.burstable and pins:
        reason = "a burstable type has few vCPUs, and pinning takes them from the scheduler"
        return knob.says("refused", f"{reason}; set network_irq.irq_cpus if you want that")
    maybe_burstable = may_be_burstable(facts) if pins else ""
    if maybe_burstable:
        reason = f"this may be a burstable type, on which nothing is pinned: {maybe_burstable}"
        remember = {(knob.name, knob.place): reason} if loses_time(facts) else {}
        return knob.says("refused", reason)._replace(remember=remember)
    if host_class(facts, wanted) == "xen_pv" and policy == "auto":
        return knob.says("refused", "on Xen PV the event channels follow the vCPUs; policy: spread places them anyway")
    if policy != "kernel" and not _allowed(facts, wanted):
        return knob.says("not_applicable", f"none of irq_cpus ({wanted.get('irq_cpus')}) is online any more")
    if policy == "dedicated" and pins and len(facts.topology.cores or ()) < CORES_PER_DEDICATED:
        reason = (
            f"fewer than {CORES_PER_DEDICATED} cores, too few to keep one for interrupts alone; name CPUs"
            " with irq_cpus if you want that"
        )
        return knob.says("refused", reason)
    earlier = knob.earlier(choice.wanted) if policy != "kernel" else ""
    return knob.says("refused", earlier, dict(network.affinity.get(nic.place, {}))) if earlier else None


def _waiting(network: NetworkFacts, nics: List[Nic], banned: Plan) -> Plan:
    """The findings for NICs whose interrupts irqbalance still moves."""
    last = banned.findings[-1]
    affinities = [(for_nic(_POLICY, nic), dict(network.affinity.get(nic.place, {}))) for nic in nics]
    findings = tuple(knob.finding(last.status, last.reason, now) for knob, now in affinities)
    findings = tuple(finding._replace(owner="irqbalance") for finding in findings)
    if last.status != "refused":
        return joined(banned, Plan(findings=findings))
    return Plan(findings=findings, remember={(_POLICY.name, nic.place): last.reason for nic in nics})


def _to_kernel(network: NetworkFacts, choice: Choice, counts: Mapping[str, int]) -> Plan:
    nic, default = choice.nic, network.default_affinity
    knob = for_nic(_POLICY, nic)
    if default is None:
        return knob.says("unknown", "the kernel's own choice can't be read")
    goal = dict.fromkeys(labels(nic, counts[nic.place]), default)
    return knob.change_entries(choice.wanted, network.affinity.get(nic.place, {}), goal, "the kernel's own choice")


def _assign(facts: Facts, placed: List[Choice], counts: Mapping[str, int], wanted: Wanted) -> Dict[str, Dict[int, int]]:
    network, topology = facts.network, facts.topology
    dedicated_cpus = allowed = _allowed(facts, wanted)
    if wanted.get("irq_cpus") is None:
        nodes = [choice.nic.node for choice in placed if _POLICY.value(choice) == "dedicated"]
        dedicated_cpus = dedicated(topology, allowed, nodes)
    assigned: Dict[str, Dict[int, int]] = {}
    for is_dedicated, usable in ((True, dedicated_cpus), (False, allowed)):
        nics = [choice.nic for choice in placed if (_POLICY.value(choice) == "dedicated") is is_dedicated]
        demands = [
            Demand(nic.place, nic.node, counts[nic.place], _pinned(network, nic, counts[nic.place])) for nic in nics
        ]
        assigned.update(spread(topology, usable, demands))
    return assigned


def _allowed(facts: Facts, wanted: Wanted) -> FrozenSet[int]:
    """The CPUs that may get interrupts; none when those of an earlier run are offline."""
    if wanted.get("irq_cpus") is not None:
        return frozenset(cpu_list("network_irq.irq_cpus", wanted.get("irq_cpus"), facts.topology, wanted.stored))
    online = frozenset(facts.online)
    return online - frozenset(cpus(facts.network.isolated)) or online


def dedicated(topology: TopologyFacts, allowed: FrozenSet[int], nodes: List[Optional[int]]) -> FrozenSet[int]:
    """The CPUs for interrupts alone: on each node with such a NIC the first whole cores, one of eight."""
    cores = [tuple(cpu for cpu in core if cpu in allowed) for core in topology.cores or ()]
    cores = [core for core in cores if core]
    taken: List[int] = []
    for node in dict.fromkeys(nodes):
        local = [entry.cpus for entry in topology.nodes if entry.id == node]
        local_cores = [core for core in cores if not local or core[0] in local[0]] or cores
        for core in local_cores[: max(1, len(local_cores) // CORES_PER_DEDICATED)]:
            taken += core
    return frozenset(taken)


def labels(nic: Nic, queues: int) -> Tuple[str, ...]:
    """The names of a NIC's interrupts when it has so many queues; a queue may have none, if it shares another's.

    Of a driver that will name them anew, all that it may choose.
    """
    kinds, present = sorted({vector.kind for vector in nic.vectors}), {vector.label for vector in nic.vectors}
    renamed = nic.driver in _RENAME and queues != len(nic.rx)
    if renamed:
        kinds = ["both", "rx", "tx"]
    names = {str(queue) if kind == "both" else f"{kind}-{queue}": queue for queue in range(queues) for kind in kinds}
    return tuple(name for name, queue in names.items() if renamed or name in present or queue >= len(nic.rx))


def table(nic: Nic, cpu_of: Mapping[int, int]) -> Dict[str, str]:
    """Interrupt label → its CPU; both directions of a queue share it."""
    return {label: str(cpu_of[steering.queue_of(label)]) for label in labels(nic, len(cpu_of))}


def _pinned(network: NetworkFacts, nic: Nic, queues: int) -> Dict[int, int]:
    """Queue → the only CPU that its interrupts may go to now."""
    affinity = network.affinity.get(nic.place, {})
    pinned: Dict[int, int] = {}
    for label in labels(nic, queues):
        text = affinity.get(label, "")
        if is_number(text):
            pinned.setdefault(steering.queue_of(label), int(text))
    return pinned


def _hotspot(network: NetworkFacts) -> Plan:
    """Advice when one CPU is busy with interrupts while the others are nearly idle."""
    if len(network.load) < 2:
        return Plan()
    cpu, share = max(network.load.items(), key=lambda item: (item[1], -item[0]))
    mean = (sum(network.load.values()) - share) / (len(network.load) - 1)
    if share < HOT or share < HOT_OVER_OTHERS * mean:
        return Plan()
    reason = (
        f"CPU {cpu} spent {share:.0%} of its time since boot in interrupts, the other CPUs {mean:.1%}:"
        " there are too few queues, or their interrupts go to one CPU"
    )
    return _HOTSPOT.at(f"cpu{cpu}").says("advice", reason)


CONCERN = tuning(
    NAME,
    options=_MANAGED,
    manner={
        "irq_cpus": {"type": "str"},
        **options_of((*compute.KNOBS, *isolation.KNOBS)),
        "allow_disruptive": CONSENT,
        "restart_irqbalance": CONSENT,
        "persist": PERSIST,
    },
    knobs=KNOBS,
    domains=("platform", "topology", "kernel", "network", "irqbalance", "services", "sysctl", "files", "unit", "boot"),
    decide=[_decide],
    require=_require_policy,
    after=("smt",),
    by_place=True,
)
