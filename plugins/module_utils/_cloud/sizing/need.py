# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a workload needs of an instance, and what a type has of it. Pure. PRIVATE to the collection.

Limits are those of DescribeInstanceTypes. Sustained ones can be used all day; bursts of network and EBS end when their
credits do (AWS's pages on network bandwidth and on EBS-optimized instances).
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ..._error import NearmetalError
from ..._words import shown
from ..credit_rules import RULES
from ..types.facts import TypeFacts
from ..types.name import parse_instance_type

_LARGEST = 1e15
_GIGABIT = re.compile(r"(?:Up to )?(?:(?P<cards>[0-9]+)x )?(?P<gbps>[0-9.]+) Gigabit")

Need = Mapping[str, float]  # by the names of DIMENSIONS; what isn't in it is not asked for


class Dimension(NamedTuple):
    """One thing of which a type has a limited amount."""

    name: str  # the key in `need`
    words: str
    unit: str  # after a figure, with the space before it
    limit: Callable[[TypeFacts, bool], Optional[float]]  # `True`: the sustained one; None: not known


def _vcpus(kind: TypeFacts, sustained: bool) -> Optional[float]:
    if not sustained or kind.vcpus is None:
        return kind.vcpus
    name = parse_instance_type(kind.instance_type)
    # The API lacks the mark of t1 and of the newest T types.
    if kind.burstable or name.series == "t":
        rules = RULES.get(kind.instance_type)
        return rules.earn_per_hour / 60 if rules else None
    # AWS limits for how long a flex type may use all of its vCPUs; the API doesn't say what is left then.
    return None if name.variant == "flex" else kind.vcpus


def network_gbps(kind: TypeFacts, sustained: bool) -> Optional[float]:
    """What all cards can do together: their sum, or less if AWS advertises less for the type."""
    cards = [card.baseline_gbps if sustained else card.peak_gbps for card in kind.cards]
    known = [gbps for gbps in cards if gbps is not None]
    if not cards or len(known) < len(cards):
        return None
    advertised = _GIGABIT.fullmatch(kind.network_performance or "")
    if not advertised:
        return sum(known)
    return min(sum(known), float(advertised["gbps"]) * int(advertised["cards"] or 1))


DIMENSIONS = (
    Dimension("vcpus", "vCPUs", "", _vcpus),
    Dimension("memory_gib", "memory", " GiB", lambda kind, _: kind.memory_mib and kind.memory_mib / 1024),
    Dimension("network_gbps", "network", " Gbit/s", network_gbps),
    Dimension("ebs_iops", "EBS", " IOPS", lambda kind, long: kind.ebs_baseline_iops if long else kind.ebs_maximum_iops),
    Dimension("ebs_mb_s", "EBS", " MB/s", lambda kind, long: kind.ebs_baseline_mb_s if long else kind.ebs_maximum_mb_s),
    Dimension(
        "instance_store_gb",
        "instance store",
        " GB",
        # The API leaves the field out for a type without instance store; of retired types we don't know.
        lambda kind, _: kind.instance_store_gb or (None if kind.source == "sources" else 0),
    ),
    Dimension("interfaces", "network interfaces", "", lambda kind, _: kind.max_interfaces),
)
BY_NAME = {dimension.name: dimension for dimension in DIMENSIONS}


def figure(value: float) -> str:
    """A figure as a person writes it: 4,000 or 0.75, with at most three decimals; a tiny one with four digits."""
    if value and abs(value) < 0.01:
        return f"{value:.4g}"
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def number(name: str, value: Any, zero: bool = False) -> float:
    """A number that somebody gave. Raises NearmetalError for any other value."""
    try:
        if isinstance(value, bool):
            raise TypeError
        amount = float(value)
    except (TypeError, ValueError, OverflowError):
        amount = math.nan
    if not (amount >= 0 if zero else amount > 0) or amount > _LARGEST:
        least = "of at least zero" if zero else "above zero"
        raise NearmetalError(f"{name}: {shown(value)} is not allowed: it must be a number {least}, at most 10^15")
    return amount


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A mapping that somebody gave; an empty one for nothing."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise NearmetalError(f"{name}: {shown(value)} is not allowed: it must be a mapping")
    return value


def need_of(given: Any) -> Dict[str, float]:
    """The need that somebody gave; an entry that is null is left out."""
    need = {}
    for name, value in mapping("need", given).items():
        if name not in BY_NAME:
            raise NearmetalError(f"need: {shown(name)} is not known: it must be one of {', '.join(BY_NAME)}")
        if value is not None:
            need[name] = number(f"need.{name}", value, zero=True)
    return need


def volumes_of(given: Any) -> Optional[Tuple[Dict[str, float], ...]]:
    """The volumes that somebody gave, each with its IOPS and MB/s; None for nothing."""
    if given is None:
        return None
    if not isinstance(given, (list, tuple)):
        raise NearmetalError(f"volumes: {shown(given)} is not allowed: it must be a list of mappings")
    volumes: List[Dict[str, float]] = []
    for place, volume in enumerate(given):
        entry = mapping(f"volumes[{place}]", volume)
        if set(entry) != {"iops", "mb_s"}:
            raise NearmetalError(f"volumes[{place}]: {shown(volume)} is not allowed: it must have iops and mb_s alone")
        volumes.append({name: number(f"volumes[{place}].{name}", entry[name], zero=True) for name in ("iops", "mb_s")})
    return tuple(volumes)


def figures_of(option: str, given: Any) -> Dict[str, float]:
    """Figures above zero that somebody gave per instance type."""
    figures = {}
    for name, value in mapping(option, given).items():
        try:
            parse_instance_type(name)
        except NearmetalError as error:
            raise NearmetalError(f"{option}: {error}") from error
        figures[name] = number(f"{option}.{name}", value)
    return figures
