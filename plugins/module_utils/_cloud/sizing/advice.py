# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole answer of sizing, for the filter and for the module, with costs. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..._error import NearmetalError
from ..._words import plain, shown
from ..types.data import AS_OF
from ..types.facts import TypeFacts
from ..types.table import offline_types
from .fit import Fit, best, candidates, family, fit
from .need import BY_NAME, figure, figures_of, need_of, number, volumes_of
from .use import Use, bigger_size, metal, network_class, second_interface, volumes

# How many types are proposed, one per family, unless `most` says otherwise.
_PROPOSED = 5
_MOST_PROPOSED = 50
_MOST_HEADROOM = 90.0
_MILLION = 1_000_000
_HOUR = 3600


@dataclass(frozen=True)
class Question:
    """What is asked, checked. `today` is the type in use; None: there is none yet."""

    need: Mapping[str, float]
    today: Optional[TypeFacts]
    choice: Tuple[TypeFacts, ...]
    volumes: Optional[Tuple[Mapping[str, float], ...]]
    prices: Mapping[str, float]
    work: Mapping[str, float]
    work_unit: str
    work_wanted: Optional[float]
    sustained: bool
    headroom_percent: float
    most: int

    def fit(self, kind: TypeFacts) -> Fit:
        return fit(kind, self.need, self.sustained, self.headroom_percent)


def question(options: Mapping[str, Any], today: Optional[TypeFacts] = None) -> Question:
    """The options, checked. Raises NearmetalError with a sentence that names option, value and what is allowed."""
    table = offline_types()
    name = options.get("instance_type")
    if name is not None:
        today = table.get(name) if isinstance(name, str) else None
        if today is None:
            raise NearmetalError(f"instance_type: {shown(name)} is not in the table of {AS_OF}")
    patterns = options.get("instance_types")
    if patterns is not None and not isinstance(patterns, (list, tuple)):
        raise NearmetalError(f"instance_types: {shown(patterns)} is not allowed: it must be a list of names")
    wanted = options.get("work_wanted")
    headroom = number("headroom_percent", options.get("headroom_percent") or 0, zero=True)
    if headroom > _MOST_HEADROOM:
        raise NearmetalError(f"headroom_percent: {figure(headroom)} is not allowed: it must be from 0 to 90")
    most = number("most", options.get("most") or _PROPOSED)
    if most > _MOST_PROPOSED or most != int(most):
        raise NearmetalError(f"most: {figure(most)} is not allowed: it must be a whole number from 1 to 50")
    query = Question(
        need=need_of(options.get("need")),
        today=today,
        choice=tuple(candidates(table, patterns, today)),
        volumes=volumes_of(options.get("volumes")),
        prices=figures_of("prices", options.get("prices")),
        work=figures_of("work", options.get("work")),
        work_unit=plain(str(options.get("work_unit") or "units")),
        work_wanted=None if wanted is None else number("work_wanted", wanted),
        sustained=options.get("sustained") is not False,
        headroom_percent=headroom,
        most=int(most),
    )
    if not query.need and not query.work and not (query.volumes and query.today):
        raise NearmetalError(
            f"nothing to calculate with: give need (of {', '.join(BY_NAME)}), work, or instance_type with volumes"
        )
    if query.volumes is not None and not query.today:
        raise NearmetalError("volumes: they need instance_type, whose EBS limit they are compared with")
    return query


def proposals(query: Question, fits: Sequence[Fit]) -> List[Fit]:
    """The types that would do: of each family the cheapest or smallest, as many as are asked for."""
    return best(fits, query.prices)[: query.most]


def fits_of(query: Question) -> List[Fit]:
    """The need against every type to choose from; none without a need."""
    return [query.fit(kind) for kind in query.choice] if query.need else []


def uses(query: Question) -> List[Use]:
    """Whether more of something would be used on the type of today."""
    if query.today is None:
        return []
    possible_uses: List[Use] = []
    relatives = [query.fit(kind) for kind in offline_types().values() if family(kind) == family(query.today)]
    virtual = [each for each in relatives if not each.kind.bare_metal]
    if query.need:
        today = query.fit(query.today)
        possible_uses += [
            bigger_size(today, virtual),
            metal(today, virtual, [each for each in relatives if each.kind.bare_metal]),
            second_interface(query.today, query.need, query.sustained),
            *network_class(query.today, query.need),
        ]
    if query.volumes:
        possible_uses += volumes(query.today, query.volumes, query.need, query.sustained, virtual)
    return possible_uses


def answer(query: Question) -> Dict[str, Any]:
    """What follows from a question, with the arithmetic as lines that a person can redo."""
    table = offline_types()
    fits = fits_of(query)
    holding = proposals(query, fits)
    verdicts = uses(query)
    rows = costs(query.prices, query.work, query.work_unit, query.work_wanted)
    today = query.fit(query.today) if query.today and query.need else None
    proposed = []
    for each in holding:
        host = on_a_host(each.kind, table)
        price = query.prices.get(each.kind.instance_type)
        proposed.append({**each.as_dict(), "price_per_hour": price, "per_host": host})
    return {
        "proposed": proposed,
        "sufficient": sum(each.holds is True for each in fits),
        "candidates": len(fits),
        "unknown": sorted(each.kind.instance_type for each in fits if each.holds is None),
        "today": today.as_dict() if today else None,
        "uses": {use.name: use.as_dict() for use in verdicts},
        "costs": rows,
        "arithmetic": _arithmetic(query, today, proposed, verdicts, rows),
        "table_as_of": AS_OF,
    }


def _arithmetic(
    query: Question,
    today: Optional[Fit],
    proposed: List[Dict[str, Any]],
    verdicts: List[Use],
    rows: List[Dict[str, Any]],
) -> List[str]:
    limits = "sustained limits" if query.sustained else "limits of bursts"
    lines = []
    if query.need:
        spare = f", of which {figure(query.headroom_percent)} % stay free" if query.headroom_percent else ""
        lines.append(f"{limits}{spare}; vCPUs are counted, not how fast they are")
    if today:
        lines.append(f"now {today.line()}")
    lines += [use.line for use in verdicts]
    for entry in proposed:
        price = entry["price_per_hour"]
        lines.append(f"would do: {entry['line']}{'' if price is None else f'; {figure(price)} per hour'}")
    lines += [entry["per_host"]["line"] for entry in proposed if entry["per_host"]]
    return lines + [row["line"] for row in rows]


def costs(
    prices: Mapping[str, float], work: Mapping[str, float], unit: str, wanted: Optional[float]
) -> List[Dict[str, Any]]:
    """Per type whose work was measured: price of a million units, and how many instances do the wanted work.

    `work` and `wanted` are units per second. The cheapest unit comes first, types without a price last.
    """
    rows = [_cost(name, prices.get(name), rate, unit, wanted) for name, rate in work.items()]
    return sorted(rows, key=lambda row: (row["per_million"] is None, row["per_million"] or 0.0, row["instance_type"]))


def _cost(name: str, price: Optional[float], rate: float, unit: str, wanted: Optional[float]) -> Dict[str, Any]:
    per_million = None if price is None else price / (rate * _HOUR) * _MILLION
    count = None if wanted is None else math.ceil(wanted / rate)
    lines = []
    if price is None:
        lines.append(f"{figure(rate)} {unit}/s, no price given")
    else:
        lines.append(
            f"{figure(price)} per hour ÷ ({figure(rate)} {unit}/s × 3,600 s) × 1,000,000 = "
            f"{per_million:.4g} per million {unit}"
        )
    if count is not None and wanted is not None:
        whole = f"{figure(wanted)} ÷ {figure(rate)} = {figure(wanted / rate)}: {count:,} of them"
        lines.append(whole if price is None else f"{whole} × {figure(price)} = {figure(count * price)} per hour")
    return {
        "instance_type": name,
        "price_per_hour": price,
        "work_per_second": rate,
        "per_million": per_million,
        "instances": count,
        "price_of_all_per_hour": None if price is None or count is None else round(count * price, 6),
        "line": f"{name}: {'; '.join(lines)}",
    }


def on_a_host(kind: TypeFacts, table: Mapping[str, TypeFacts]) -> Optional[Dict[str, Any]]:
    """How many instances a Dedicated Host of the family has room for, at most; None: not known.

    A metal size is the whole host, so its figures bound what fits. AWS may place fewer, because an instance doesn't
    span sockets.
    """
    metals = [each for each in table.values() if each.bare_metal and each.vcpus and family(each) == family(kind)]
    whole = max(metals, key=lambda each: (each.vcpus or 0, each.memory_mib or 0), default=None)
    if whole is None or not kind.vcpus or not kind.memory_mib or kind.burstable:
        return None
    parts: Sequence[Any] = (
        ("vCPUs", whole.vcpus, kind.vcpus, ""),
        ("memory", (whole.memory_mib or 0) / 1024, kind.memory_mib / 1024, " GiB"),
    )
    most = min(int(host // instance) for _words, host, instance, _unit in parts)
    sums = "; ".join(
        f"{words} {figure(host)} ÷ {figure(instance)}{unit} = {figure(host / instance)}"
        for words, host, instance, unit in parts
    )
    line = f"{kind.instance_type}: at most {most:,} on a Dedicated Host as large as {whole.instance_type}: {sums}"
    return {"instance_type": kind.instance_type, "host": whole.instance_type, "most": most, "line": line}
