# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""numa: whether memory moves between nodes, which services are bound to one. Pure. PRIVATE to the collection.

Local memory is faster than another node's (S0-23). The kernel can follow threads
with their memory (S0-24); who binds its threads itself pays for that without need.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.numa import services
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.sysctl import NUMA_BALANCING, ZONE_RECLAIM
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning import unit
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.boot_argument import plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed, host_class
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import boot_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import by_unit, plan_file, sysctl_d

NAME = "numa"
KNOBS = ("balancing", "zone_reclaim_mode", "nodes", "services")
REFERENCES = {
    "balancing": "S0-24",
    "zone_reclaim_mode": "ec2.md 2.4",
    "nodes": "S0-25",
    "services": services.REFERENCE,
}

# More than this share of a node's pages for CPUs of another node is told, in per mille.
TOLD = 100

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "balancing": {"type": "str", "choices": ["kernel", "enabled", "disabled"]},
    "zone_reclaim_mode": {"type": "int", "range": (0, 7)},
    "nodes": {"type": "str", "choices": ["kernel", "hidden"]},
    "services": {"type": "list", "elements": "dict", "options": services.OPTIONS},
    "persist": {"type": "bool", "default": True},
    "allow_hidden_nodes": {"type": "bool", "default": False},
}


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for NUMA.

    Raises NearmetalError for an entry of services that can't be meant.
    """
    asked = [knob for knob in KNOBS if wanted.get(knob) is not None]
    lines: Dict[str, str] = {}
    plans: List[Plan] = []
    bound = False
    for knob in asked:
        shut = closed(NAME, knob, facts, wanted)
        stop = shut[0] if shut else _elsewhere(knob, facts, wanted)
        if stop is not None:
            plans.append(Plan(findings=(stop,)))
        elif knob == "nodes":
            plans.append(_nodes(facts, wanted))
        elif knob == "services":
            bound = True
            plans.append(services.plan(facts, wanted))
        else:
            plans.append(_parameter(facts, wanted, knob, lines))
    if not bound:
        plans.append(services.plan(facts, Wanted()))
    path, text = sysctl_d(NAME, lines)
    by = "user" if any(wanted.wanted_by(knob) == "user" for knob in asked) or not asked else "workload"
    files = plan_file(NAME, facts, path, text if lines and wanted.get("persist") else None, by)
    lasting = by_unit(NAME, facts) if _waits(facts, wanted) else Plan()
    return joined(*plans, files, lasting, Plan(findings=_remote(facts) if asked else ()))


def _elsewhere(knob: str, facts: Facts, wanted: Wanted) -> Optional[Finding]:
    """The finding for a host that has no nodes to speak of."""
    nodes = facts.topology.nodes if facts.topology is not None else ()
    if host_class(facts, wanted) == "xen_pv":
        return _finding(knob, "not_applicable", "Xen PV shows its guests no nodes", None, wanted)
    if len(nodes) < 2:
        hidden = facts.numa is not None and facts.numa.off_argument
        if hidden and knob == "nodes":
            return None
        why = "numa=off hides its nodes" if hidden else "all memory is local, nothing to decide"
        return _finding(knob, "not_applicable", f"this host has one node: {why}", None, wanted)
    return None


def _waits(facts: Facts, wanted: Wanted) -> bool:
    """Whether a parameter waits for nodes: the same disk may start as a type that has more than one."""
    asked = any(wanted.get(knob) is not None for knob in ("balancing", "zone_reclaim_mode"))
    one_node = facts.topology is not None and len(facts.topology.nodes) < 2
    tuned = host_class(facts, wanted) != "xen_pv" and not closed(NAME, "balancing", facts, wanted)
    planned = facts.unit is not None and not unit.obstacle(facts.unit)
    return bool(asked and wanted.get("persist") and one_node and tuned and planned)


def _parameter(facts: Facts, wanted: Wanted, knob: str, lines: Dict[str, str]) -> Plan:
    key = NUMA_BALANCING if knob == "balancing" else ZONE_RECLAIM
    now = (facts.sysctl or {}).get(key)
    asked = wanted.get(knob)
    if now is None:
        return Plan(findings=(_finding(knob, "not_applicable", f"this kernel has no {key}", None, wanted),))
    told = asked == "kernel" and facts.numa is not None and facts.numa.balancing_argument == "disable"
    goal = str(asked) if knob == "zone_reclaim_mode" else "0" if asked == "disabled" or told else "1"
    if goal == "1" and now in ("1", "2", "3") and knob == "balancing":
        goal = now  # 2 adds moving cold pages to slower memory: somebody's choice, and balancing all the same
    reason = {
        "0": "memory stays where it was taken; bind threads to it, or they read another node's",
        "1": "the kernel moves memory to the node whose CPUs use it",
    }.get(goal, "asked for by name")
    if told:
        reason = "numa_balancing=disable is on the kernel's command line"
    if knob == "zone_reclaim_mode":
        reason = (
            "a full node takes from the next one instead of dropping its file cache" if goal == "0" else "asked for"
        )
    if asked != "kernel":
        lines[key] = goal
    if now == goal:
        return Plan(findings=(_finding(knob, "ok", reason, now, wanted, goal),))
    action = Action(
        concern=NAME,
        knob=knob,
        what="sysctl",
        where=key,
        before=now,
        after=goal,
        wanted_by=wanted.wanted_by(knob),
        reason=reason,
        reference=REFERENCES[knob],
    )
    return Plan((action,), (_finding(knob, "would_change", reason, now, wanted, goal),))


def _nodes(facts: Facts, wanted: Wanted) -> Plan:
    """numa=off: hardly ever right, so it needs its own opt-in."""
    hide = wanted.get("nodes") == "hidden"
    platform = facts.platform
    if hide and platform is not None and platform.burstable:
        return Plan(findings=(_finding("nodes", "refused", "a burstable type has one node by design", None, wanted),))
    if hide and not wanted.get("allow_hidden_nodes"):
        reason = (
            "numa=off doesn't make memory local: it hides the nodes from the scheduler, irqbalance, numactl, ENA, and"
            " memory fills node by node; take balancing: disabled and bind with numactl or systemd's NUMAPolicy=, or"
            " spread with numactl --interleave=all; allow_hidden_nodes: true does it all the same"
        )
        return Plan(findings=(_finding("nodes", "refused", reason, None, wanted),))
    knob = boot_argument(NAME, "nodes", "numa", REFERENCES["nodes"])
    text = "numa=off" if hide else None
    reason = "the kernel finds its nodes once, while it boots"
    return plan_argument(facts, wanted, knob, text, reason)


def _remote(facts: Facts) -> Tuple[Finding, ...]:
    """Nodes that gave much of their memory to CPUs of another node."""
    shares = facts.numa.remote if facts.numa is not None else {}
    told = [
        f"{share / 10:.0f} % on {node}" for node, share in sorted(shares.items()) if share is not None and share > TOLD
    ]
    if not told or len(shares) < 2:
        return ()
    reason = (
        f"much memory was taken by CPUs of another node ({', '.join(told)}): bind services to their node with"
        " numactl or systemd's NUMAPolicy="
    )
    return (Finding(NAME, "balancing", "advice", reason, reference="S0-23, S0-26"),)


def _finding(
    knob: str, status: str, reason: str, now: Optional[str], wanted: Wanted, goal: Optional[str] = None
) -> Finding:
    shown = goal or (wanted.get(knob) if knob != "services" else None)
    return Finding(NAME, knob, status, reason, now=now, wanted=shown, reference=REFERENCES[knob])


CONCERN = Concern(
    name=NAME, options=OPTIONS, domains=("platform", "topology", "numa", "sysctl", "boot", "unit", "files"), plan=plan
)
