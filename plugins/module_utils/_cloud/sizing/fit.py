# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which types would do for a need. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..._error import NearmetalError
from ..._words import shown
from ..types.facts import TypeFacts
from ..types.name import parse_instance_type
from .need import BY_NAME, Dimension, Need, figure

# Families that cost more for what `need` can't ask for: accelerators, macOS, HPC's network.
_SPECIAL = ("dl", "f", "g", "gr", "hpc", "inf", "mac", "p", "trn", "vt")


@dataclass(frozen=True)
class Share:
    """How much of one limit a need takes."""

    dimension: Dimension
    need: float
    limit: Optional[float]  # None: not known

    @property
    def percent(self) -> Optional[float]:
        """The share in percent; None when the limit is not known, or is nothing."""
        return 100 * self.need / self.limit if self.limit else None

    def line(self) -> str:
        """`memory 54 of 72 GiB = 75 %`."""
        name, unit = self.dimension.words, self.dimension.unit
        if self.limit is None:
            return f"{name} {figure(self.need)}{unit} of a limit that is not known"
        share = "" if self.percent is None else f" = {figure(round(self.percent, 1))} %"
        return f"{name} {figure(self.need)} of {figure(self.limit)}{unit}{share}"


@dataclass(frozen=True)
class Fit:
    """A need against one type."""

    kind: TypeFacts
    shares: Tuple[Share, ...]
    headroom_percent: float

    @property
    def holds(self) -> Optional[bool]:
        """Whether the type has enough of everything; None when a limit is not known and no other one is exceeded."""
        if self.exceeded():
            return False
        return None if any(share.limit is None for share in self.shares) else True

    def exceeded(self) -> List[Share]:
        """The shares for which the type has too little."""
        usable = (100 - self.headroom_percent) / 100
        return [share for share in self.shares if share.limit is not None and share.need > share.limit * usable]

    def scarcest(self) -> Optional[Share]:
        """The share that is used up first."""
        known = [share for share in self.shares if share.percent is not None]
        return max(known, key=lambda share: share.percent or 0.0, default=None)

    def line(self) -> str:
        """The shares in one sentence."""
        return f"{self.kind.instance_type}: {'; '.join(share.line() for share in self.shares)}"

    def as_dict(self) -> Dict[str, Any]:
        """The shares as plain JSON data."""
        scarcest = self.scarcest()
        return {
            "instance_type": self.kind.instance_type,
            "holds": self.holds,
            "scarcest": scarcest.dimension.name if scarcest else None,
            "percent": {
                share.dimension.name: None if share.percent is None else round(share.percent, 1)
                for share in self.shares
            },
            "line": self.line(),
        }


def fit(kind: TypeFacts, need: Need, sustained: bool = True, headroom_percent: float = 0.0) -> Fit:
    shares = tuple(
        Share(dimension, need[name], dimension.limit(kind, sustained))
        for name, dimension in BY_NAME.items()
        if name in need
    )
    return Fit(kind, shares, headroom_percent)


def rank(kind: TypeFacts, prices: Mapping[str, float]) -> Tuple[Any, ...]:
    """Cheap before dear, and what has a price before what has none; then small before large."""
    price = prices.get(kind.instance_type)
    return (price is None, price or 0.0, kind.vcpus or 0, kind.memory_mib or 0, kind.instance_type)


def best(fits: Iterable[Fit], prices: Mapping[str, float]) -> List[Fit]:
    """Of each family the cheapest or else smallest type that holds the need, by rank."""
    best_fits: Dict[str, Fit] = {}
    holding = [each for each in fits if each.holds]
    for each in sorted(holding, key=lambda each: rank(each.kind, prices)):
        best_fits.setdefault(family(each.kind), each)
    return list(best_fits.values())


def family(kind: TypeFacts) -> str:
    """`c5` of `c5.large`."""
    return kind.instance_type.partition(".")[0]


def candidates(
    table: Mapping[str, TypeFacts], patterns: Optional[Sequence[str]], today: Optional[TypeFacts]
) -> List[TypeFacts]:
    """The types to choose from: those that match a pattern, or else all current ones of today's architecture."""
    if patterns is None:
        return [kind for kind in table.values() if kind.current_generation and _usual(kind, today)]
    types: Dict[str, TypeFacts] = {}
    for pattern in patterns:
        matching = {name: kind for name, kind in table.items() if fnmatchcase(name, str(pattern))}
        if not matching:
            raise NearmetalError(
                f"instance_types: {shown(pattern)} matches no type: it must be a name or a pattern such as c7i.*"
            )
        types.update(matching)
    return list(types.values())


def _usual(kind: TypeFacts, today: Optional[TypeFacts]) -> bool:
    if today and not set(today.architectures) & set(kind.architectures):
        return False
    return parse_instance_type(kind.instance_type).series not in _SPECIAL
