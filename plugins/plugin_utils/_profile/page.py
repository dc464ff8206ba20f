# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A profile as a page: an icicle of functions that can be searched and magnified. PRIVATE to the collection."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

from ...module_utils._profile.folding import Tree
from .._clean import Budget, mapping, mappings
from .._page import data, fill

_MOST = 50  # rows of a table, and sentences


def render(host: str, trees: Mapping[str, Tree], result: Mapping[str, Any], now: float) -> str:
    """The text of the page, in which nothing that a host reported is markup. Each tree has a title."""
    budget = Budget()
    top = [
        (budget.text(row.get("name"), 160), *(f"{100 * row[part]:.1f} %" for part in ("own", "share")))
        for row in mappings(result.get("top"), _MOST)
        if all(isinstance(row.get(part), (int, float)) for part in ("own", "share"))
    ]
    return fill(
        Path(__file__).with_name("page.html.j2"),
        ["../_prove/page/page.css", "page.css"],
        ["page.js"],
        host=host,
        summary=_summary(budget, result, now),
        notes=budget.texts(result.get("notes"))[:_MOST],
        advice=[
            (budget.text(row.get("says")), budget.text(row.get("knob")))
            for row in mappings(result.get("advice"), _MOST)
        ],
        top=top,
        counters=_counters(budget, mapping(result.get("counters"))),
        titles=list(trees),
        data=data(_merged(trees)),
    )


def _summary(budget: Budget, result: Mapping[str, Any], now: float) -> str:
    known = budget.value(
        {name: result.get(name) for name in ("samples", "idle", "frequency", "event", "kernel", "version")}
    )
    when = time.strftime("%d %b %Y %H:%M UTC", time.gmtime(now)).lstrip("0")
    return (
        f"{known['samples']} samples of busy CPUs and {known['idle']} of idle ones, {known['frequency']} per second and"
        f" CPU, by {known['event']}; Linux {known['kernel']}, {known['version']}; {when}"
    )


def _counters(budget: Budget, counters: Mapping[str, Any]) -> List[Tuple[str, str]]:
    rows = []
    for name, value in list(budget.value(counters).items())[:_MOST]:
        if isinstance(value, (int, float)):
            rows.append((name.replace("_", " "), f"{value:,}"))
    return rows


def _merged(trees: Mapping[str, Tree]) -> Dict[str, Any]:
    """Several trees as one that has the samples of each."""
    if len(trees) == 1:
        (tree,) = trees.values()
        return {**tree.as_dict(), "own": [list(tree.own)], "titles": list(trees)}
    raise NotImplementedError
