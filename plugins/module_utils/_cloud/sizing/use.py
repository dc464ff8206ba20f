# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a bigger size, metal, faster volumes or a second interface would be used at all. Pure. PRIVATE."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..types.facts import TypeFacts
from .fit import Fit, rank
from .need import BY_NAME, Need, figure, network_gbps

_BEYOND = "hardware counters and a hypervisor of your own, which only metal has, are not in these figures"

# What the API's classes of bandwidth were measured to hold, in Gbit/s: Aerospike's table of 2014, read on 2026-11-28.
_HELD: Mapping[str, float] = {"Moderate": 0.8, "High": 1.8, "10 Gigabit": 8.8}


# The sources of each verdict.
_REFERENCES = {
    "bigger_size": "AWS, 2017",
    "metal": "StorageReview, 2018",
    "more_iops": "AWS, 2017; StorageReview, 2018",
    "more_throughput": "AWS, 2017; StorageReview, 2018",
    "network_class": "Aerospike, 2014",
    "second_interface": "Aerospike, 2014; Netflix, 2016",
}


class Use(NamedTuple):
    """Whether more of something would be used. None: only a measurement can say."""

    name: str
    used: Optional[bool]
    status: str  # of a finding
    line: str

    def as_dict(self) -> Dict[str, Any]:
        """The verdict as plain JSON data."""
        return {"used": self.used, "status": self.status, "line": self.line, "reference": _REFERENCES[self.name]}


def bigger_size(today: Fit, relatives: Sequence[Fit]) -> Use:
    """Whether a bigger size would be used; `relatives` are the virtual sizes of the same family."""
    name = today.kind.instance_type
    enough = _smallest(relatives)
    if today.holds is None:
        line = f"whether {name} is large enough is not known: {'; '.join(share.line() for share in today.shares)}"
        return Use("bigger_size", None, "unknown", line)
    if not today.holds:
        missing = "; ".join(share.line() for share in today.exceeded())
        then = f"{enough.kind.instance_type} would do" if enough else "no size of its family would do"
        return Use("bigger_size", True, "advice", f"{name} is too small: {missing}: {then}")
    scarcest = today.scarcest()
    most = f": the most that it uses is {scarcest.line()}" if scarcest else ""
    line = f"a bigger size than {name} would not be used{most}"
    if enough and rank(enough.kind, {}) < rank(today.kind, {}):
        return Use("bigger_size", False, "advice", f"{line}; {enough.kind.instance_type} would do")
    return Use("bigger_size", False, "ok", line)


def metal(today: Fit, relatives: Sequence[Fit], metals: Sequence[Fit]) -> Use:
    """Whether a metal size would be used; `metals` are those of the same family."""
    name = today.kind.instance_type
    enough = _smallest(relatives)
    if not metals:
        return Use("metal", False, "ok", f"the family of {name} has no metal size")
    if enough:
        status = "advice" if today.kind.bare_metal else "ok"
        scarcest = enough.scarcest()
        most = f" ({scarcest.line()})" if scarcest else ""
        line = f"metal would not be used: {enough.kind.instance_type} has enough{most}; {_BEYOND}"
        return Use("metal", False, status, line)
    if any(each.holds is None for each in (*relatives, *metals)):
        return Use("metal", None, "unknown", "whether metal would be used is not known: a limit is missing")
    larger = _smallest(metals)
    if larger:
        status = "ok" if today.kind.bare_metal else "advice"
        line = f"metal would be used: no virtual size of the family has enough, {larger.line()}"
        return Use("metal", True, status, line)
    largest = max(metals, key=lambda each: rank(each.kind, {}))
    missing = "; ".join(share.line() for share in largest.exceeded())
    line = f"metal would not be enough either: {largest.kind.instance_type}: {missing}"
    return Use("metal", False, "ok", line)


def volumes(
    kind: TypeFacts, given: Sequence[Mapping[str, float]], need: Need, sustained: bool, relatives: Sequence[Fit]
) -> List[Use]:
    """Whether more IOPS or MB/s of volumes would be used."""
    return [
        _volumes(kind, name, dimension, [volume[key] for volume in given], need.get(dimension), sustained, relatives)
        for name, dimension, key in (("more_iops", "ebs_iops", "iops"), ("more_throughput", "ebs_mb_s", "mb_s"))
    ]


def _volumes(
    kind: TypeFacts,
    name: str,
    dimension: str,
    given: Sequence[float],
    need: Optional[float],
    sustained: bool,
    relatives: Sequence[Fit],
) -> Use:
    unit = BY_NAME[dimension].unit
    cap = BY_NAME[dimension].limit(kind, sustained)
    able = sum(given)
    summed = f"{' + '.join(map(figure, given))} = {figure(able)}" if len(given) > 1 else figure(able)
    if cap is None:
        line = f"the EBS limit of {kind.instance_type} is not known; its volumes can do {summed}{unit}"
        return Use(name, None, "unknown", line)
    figures = f"volumes {summed}{unit}, instance {figure(cap)}{unit}"
    if need is not None:
        figures = f"need {figure(need)}{unit}, {figures}"
    if need is not None and need <= min(able, cap):
        return Use(name, False, "ok", f"more of EBS would not be used: {figures}")
    if able >= cap:
        enough = _smallest(relatives) if need is not None else None
        then = f"; {enough.kind.instance_type} would do" if enough else ""
        line = f"the EBS limit of the instance is the limit: {figures}: more or faster volumes won't help{then}"
        return Use(name, False, "advice", line)
    if need is None:
        line = f"the volumes are the limit: {figures}: whether more would be used, only a measured need can say"
        return Use(name, None, "ok", line)
    end = "what is needed" if need <= cap else "the instance's limit"
    line = f"faster volumes would be used: {figures}: up to {figure(min(need, cap))}{unit}, {end}"
    return Use(name, True, "advice", line)


def network_class(kind: TypeFacts, need: Need) -> List[Use]:
    """Whether the need is more than the type's class was measured to hold, where the API's figure is more than that."""
    held, states = _HELD.get(kind.network_performance or ""), network_gbps(kind, False)
    needed = need.get("network_gbps")
    if held is None or states is None or states <= held or needed is None:
        return []
    line = (
        f"AWS states up to {figure(states)} Gbit/s for {kind.instance_type}; its class, {kind.network_performance}, was"
        f" measured in 2014 to hold {figure(held)} Gbit/s"
    )
    if needed <= held:
        return [Use("network_class", False, "ok", f"{line}, and {figure(needed)} are needed")]
    line = f"{line}: measure one before you count on the {figure(needed)} Gbit/s that are needed"
    return [Use("network_class", None, "advice", line)]


def second_interface(kind: TypeFacts, need: Need, sustained: bool) -> Use:
    """Whether a second network interface would be used: for bandwidth, and for queues."""
    name = "second_interface"
    if not kind.cards:
        line = f"the network cards of {kind.instance_type} are not known"
        return Use(name, None, "unknown", line)
    used, bandwidth = _bandwidth(kind, need, sustained)
    if used:
        return Use(name, True, "advice", bandwidth)
    enough, queues = _queues(kind)
    verdict = False if used is False and enough else None
    return Use(name, verdict, "ok", f"{bandwidth}; {queues}")


def _bandwidth(kind: TypeFacts, need: Need, sustained: bool) -> Tuple[Optional[bool], str]:
    card = kind.cards[0].baseline_gbps if sustained else kind.cards[0].peak_gbps
    if card is None:
        return None, f"the bandwidth of the cards of {kind.instance_type} is not known"
    if len(kind.cards) == 1:
        return False, f"all interfaces share one card's {figure(card)} Gbit/s: a second one brings no bandwidth"
    needed = need.get("network_gbps")
    cards = f"{kind.instance_type} has {len(kind.cards)} cards, {figure(card)} Gbit/s on the first"
    if needed is None:
        return None, f"{cards}: whether a second would be used, only a measured need can say"
    total = network_gbps(kind, sustained)
    if total is not None and total <= card:
        return False, f"{cards} and all together: a second one brings no bandwidth"
    if needed > card:
        return True, f"{cards}: the need of {figure(needed)} Gbit/s takes an interface on another card"
    return False, f"{cards}: the need of {figure(needed)} Gbit/s takes no second card"


def _queues(kind: TypeFacts) -> Tuple[bool, str]:
    if kind.ena == "unsupported":
        return False, (
            "without ENA an interface has at most 2 queues (Netflix, 2016): more interfaces, or RPS, let more "
            "CPUs take packets (Aerospike, 2014: 250,000 → 960,000 transactions/s with four): measure"
        )
    queues, cpus = kind.cards[0].default_queues, kind.vcpus
    if queues is None or cpus is None:
        return False, "its queues are not known"
    if queues >= cpus:
        return True, f"its {queues} queues serve all {cpus} vCPUs"
    more = "or more queues of the first" if kind.flexible_ena_queues else "or RPS"
    return False, (
        f"{queues} queues serve {cpus} vCPUs: a second interface {more} helps if packets are the limit: measure"
    )


def _smallest(fits: Sequence[Fit]) -> Optional[Fit]:
    return min((each for each in fits if each.holds), key=lambda each: rank(each.kind, {}), default=None)
