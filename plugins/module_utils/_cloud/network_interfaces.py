# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces and their queues against CPUs and cards of the type. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Mapping, Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.instance_facts import InstanceFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.observe import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import deadline
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.facts import CardFacts, TypeFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan

CONCERN = "network_interfaces"
_BOTH = "Aerospike, 2014; Netflix, 2014–2017"
_GAIN = "Aerospike, 2014: 250 k → 960 k transactions per second with four interfaces instead of one"
# ixgbevf on EC2: two queues per interface, sixteen per instance (Netflix, 2014–2017).
_IXGBEVF_QUEUES, _IXGBEVF_MOST = 2, 16
# With eight queues ENA keeps up below this; the ENA guide spreads by software (RPS) from here on.
_MANY_CPUS = 32
# Security groups forgot idle flows after five days; on the newest types after less than six minutes.
_SHORT_TIMEOUT = 7200


def plan(instance: InstanceFacts, kind: TypeFacts) -> Plan:
    """Findings only: another interface needs subnet, address and routes that the operator chooses."""
    cpus = (instance.cores or 0) * (instance.threads_per_core or 0) or kind.vcpus
    found = [_queues(instance, kind, cpus), _count(instance, kind)]
    found += _cards(instance, kind) + _srd(instance, kind) + _timeout(instance, kind)
    return Plan(findings=tuple(found))


def queue_counts(instance: InstanceFacts, kind: TypeFacts, cpus: Optional[int]) -> Dict[str, Optional[int]]:
    """Receive queues that each interface gets: the number that was set or the default, at most one per CPU."""
    return {
        interface.interface_id: _queues_of(instance, kind, cpus, interface.card, interface.queues)
        for interface in instance.interfaces
    }


def _queues_of(
    instance: InstanceFacts, kind: TypeFacts, cpus: Optional[int], card: int, requested: Optional[int]
) -> Optional[int]:
    if _on_ena(instance, kind):
        count = requested or (kind.cards[card].default_queues if card < len(kind.cards) else None)
        return min(count, cpus) if count and cpus else count
    return min(_IXGBEVF_QUEUES, cpus or _IXGBEVF_QUEUES) if instance.sriov_net_support and kind.sriov else 1


def _on_ena(instance: InstanceFacts, kind: TypeFacts) -> bool:
    """The API gives queue counts for Xen types without ENA too: they mean nothing there."""
    return kind.ena == "required" or (kind.ena == "supported" and bool(instance.ena_support))


def _queues(instance: InstanceFacts, kind: TypeFacts, cpus: Optional[int]) -> Finding:
    counts = queue_counts(instance, kind, cpus)
    now: Dict[str, Any] = {"cpus": cpus, "queues": counts}
    known = [count for count in counts.values() if count is not None]
    if not known or cpus is None or len(known) < len(counts):
        reason = f"the number of queues per interface of {instance.instance_type} is not known"
        return instance.finding(CONCERN, "queues", "unknown", reason, now, _BOTH)
    queues = sum(known)
    if not _on_ena(instance, kind) and not instance.sriov_net_support:
        status = "ok" if cpus == 1 else "advice"
        reason = "one queue per interface on Xen's split driver: enable enhanced networking first, then add interfaces"
        return instance.finding(
            CONCERN, "queues", status, reason, now, "Aerospike, 2014", gain="" if status == "ok" else _GAIN
        )
    if queues >= cpus:
        return instance.finding(CONCERN, "queues", "ok", f"{queues} queues for {cpus} CPUs", now, _BOTH)
    more = _more_queues(instance, kind, queues, cpus)
    if more:
        return instance.finding(
            CONCERN, "queues", "advice", f"{queues} queues for {cpus} CPUs: {more}", now, _BOTH, gain=_GAIN
        )
    reason = f"{queues} queues for {cpus} CPUs, which is enough for so few CPUs"
    return instance.finding(CONCERN, "queues", "ok", reason, now, _BOTH)


def _more_queues(instance: InstanceFacts, kind: TypeFacts, queues: int, cpus: int) -> str:
    """How to get more queues where it pays; empty where it does not."""
    free = (kind.max_interfaces or 0) - len(instance.interfaces)
    if not _on_ena(instance, kind):
        if queues >= min(cpus, _IXGBEVF_MOST) or free < 1:
            return ""
        return f"each other interface adds {_IXGBEVF_QUEUES}, up to {_IXGBEVF_MOST} per instance"
    if cpus < _MANY_CPUS:
        return ""
    first: CardFacts = kind.cards[0]
    most = first.max_queues_per_interface if kind.flexible_ena_queues else None
    requested = max((interface.queues or first.default_queues or 0) for interface in instance.interfaces)
    if most and most > requested:
        return f"ask for up to {most} per interface with EnaQueueCount, {first.max_queues} per card"
    if free > 0:
        per_interface = f"up to {most}" if most else str(first.default_queues)
        return f"{free} more interfaces can be attached, each with {per_interface} queues; each needs its own routing"
    return "no more queues are possible: spread by software on the host (receive packet steering)"


def _count(instance: InstanceFacts, kind: TypeFacts) -> Finding:
    now: Dict[str, Any] = {"interfaces": len(instance.interfaces), "maximum": kind.max_interfaces}
    most = "not known" if kind.max_interfaces is None else str(kind.max_interfaces)
    return instance.finding(
        CONCERN, "count", "ok", f"{len(instance.interfaces)} of at most {most} interfaces", now, _BOTH
    )


def _cards(instance: InstanceFacts, kind: TypeFacts) -> List[Finding]:
    if len(kind.cards) < 2:
        return []
    used = sorted({interface.card for interface in instance.interfaces})
    now: Dict[str, Any] = {"cards": len(kind.cards), "used": used}
    if len(used) == len(kind.cards):
        return [
            instance.finding(
                CONCERN, "cards", "ok", f"all {len(kind.cards)} network cards are used", now, "Aerospike, 2014"
            )
        ]
    share = f"{kind.cards[0].peak_gbps:g} Gbit/s each" if kind.cards[0].peak_gbps else "a share of the bandwidth each"
    reason = f"{len(used)} of {len(kind.cards)} network cards used, {share}: attach an interface to each card"
    return [instance.finding(CONCERN, "cards", "advice", reason, now, _BOTH)]


def _srd(instance: InstanceFacts, kind: TypeFacts) -> List[Finding]:
    if not kind.ena_srd:
        return [
            instance.finding(
                CONCERN, "ena_express", "not_applicable", f"{kind.instance_type} has no ENA Express", None, "AWS, 2017"
            )
        ]
    on = [interface.interface_id for interface in instance.interfaces if interface.srd]
    state = "on" if on else "off: it would let a single flow have 25 Gbit/s and adds microseconds when idle"
    return [instance.finding(CONCERN, "ena_express", "ok", f"ENA Express is {state}", len(on), "AWS, 2017")]


def _timeout(instance: InstanceFacts, kind: TypeFacts) -> List[Finding]:
    seconds = kind.tcp_established_timeout_s
    if seconds is None or seconds > _SHORT_TIMEOUT:
        return []
    reason = f"security groups forget an idle TCP flow after {seconds} s: keep net.ipv4.tcp_keepalive_time below that"
    return [instance.finding(CONCERN, "idle_timeout", "advice", reason, seconds, "EC2 API, DescribeInstanceTypes")]


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    with deadline(options["timeout"]):
        seen = observe(options)
    plans = {instance_id: plan(instance, seen.type_of(instance)) for instance_id, instance in seen.instances.items()}
    shown = {
        instance_id: {"interfaces": [asdict(interface) for interface in instance.interfaces]}
        for instance_id, instance in seen.instances.items()
    }
    return contract(CONCERN, seen, plans, shown)
