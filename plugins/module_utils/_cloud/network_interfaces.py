# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces and their queues against CPUs and cards of the type, and more interfaces. PRIVATE."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .._plan import Finding, Plan
from .._planning.knob import Knob
from .._words import counted
from .accounts import deadline
from .attach import carry_out
from .attach.facts import Attachments, Subnet, attachments, subnets
from .attach.plan import Work, manages_interfaces, plan_all, require, so_far
from .instance_facts import InstanceFacts
from .observe import Observation, observe
from .result import Planned, after
from .types.facts import CardFacts, TypeFacts

CONCERN = "network_interfaces"
_BOTH = "Aerospike, 2014; Netflix, 2016"
_QUEUES = Knob(CONCERN, "queues", reference=_BOTH)
_COUNT = Knob(CONCERN, "count", reference=_BOTH)
_CARDS = Knob(CONCERN, "cards", reference=_BOTH)
_EXPRESS = Knob(CONCERN, "ena_express", reference="EC2 User Guide, ENA Express")
_IDLE = Knob(CONCERN, "idle_timeout", reference="EC2 API, DescribeInstanceTypes")
_GAIN = "Aerospike, 2014: 250 k → 960 k transactions per second with four interfaces instead of one"
# ixgbevf on EC2: two queues per interface, sixteen per instance (Netflix, 2016).
_IXGBEVF_QUEUES, _IXGBEVF_MOST = 2, 16
# With eight queues ENA keeps up below this; the ENA guide spreads by software (RPS) from here on.
_MANY_CPUS = 32
# Security groups forgot idle flows after five days; on the newest types after less than six minutes.
_SHORT_TIMEOUT = 7200


def plan(instance: InstanceFacts, kind: TypeFacts, attach: Optional[Plan] = None) -> Plan:
    """What there is, and `attach`: the plan about the number of interfaces, if the options are about it."""
    cpus = (instance.cores or 0) * (instance.threads_per_core or 0) or kind.vcpus
    counted = attach or Plan(findings=(_count(instance, kind),))
    further = _cards(instance, kind) + _srd(instance, kind) + _timeout(instance, kind)
    return Plan(counted.actions, (_queues(instance, kind, cpus), *counted.findings, *further))


def queue_counts(instance: InstanceFacts, kind: TypeFacts, cpus: Optional[int]) -> Dict[str, Optional[int]]:
    """Receive queues that each interface gets: the number that was set or the default, at most one per CPU."""
    without_ena = _IXGBEVF_QUEUES if instance.sriov_net_support and kind.sriov else 1
    defaults = {number: card.default_queues for number, card in enumerate(kind.cards)}
    counts = {
        each.interface_id: each.queues or defaults.get(each.card) if _on_ena(instance, kind) else without_ena
        for each in instance.interfaces
    }
    return {name: min(count, cpus) if count and cpus else count for name, count in counts.items()}


def _on_ena(instance: InstanceFacts, kind: TypeFacts) -> bool:
    """The API gives queue counts for Xen types without ENA too: they mean nothing there."""
    return kind.ena == "required" or (kind.ena == "supported" and bool(instance.ena_support))


def _queues(instance: InstanceFacts, kind: TypeFacts, cpus: Optional[int]) -> Finding:
    knob, counts = _QUEUES.at(instance.instance_id), queue_counts(instance, kind, cpus)
    now: Dict[str, Any] = {"cpus": cpus, "queues": counts}
    known = [count for count in counts.values() if count is not None]
    if not known or cpus is None or len(known) < len(counts):
        reason = f"the number of queues per interface of {instance.instance_type} is not known"
        return knob.finding("unknown", reason, now)
    queues = sum(known)
    if not _on_ena(instance, kind) and not instance.sriov_net_support:
        status = "ok" if cpus == 1 else "advice"
        reason = "one queue per interface on Xen's split driver: enable enhanced networking first, then add interfaces"
        gain = "" if status == "ok" else _GAIN
        return knob._replace(reference="Aerospike, 2014").finding(status, reason, now, gain=gain)
    present = f"{counted(queues, 'queue')} for {counted(cpus, 'CPU')}"
    if queues >= cpus:
        return knob.finding("ok", present, now)
    more = _more_queues(instance, kind, queues, cpus)
    if more:
        return knob.finding("advice", f"{present}: {more}", now, gain=_GAIN)
    reason = f"{present}, which is enough for so few CPUs"
    return knob.finding("ok", reason, now)


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
        return (
            f"{counted(free, 'more interface')} can be attached, each with {per_interface} queues; each needs its own"
            " routing"
        )
    return "no more queues are possible: spread by software on the host (receive packet steering)"


def _count(instance: InstanceFacts, kind: TypeFacts) -> Finding:
    now: Dict[str, Any] = {"interfaces": len(instance.interfaces), "maximum": kind.max_interfaces}
    most = "not known" if kind.max_interfaces is None else str(kind.max_interfaces)
    reason = f"{len(instance.interfaces)} of at most {most} interfaces"
    return _COUNT.at(instance.instance_id).finding("ok", reason, now)


def _cards(instance: InstanceFacts, kind: TypeFacts) -> List[Finding]:
    if len(kind.cards) < 2:
        return []
    knob, used = _CARDS.at(instance.instance_id), sorted({interface.card for interface in instance.interfaces})
    now: Dict[str, Any] = {"cards": len(kind.cards), "used": used}
    if len(used) == len(kind.cards):
        knob = knob._replace(reference="Aerospike, 2014")
        return [knob.finding("ok", f"all {len(kind.cards)} network cards are used", now)]
    share = f"{kind.cards[0].peak_gbps:g} Gbit/s each" if kind.cards[0].peak_gbps else "a share of the bandwidth each"
    reason = f"{len(used)} of {len(kind.cards)} network cards used, {share}: attach an interface to each card"
    return [knob.finding("advice", reason, now)]


def _srd(instance: InstanceFacts, kind: TypeFacts) -> List[Finding]:
    knob = _EXPRESS.at(instance.instance_id)
    if not kind.ena_srd:
        return [knob.finding("not_applicable", f"{kind.instance_type} has no ENA Express")]
    on = [interface.interface_id for interface in instance.interfaces if interface.srd]
    state = "on" if on else "off: it would allow 25 Gbit/s to a single flow, but adds microseconds on an idle network"
    return [knob.finding("ok", f"ENA Express is {state}", len(on))]


def _timeout(instance: InstanceFacts, kind: TypeFacts) -> List[Finding]:
    seconds = kind.tcp_established_timeout_s
    if seconds is None or seconds > _SHORT_TIMEOUT:
        return []
    reason = f"security groups forget an idle TCP flow after {seconds} s: keep net.ipv4.tcp_keepalive_time below that"
    return [_IDLE.at(instance.instance_id).finding("advice", reason, seconds)]


def forecast(options: Mapping[str, Any]) -> Dict[str, Any]:
    """What the module would do: its result in check mode."""
    planned, _works = _plan_calls(options)
    return planned.unchanged()


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result, with `failed` true when a change did not succeed."""
    planned, works = _plan_calls(options)
    if planned.idle:
        return planned.unchanged()
    done, failed = carry_out.carry_out(planned.observation.located, works, options["tags"])
    planned.observation.note(failed)
    plans = after(planned.plans, [instance_id for instance_id in works if instance_id not in failed])
    for instance_id in failed:
        reached = (so_far(action, done[instance_id]) for action in planned.plans[instance_id].actions)
        plans[instance_id] = plans[instance_id]._replace(actions=tuple(action for action in reached if action))
    return planned.result(plans, next((f"{name}: {reason}" for name, reason in failed.items()), ""))


def _plan_calls(options: Mapping[str, Any]) -> Tuple[Planned, Dict[str, Work]]:
    require(options)
    with deadline(options["timeout"]):
        observation = observe(options, with_status=manages_interfaces(options))
        known, nets = _asked_for(observation, options) if manages_interfaces(options) else ({}, {})
    kinds = {instance_id: observation.type_of(instance) for instance_id, instance in observation.instances.items()}
    attachment_plans = (
        plan_all(observation.instances, kinds, known, nets, options) if manages_interfaces(options) else {}
    )
    plans = {
        instance_id: plan(
            instance, kinds[instance_id], attachment_plans[instance_id].plan if attachment_plans else None
        )
        for instance_id, instance in observation.instances.items()
    }
    works = {instance_id: planned.work for instance_id, planned in attachment_plans.items() if planned.plan.actions}
    details = observation.each(lambda facts, _kind: {"interfaces": list(map(asdict, facts.interfaces))})
    return Planned(CONCERN, observation, plans, details, options["strict"]), works


def _asked_for(
    observation: Observation, options: Mapping[str, Any]
) -> Tuple[Dict[str, Attachments], Dict[str, Subnet]]:
    """The interfaces of each instance, and the subnets in which new ones may be."""
    made = carry_out.interfaces_by_instance(observation.located)
    known = {
        instance_id: attachments(
            instance_id, located.answer, made.by_id.get(instance_id, ()), made.failed.get(instance_id, "")
        )
        for instance_id, located in observation.located.items()
    }
    if options["state"] == "restored":
        return known, {}
    wanted = options["subnet_ids"] or sorted(
        {attached.first.subnet_id for attached in known.values() if attached.first}
    )
    answers, trouble = carry_out.subnets(observation.cloud, observation.located, list(dict.fromkeys(wanted)))
    if trouble:
        known = {
            instance_id: replace(attached, problem=attached.problem or trouble)
            for instance_id, attached in known.items()
        }
    return known, subnets(answers)
