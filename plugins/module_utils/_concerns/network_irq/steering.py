# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""RPS, RFS and XPS: how the kernel shares a queue's packets among CPUs. Pure. PRIVATE to the collection.

It pays where a NIC has fewer queues than there are CPUs (Aerospike, 2014: 250,000 to
800,000 requests per second through one queue). Where each CPU has a queue it
only adds interrupts between CPUs.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Sequence, Tuple

from ..._error import NearmetalError
from ..._facts.facts import Facts
from ..._facts.network import NetworkFacts, cpus, listed
from ..._facts.nic import Nic
from ..._facts.sysctl import RPS_ENTRIES
from ..._facts.topology import TopologyFacts
from ..._number import is_number
from ..._plan import Plan, Wanted, joined
from ..._planning.knob import Knob
from ..._planning.network_choice import Choice, cpu_list, for_nic
from ..._words import shown

_NAME = "network_irq"
_TEXT = {"type": "str"}
_MORE: Mapping[str, Any] = {"within": "interfaces", "takes_effect": "at_once"}
_RPS = Knob(_NAME, "rps", "network.rps", "Aerospike, 2014; Netflix, 2016; Graviton guide", _TEXT, **_MORE)
_RFS = Knob(_NAME, "rfs", "network.rfs", "Netflix, 2016; Linux kernel, networking/scaling", _TEXT, **_MORE)
_XPS = Knob(_NAME, "xps", "network.xps", "Linux kernel, networking/scaling; unmeasured", _TEXT, **_MORE)
# One table for the whole host.
_ENTRIES = Knob(_NAME, "rfs", "sysctl", _RFS.reference, **_MORE, place=RPS_ENTRIES)
PER_NIC = (_RPS, _RFS, _XPS)
KNOBS = (*PER_NIC, _ENTRIES)

# The kernel documentation's own figure for a server (networking/scaling.rst); perftune and rpk use it too.
ENTRIES = 32768
MOST_ENTRIES = 1 << 22
_MORE_FLOWS = "the host already has room for more flows, which a workload never lowers"
# ENA's 8 queues need help on hosts with 32 CPUs or more (docs/ec2.md#interrupts-and-packet-steering).
CPUS_PER_QUEUE = 4


class Scene(NamedTuple):
    """The host as the queues and interrupts that are planned leave it."""

    network: NetworkFacts
    topology: TopologyFacts
    counts: Mapping[str, int]  # place → queues
    assigned: Mapping[str, Tuple[int, ...]]  # place → the CPU of each queue

    def irq_cpus(self, nic: Nic) -> Tuple[int, ...]:
        """The CPU of each queue of a NIC, by plan or as it is."""
        if nic.place in self.assigned:
            return self.assigned[nic.place]
        count = self.counts.get(nic.place)
        effective = self.network.effective.get(nic.place, {})
        texts = [text for label, text in effective.items() if count is None or queue_of(label) < count]
        return tuple(cpu for text in texts for cpu in cpus(text))

    def busy(self) -> FrozenSet[int]:
        """The CPUs that get interrupts of a NIC, and those that share a core with these."""
        firsts = {cpu for nic in self.network.nics if nic.up for cpu in self.irq_cpus(nic)}
        return frozenset(firsts | {sibling for cpu in firsts for sibling in self.topology.siblings(cpu)})

    def answering(self, nic: Nic, queue: int) -> FrozenSet[int]:
        """The CPUs that answer a queue's interrupt, by plan or as it is; none when that isn't known."""
        if nic.place in self.assigned:
            return frozenset(self.assigned[nic.place][queue : queue + 1])
        effective = self.network.effective.get(nic.place, {})
        texts = (effective.get(label) for label in (str(queue), f"rx-{queue}"))
        return frozenset(cpu for text in texts for cpu in cpus(text))

    def near(self, nic: Nic, queue: int) -> FrozenSet[int]:
        """The CPUs that may be given a queue's packets: those of the nodes of the CPUs that answer its interrupt.

        Where these aren't known, those of the NIC's node; all where it belongs to none.
        """
        usable = frozenset(self.topology.cpus_online or ()) - frozenset(cpus(self.network.isolated))
        answering = self.answering(nic, queue)
        nodes = [node for node in self.topology.nodes if answering.intersection(node.cpus)]
        nodes = nodes or [node for node in self.topology.nodes if node.id == nic.node and node.cpus]
        return usable & frozenset(cpu for node in nodes for cpu in node.cpus) if nodes else usable


def queue_of(label: str) -> int:
    """The number of the queue that an interrupt serves: 3 of "3", "rx-3" or "tx-3"."""
    return int(label.rpartition("-")[2])


def plan_steering(facts: Facts, scene: Scene, chosen: Tuple[Choice, ...]) -> Plan:
    """The plan for RPS, RFS and XPS of each NIC."""
    plans: List[Plan] = []
    entries: List[Tuple[int, Wanted]] = []
    for choice in chosen:
        helpers, cause = _helpers(facts, scene, choice)
        if choice.get("rps") is not None:
            plans.append(_rps(scene, choice, helpers, cause))
        if choice.get("rfs") is not None:
            change, number = _rfs(facts, scene, choice, any(helpers.values()), cause)
            plans.append(change)
            entries.append((number, choice.wanted))
        if choice.get("xps") is not None:
            plans.append(_xps(scene, choice))
    if entries:
        plans.append(_entries(facts, entries))
    return joined(*plans)


def _helpers(facts: Facts, scene: Scene, choice: Choice) -> Tuple[Dict[int, Tuple[int, ...]], str]:
    """Queue → the CPUs that share its packets with `auto`, and the reason for these or for none."""
    nic, queues = choice.nic, scene.counts.get(choice.nic.place, 0)
    online = len(scene.topology.cpus_online or ())
    if queues >= online:
        return {}, "each CPU has a queue: sharing would only add interrupts between CPUs"
    if facts.is_arm:
        return {}, "AWS's Graviton guide advises switching it off"
    if nic.driver == "ena" and queues * CPUS_PER_QUEUE > online:
        return {}, f"{queues} queues are enough for {online} CPUs"
    helpers = {queue: tuple(sorted(scene.near(nic, queue) - scene.busy())) for queue in range(queues)}
    several = len([node for node in scene.topology.nodes if node.cpus]) > 1
    if not any(helpers.values()):
        of = " of the nodes whose CPUs answer its interrupts" if several else ""
        return {}, f"every core{of} already takes interrupts of a NIC"
    where = " on the node of the CPU that serves each queue" if several else ""
    return helpers, f"{queues} queue{'s' * (queues != 1)} for {online} CPUs: the CPUs without interrupts{where} help"


def _rps(scene: Scene, choice: Choice, helpers: Dict[int, Tuple[int, ...]], cause: str) -> Plan:
    knob, requested = for_nic(_RPS, choice.nic), _RPS.value(choice)
    queues = scene.counts.get(knob.place, 0)
    present = scene.network.rps.get(knob.place, {})
    if not present:
        return knob.says("not_applicable", "this kernel has no rps_cpus for it")
    if requested == "kernel":
        helpers, cause = {}, "the kernel's own choice: off"
    elif requested != "auto":
        named = cpu_list("network_irq.rps", requested, scene.topology, choice.wanted.stored)
        helpers = dict.fromkeys(range(queues), named)
        cause = "the requested CPUs" if named else f"off: none of {requested} is online any more"
        if queues >= len(scene.topology.cpus_online or ()):
            reason = "each CPU has a queue already; RPS would only add interrupts between CPUs"
            return knob.says("refused", reason, dict(present), requested)
        idle = listed(set(named) & set(cpus(scene.network.isolated)))
        if idle:
            reason = f"isolcpus= or nohz_full= keeps CPU {idle} free of work: the kernel gives it no packets"
            return knob.says("refused", reason, dict(present), requested)
    goal = {f"rx-{queue}": listed(helpers.get(queue, ())) for queue in range(queues)}
    return knob.change_entries(choice.wanted, present, goal, cause)


def _rfs(facts: Facts, scene: Scene, choice: Choice, helped: bool, cause: str) -> Tuple[Plan, int]:
    """The plan for a NIC's flow tables, and the size that the host's table needs for it.

    What `auto` of a workload chooses is a minimum, as an operator may have set larger tables.
    """
    knob, requested = for_nic(_RFS, choice.nic), _RFS.value(choice)
    queues = scene.counts.get(knob.place, 0)
    present = scene.network.rfs.get(knob.place, {})
    if not present:
        return knob.says("not_applicable", "this kernel has no rps_flow_cnt for it"), 0
    if requested in ("auto", "kernel"):
        total = ENTRIES if requested == "auto" and helped else 0
        reason = cause if requested == "auto" else "the kernel's own choice: off"
    else:
        total, reason = _count(requested), "the requested number of flows"
    goal = {f"rx-{queue}": rounded(total // queues) for queue in range(queues)}
    if _only_widens(choice.wanted):
        previous = facts.host_value("network.rfs", knob.place, dict(present))
        flows: Mapping[str, int] = previous if isinstance(previous, Mapping) else {}
        larger = {label: max(number, flows.get(label, 0)) for label, number in goal.items()}
        goal, reason = larger, reason if larger == goal else f"{_MORE_FLOWS}: {reason}"
    return knob.change_entries(choice.wanted, present, goal, reason), rounded(total)


def _entries(facts: Facts, entries: Sequence[Tuple[int, Wanted]]) -> Plan:
    """The plan for the host's table, which is as large as the largest table of a NIC."""
    number, wanted = max(entries, key=lambda entry: entry[0])
    present = facts.sysctl.get(RPS_ENTRIES)
    if present is None:
        return _ENTRIES.at("").says("not_applicable", f"this kernel has no {RPS_ENTRIES}")
    reason = "one flow table serves all NICs" if number else "no NIC uses the flow table"
    previous = str(facts.host_value("sysctl", RPS_ENTRIES, present))
    if any(_only_widens(entry[1]) for entry in entries) and is_number(previous) and int(previous) > number:
        number, reason = int(previous), _MORE_FLOWS
    return _ENTRIES.change(wanted, present, str(number), reason)


def _only_widens(wanted: Wanted) -> bool:
    """Whether a workload leaves the number of flows to `auto`."""
    return wanted.get("rfs") == "auto" and wanted.by.get("rfs") == "workload"


def _xps(scene: Scene, choice: Choice) -> Plan:
    knob, requested = for_nic(_XPS, choice.nic), _XPS.value(choice)
    queues = scene.counts.get(knob.place, 0)
    online = tuple(scene.topology.cpus_online or ())
    present = scene.network.xps.get(knob.place, {})
    if not present and queues < 2:
        status = "ok" if requested in ("auto", "kernel") else "not_applicable"
        return knob.says(status, "one transmit queue: nothing to choose")
    if requested == "kernel":
        goal = {f"tx-{queue}": "" for queue in range(queues)}
        return knob.change_entries(choice.wanted, present, goal, "the kernel's own choice: by the hash of the flow")
    if requested == "auto" and queues >= len(online):
        reason = "each CPU has a queue: the driver's choice stays"
        return knob.says("ok", reason, dict(present), dict(present))
    if requested == "auto":
        shares = _shares(scene, choice.nic, queues, online)
        reason = "a CPU sends through the queue whose interrupt is nearest to it"
    else:
        shares = dict.fromkeys(range(queues), ())
        for position, cpu in enumerate(cpu_list("network_irq.xps", requested, scene.topology, choice.wanted.stored)):
            shares[position % queues] = (*shares[position % queues], cpu)
        reason = "the requested CPUs, in the order of the queues"
    goal = {f"tx-{queue}": listed(shares[queue]) for queue in range(queues)}
    return knob.change_entries(choice.wanted, present, goal, reason)


def _shares(scene: Scene, nic: Nic, queues: int, online: Tuple[int, ...]) -> Dict[int, Tuple[int, ...]]:
    """Queue → the CPUs that send through it: each CPU once, its own core's queue first, then its node's in turn."""
    irqs = (scene.irq_cpus(nic) or online)[:queues]
    shares: Dict[int, Tuple[int, ...]] = dict.fromkeys(range(queues), ())
    for cpu in online:
        near = [queue for queue, irq in enumerate(irqs) if irq == cpu]
        near = near or [queue for queue, irq in enumerate(irqs) if irq in scene.topology.siblings(cpu)]
        if not near:
            node = next((node.cpus for node in scene.topology.nodes if cpu in node.cpus), ())
            near = [queue for queue, irq in enumerate(irqs) if irq in node] or list(range(queues))
        chosen = min(near, key=lambda queue: (len(shares[queue]), queue))
        shares[chosen] = (*shares[chosen], cpu)
    return shares


def _count(text: str) -> int:
    if not (is_number(text) and 0 <= int(text) <= MOST_ENTRIES):
        raise NearmetalError(
            f"network_irq.rfs is auto, kernel or a number of flows from 0 to {MOST_ENTRIES}, not {shown(text)}"
        )
    return int(text)


def rounded(number: int) -> int:
    """A number of flows as the kernel rounds it: up to a power of two."""
    return 1 << (number - 1).bit_length() if number > 0 else 0
