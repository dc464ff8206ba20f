# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A profile as a page: an icicle of functions that can be searched and magnified. PRIVATE to the collection."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ...module_utils._profile.folding import Tree
from .._clean import Budget, mapping, mappings
from .._page import data, fill
from .difference import Frame
from .stacks import Merged, merged

_MOST = 50  # rows of a table, and sentences
_SHOWN = 12  # rows of a table whose rest is in the document beside the page


def render(
    host: str, trees: Mapping[str, Sequence[Tree]], result: Mapping[str, Any], now: float, frames: Sequence[Frame] = ()
) -> str:
    """The text of the page, in which nothing that a host reported is markup.

    `trees` are those of one state, or of untuned and tuned, which `frames` compares.
    """
    moved = [frame for frame in frames if frame.moved]
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
            (budget.text(row.get("says")), budget.text(row.get("knob") or ""))
            for row in mappings(result.get("advice"), _MOST)
        ],
        top=top,
        counters=_counters(budget, mapping(result.get("counters"))),
        programs=_rows(
            budget, mapping(result.get("waits")).get("programs"), "name", "ran", "ready", "longest", "blocked"
        ),
        places=_rows(budget, mapping(result.get("waits")).get("places"), "name", "where", "waits", "blocked"),
        calls=_rows(budget, result.get("calls"), "name", "call", "calls", "errors", "seconds"),
        titles=list(trees),
        judged=len(frames),
        moved=[
            (frame.name, *(f"{100 * share:.1f} %" for share in (frame.untuned, frame.tuned)), _evidence(frame))
            for frame in moved
        ],
        data=data(_data(merged(list(trees.values())), list(trees), moved)),
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


def _rows(budget: Budget, rows: Any, *columns: str) -> List[List[str]]:
    return [[_cell(budget, row.get(column)) for column in columns] for row in mappings(rows, _SHOWN)]


def _cell(budget: Budget, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f} s"
    return f"{value:,}" if isinstance(value, int) else budget.text(value)


def _data(merged: Merged, titles: Sequence[str], moved: Sequence[Frame]) -> Dict[str, Any]:
    numbers = {name: number for number, name in enumerate(merged.names)}
    return {
        **merged._asdict(),
        "titles": titles,
        "moved": [[numbers[frame.name], frame.moved, _evidence(frame)] for frame in moved if frame.name in numbers],
    }


def _evidence(frame: Frame) -> str:
    return f"{frame.evidence:,.0f}:1" if frame.evidence < 1e6 else "more than a million to 1"
