# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit of work costs, and how many instances fit on a Dedicated Host. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..types.facts import TypeFacts
from .fit import family
from .need import figure

_MILLION = 1_000_000
_HOUR = 3600


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
