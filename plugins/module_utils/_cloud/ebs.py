# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""EBS: the volumes against the instance, and which of the two is the limit. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._error import NearmetalError
from .._plan import Finding, Plan
from .._planning.knob import Knob
from .accounts import deadline
from .api import VOLUMES, Answers, Series, ask
from .instance_facts import InstanceFacts
from .observe import Observation, observe
from .result import contract
from .types.facts import TypeFacts
from .volume_facts import VolumeFacts, volume_facts

CONCERN = "ebs"
_CLIFF = "StorageReview, 2018: below 1 ms up to 55–60 K of a 64 K limit, then latency rises steeply"
# Percent of a burst; below it, the burst ends soon and leaves the baseline.
_LOW_BALANCE = 20.0
_OPTIMIZED = Knob(CONCERN, "ebs_optimized", reference="AWS, 2017")
_CARDS = Knob(CONCERN, "cards", reference="EC2 API, DescribeInstanceTypes")
_BALANCE = Knob(CONCERN, "burst_balance", reference="AWS, 2017")
_BALANCE_OF_INSTANCE = _BALANCE._replace(reference="StorageReview, 2018")
_EXCEEDED = Knob(CONCERN, "exceeded", reference="StorageReview, 2018")
_WORTH_MOVING = 0.1  # of a card
_SHOWN = 4  # volumes in a sentence
_HOURS = 1
_MOST = (1 << 64) - 1  # a counter of EBS's log page has 64 bits


@dataclass(frozen=True)
class ExceededFacts:
    """Microseconds in which a device was held back, since it was attached: EBS's NVMe log page, read on the host."""

    device: str
    volume_iops_us: int
    volume_throughput_us: int
    instance_iops_us: int
    instance_throughput_us: int


@dataclass(frozen=True)
class EbsFacts:
    """The EBS facts of an instance. `volumes` is None when they could not be read."""

    volumes: Optional[Tuple[VolumeFacts, ...]]
    balances: Mapping[str, float]  # of the instance: EBSIOBalance% and EBSByteBalance%, the lowest of the last hour
    exceeded: Tuple[ExceededFacts, ...] = ()


def plan(instance: InstanceFacts, kind: TypeFacts, facts: EbsFacts) -> Plan:
    """Findings only: another volume or type costs money or a stop, so the operator decides."""
    findings = [_optimized(instance, kind)]
    if facts.volumes is not None:
        findings += _limits(instance, kind, facts.volumes)
        findings += _cards(instance, kind, facts.volumes)
        findings += _low_balances(instance, facts)
    findings += _exceeded(instance, facts.exceeded)
    return Plan(findings=tuple(findings))


def _optimized(instance: InstanceFacts, kind: TypeFacts) -> Finding:
    knob, now = _OPTIMIZED.at(instance.instance_id), instance.ebs_optimized
    if kind.ebs_optimized is None:
        return knob.finding("unknown", f"nothing is known about {kind.instance_type}", now)
    if kind.ebs_optimized == "unsupported":
        reason = f"{kind.instance_type} has no dedicated bandwidth for EBS: volumes share the network"
        return knob.finding("not_applicable", reason, now)
    if kind.ebs_optimized == "supported" and not now:
        reason = "EBS optimization is off, so volumes share the network: turn it on while the instance is stopped"
        gain = f"{kind.ebs_maximum_mb_s:g} MB/s for EBS alone" if kind.ebs_maximum_mb_s else ""
        return knob.finding("advice", reason, now, gain=gain)
    return knob.finding("ok", "EBS has dedicated bandwidth", now)


def _limits(instance: InstanceFacts, kind: TypeFacts, volumes: Sequence[VolumeFacts]) -> List[Finding]:
    iops = (sum(volume.iops for volume in volumes), sum(volume.paid_iops for volume in volumes))
    mb_s = (sum(volume.mb_s for volume in volumes), sum(volume.paid_mb_s for volume in volumes))
    return [
        *_limit(instance, "iops", "IOPS", iops, (kind.ebs_baseline_iops, kind.ebs_maximum_iops)),
        *_limit(instance, "throughput", "MB/s", mb_s, (kind.ebs_baseline_mb_s, kind.ebs_maximum_mb_s)),
    ]


def _limit(
    instance: InstanceFacts,
    name: str,
    unit: str,
    volumes: Tuple[float, float],
    limits: Tuple[Optional[float], Optional[float]],
) -> List[Finding]:
    knob = Knob(CONCERN, name, reference="AWS, 2017").at(instance.instance_id)
    able, paid = volumes
    baseline, maximum = limits
    if maximum is None or baseline is None:
        reason = f"the limit of {instance.instance_type} is not known; its volumes can do {able:,.0f} {unit}"
        return [knob.finding("unknown", reason, {"volumes": able})]
    now: Dict[str, Any] = {"volumes": able, "baseline": baseline, "maximum": maximum}
    if able <= baseline:
        reason = f"the volumes are the limit: {able:,.0f} of the {baseline:,.0f} {unit} that the instance can do"
        return [knob.finding("ok", reason, now)]
    if able <= maximum:
        reason = (
            f"the volumes can do {able:,.0f} {unit}, the instance {baseline:,.0f} for long and {maximum:,.0f} in "
            "bursts: a larger type sustains that"
        )
        return [knob.finding("advice", reason, now, gain=_CLIFF)]
    reason = f"the instance is the limit: {maximum:,.0f} {unit}, its volumes could do {able:,.0f}"
    findings = [knob._replace(reference="AWS, 2017; StorageReview, 2018").finding("advice", reason, now, gain=_CLIFF)]
    unused = min(paid, able - maximum)
    if unused >= 1:
        reason = f"{unused:,.0f} {unit} are paid for and can't be used: take cheaper volumes or a larger type"
        findings.append(knob._replace(name=f"unused_{name}").finding("advice", reason, round(unused)))
    return findings


def _cards(instance: InstanceFacts, kind: TypeFacts, volumes: Sequence[VolumeFacts]) -> List[Finding]:
    """Whether the volumes are on the EBS cards so that no card holds back what another has room for."""
    if kind.ebs_cards < 2 or not kind.ebs_maximum_iops or not kind.ebs_maximum_mb_s:
        return []
    share = (kind.ebs_maximum_iops / kind.ebs_cards, kind.ebs_maximum_mb_s / kind.ebs_cards)
    present = _loads(kind, volumes, {volume.volume_id: volume.card for volume in volumes}, share)
    best = _spread(kind, volumes, share)
    spread = _loads(kind, volumes, best, share)
    now = {f"card {card}": f"{load:.0%}" for card, load in enumerate(present)}
    if max(present) <= 1 or max(present) - max(spread) < _WORTH_MOVING:
        reason = f"no other placing on its {kind.ebs_cards} EBS cards would let the volumes do more"
        return [_CARDS.at(instance.instance_id).finding("ok", reason, now)]
    moves = [volume for volume in volumes if best[volume.volume_id] != volume.card]
    placed = ", ".join(f"{volume.volume_id} on card {best[volume.volume_id]}" for volume in moves[:_SHOWN])
    more = f" and {len(moves) - _SHOWN} more" if len(moves) > _SHOWN else ""
    reason = (
        f"each of its {kind.ebs_cards} EBS cards does {share[0]:,.0f} IOPS and {share[1]:,.0f} MB/s, and the volumes of"
        f" one card could do {max(present):.1f} times as much: attach {placed}{more}, by EbsCardIndex"
    )
    return [_CARDS.at(instance.instance_id).finding("advice", reason, now)]


def _spread(kind: TypeFacts, volumes: Sequence[VolumeFacts], share: Tuple[float, float]) -> Dict[str, int]:
    """Volume → card: the largest first, each where it is if that card is among the least loaded."""
    cards: Dict[str, int] = {}
    for volume in sorted(volumes, key=lambda volume: -max(volume.iops / share[0], volume.mb_s / share[1])):
        loads = _loads(kind, [other for other in volumes if other.volume_id in cards], cards, share)
        cards[volume.volume_id] = min(range(kind.ebs_cards), key=lambda card: (loads[card], card != volume.card))
    return cards


def _loads(
    kind: TypeFacts, volumes: Sequence[VolumeFacts], cards: Mapping[str, int], share: Tuple[float, float]
) -> List[float]:
    """What the volumes of each card can do, as a share of what the card can."""
    return [
        max(
            sum(volume.iops for volume in volumes if cards[volume.volume_id] == card) / share[0],
            sum(volume.mb_s for volume in volumes if cards[volume.volume_id] == card) / share[1],
        )
        for card in range(kind.ebs_cards)
    ]


def _low_balances(instance: InstanceFacts, facts: EbsFacts) -> List[Finding]:
    findings = []
    for volume in facts.volumes or ():
        if volume.burst_balance is not None:
            low = volume.burst_balance < _LOW_BALANCE
            reason = (
                f"{volume.volume_type}: {volume.burst_balance:g} % of its burst left, then {volume.iops:,} IOPS"
                + (": take gp3, or a larger volume" if low else "")
            )
            knob, status = _BALANCE.at(volume.volume_id), "advice" if low else "ok"
            findings.append(knob.finding(status, reason, round(volume.burst_balance)))
    for name, balance in sorted(facts.balances.items()):
        low = balance < _LOW_BALANCE
        reason = f"{name}: {balance:g} % of the instance's burst left" + (": take a larger type" if low else "")
        knob = _BALANCE_OF_INSTANCE.at(instance.instance_id)
        findings.append(knob.finding("advice" if low else "ok", reason, round(balance)))
    return findings


def _exceeded(instance: InstanceFacts, devices: Sequence[ExceededFacts]) -> List[Finding]:
    findings = []
    for device in devices:
        held: Dict[str, int] = {
            "instance": device.instance_iops_us + device.instance_throughput_us,
            "volume": device.volume_iops_us + device.volume_throughput_us,
        }
        by = next((f"held back by the {end}'s limit for {us / 1e6:,.1f} s" for end, us in held.items() if us), "")
        reason = f"{device.device}: {by or 'never held back'} since it was attached"
        now: Dict[str, Any] = {f"{end}_us": us for end, us in held.items()}
        findings.append(_EXCEEDED.at(instance.instance_id).finding("advice" if by else "ok", reason, now))
    return findings


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    hosts = {host["instance_id"]: host for host in options.get("hosts") or ()}
    for host in hosts.values():
        _require_counters(host)
    with deadline(options["timeout"]):
        observation = observe(options)
        volumes = observation.keep_failures(ask(VOLUMES, observation.located))
        metrics = observation.metrics(options, _series(observation, volumes), _HOURS)
    facts = {
        instance_id: _facts(instance_id, volumes, metrics, hosts.get(instance_id, {}))
        for instance_id in observation.instances
    }
    plans = observation.each(lambda instance, kind: plan(instance, kind, facts[instance.instance_id]))
    details = {
        instance_id: {"volumes": list(map(asdict, ebs_facts.volumes or ()))} for instance_id, ebs_facts in facts.items()
    }
    return contract(CONCERN, observation, plans, details)


def _require_counters(host: Mapping[str, Any]) -> None:
    """Raise NearmetalError for a number that no counter has."""
    for counters in host.get("exceeded") or ():
        for name, number in counters.items():
            if name != "device" and not 0 <= number <= _MOST:
                place = f"hosts: {host['instance_id']}: exceeded: {counters['device']}: {name}"
                raise NearmetalError(f"{place} must be a whole number from 0 to {_MOST}")


def _series(observation: Observation, volumes: Answers) -> Dict[str, List[Series]]:
    wanted: Dict[str, List[Series]] = {}
    for instance_id, instance in observation.instances.items():
        kind = observation.type_of(instance)
        attached = [volume_facts(volume, instance_id) for volume in volumes.by_id.get(instance_id, ())]
        wanted[instance_id] = [
            Series("AWS/EBS", "BurstBalance", "VolumeId", volume.volume_id, "Minimum")
            for volume in attached
            if volume.bursts
        ]
        if kind.ebs_baseline_iops != kind.ebs_maximum_iops:
            names = ("EBSIOBalance%", "EBSByteBalance%")
            wanted[instance_id] += [Series("AWS/EC2", name, "InstanceId", instance_id, "Minimum") for name in names]
    return wanted


def _facts(instance_id: str, volumes: Answers, metrics: Answers, host: Mapping[str, Any]) -> EbsFacts:
    lowest = {
        (metric["name"], metric["dimension"]): min(metric["values"])
        for metric in metrics.by_id.get(instance_id, ())
        if metric["values"]
    }
    attached = None
    if instance_id not in volumes.failed:
        attached = tuple(
            volume_facts(volume, instance_id, lowest.get(("BurstBalance", volume["VolumeId"])))
            for volume in sorted(volumes.by_id.get(instance_id, ()), key=lambda volume: str(volume["VolumeId"]))
        )
    balances = {name: value for (name, dimension), value in lowest.items() if dimension == instance_id}
    exceeded = tuple(ExceededFacts(**counters) for counters in host.get("exceeded") or ())
    return EbsFacts(attached, balances, exceeded)
