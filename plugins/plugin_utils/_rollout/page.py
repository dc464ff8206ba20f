# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout as a page: its batches in time, tuned hosts beside those that wait, and who was taken back. PRIVATE."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any, Dict, List, Sequence, Tuple

from ...module_utils._prove.statistics.interval import percent
from ...module_utils._words import plain, sentence
from .._page import fill
from . import sentences
from .decision import BACK, GO_ON
from .effect import Watch, logarithm, means
from .record import Batch, Record

WIDTH, HEIGHT, _LEFT, _EDGE = 420, 200, 62, 14
_MOST = 50  # hosts in a list
_LOOKS = {GO_ON: "better", BACK: "worse"}


def render(kept: Record) -> str:
    """The text of the page, in which no name or message is markup."""
    lines = sentences.end(kept)
    first = kept.batches[0].began if kept.batches else kept.start["at"]
    last = max([kept.start["at"] + 1, *(_end(batch) for batch in kept.batches)])
    lists = {
        "Not taken back": [f"{plain(host)}: {sentence(why)}" for host, why in kept.restored.items() if why],
        "Taken back": [plain(host) for host, why in kept.restored.items() if not why],
        "Left out": [plain(host) for host in sorted(kept.without)],
    }
    return fill(
        Path(__file__).with_name("page.html.j2"),
        ["../_prove/page/page.css", "page.css"],
        headline=lines[0].partition("  ")[2],
        look={"done": "better", "taken_back": "worse"}.get(kept.outcome, "open"),
        facts=[line.strip() for line in [*lines[1:], *sentences.plan(kept.start)[1:]]],
        reasons=[sentence(reason) for reason in kept.held],
        batches=[_row(kept, batch) for batch in kept.batches],
        bars=[_bar(batch, first, last) for batch in kept.batches],
        span=[_time(first), _time(last)],
        plots=[plot for batch in kept.batches for plot in _plots(kept, batch)],
        lists=[(title, rows[:_MOST], len(rows[_MOST:])) for title, rows in lists.items() if rows],
        width=WIDTH,
        height=HEIGHT,
        left=_LEFT,
    )


def _row(kept: Record, batch: Batch) -> Dict[str, Any]:
    figures = [sentences.figure(data) for data in batch.judgment.get("figures", ())]
    return {
        "number": batch.number,
        "hosts": batch.end - batch.begin,
        "tuned": _time(batch.tuned),
        "looks": f"{len(batch.before)} before, {len(batch.after)} after",
        "decision": sentences.word(kept, batch),
        "look": _LOOKS.get(batch.decision, "open"),
        "why": sentences.few([*figures, *(sentence(reason) for reason in batch.judgment.get("reasons", ()))]),
    }


def _time(when: float) -> str:
    return time.strftime("%d %b %Y %H:%M UTC", time.gmtime(when)).lstrip("0") if when else ""


def _end(batch: Batch) -> float:
    return float(batch.judgment.get("at") or batch.asked or batch.tuned or batch.tuning or batch.began)


def _bar(batch: Batch, first: float, last: float) -> List[Tuple[str, float, float]]:
    """What a batch did when, in percent of the width: watched before, tuned, watched after."""
    ends = [batch.began, batch.tuning, batch.tuned, _end(batch) if batch.tuned else 0.0]
    at = [100 * (max(end, batch.began) - first) / max(1.0, last - first) for end in ends]
    parts = zip(("before", "tuning", "after"), at, at[1:])
    return [(name, round(begin, 2), round(max(0.4, end - begin), 2)) for name, begin, end in parts if end > begin]


def _plots(kept: Record, batch: Batch) -> List[Dict[str, Any]]:
    watch = kept.watch(batch)
    compares = len(watch.after) > 1 and watch.before and watch.tuned < len(watch.strata)
    figures = {figure["name"]: figure for figure in batch.judgment.get("figures", ()) if figure["change"] is not None}
    return [_plot(watch, batch, figure) for figure in figures.values() if compares]


def _plot(watch: Watch, batch: Batch, figure: Dict[str, Any]) -> Dict[str, Any]:
    """One metric of one batch, in percent of what it was before, at each look, and the interval at the end."""
    name = figure["name"]
    sides = _changes(watch, name)
    end = sides[1][-1] if sides[1] else 0.0
    low, high = (end + (figure["change"] if figure[side] is None else figure[side]) for side in ("low", "high"))
    reach = 1.15 * max(1.0, *(abs(value) for value in (*sides[0], *sides[1], low, high)))

    def y(value: float) -> float:
        return float(round(_EDGE + (reach - value) / (2 * reach) * (HEIGHT - 2 * _EDGE), 1))

    def points(values: Sequence[float]) -> str:
        step = (WIDTH - _LEFT - 2 * _EDGE) / max(1, len(values) - 1)
        return " ".join(f"{_LEFT + place * step:.1f},{y(value)}" for place, value in enumerate(values))

    level = float(f"{reach / 1.5:.1g}")
    return {
        "title": f"batch {batch.number}, {sentences.figure(figure)}",
        "tuned": points(sides[0]),
        "waiting": points(sides[1]),
        "interval": (y(high), y(low)),
        "levels": [(y(value), f"{value:+g} %".replace("-", "−") if value else "0 %") for value in (level, 0.0, -level)],
        "says": f"{name} in percent of what it was before, at each of {len(watch.after)} looks, tuned and waiting",
    }


def _changes(watch: Watch, name: str) -> Tuple[List[float], List[float]]:
    """The median change of tuned hosts and of those that wait at each look, in percent."""
    log = logarithm([*watch.before, *watch.after[:1]], name)
    before = means(watch.before, name, log, len(watch.strata))
    sides: Tuple[List[float], List[float]] = ([], [])
    for look in watch.after:
        changes = [
            None if old is None or new is None else log(new) - old for old, new in zip(before, look.get(name, ()))
        ]
        for side, part in zip(sides, (changes[: watch.tuned], changes[watch.tuned :])):
            known = [change for change in part if change is not None]
            side.extend([percent(median(known))] if known else [])
    return sides
