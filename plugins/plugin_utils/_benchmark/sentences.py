# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read of a ranking. Pure. PRIVATE to the collection."""

from __future__ import annotations

import json
from typing import List, Sequence, Tuple

from ...module_utils._words import counted
from .._columns import Paint, clip, led, pad, width
from .ranking import Ranked, Ranking

_ENDS = 5  # hosts at each end of a longer ranking that a terminal shows
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_LONGEST_OPTIONS = 60
_LEAD = "RANKING  "


def title(ranking: Ranking) -> str:
    """`disk shape random_read on 10 m5.2xlarge: read_rate in 1/s, median of 5 runs on 2 days`"""
    hosts = len(ranking.hosts)
    unit = f" in {ranking.unit}" if ranking.unit else ""
    runs = "one run" if ranking.runs == 1 else f"median of {ranking.runs} runs on {counted(ranking.days, 'day')}"
    return f"{ranking.benchmark}{_chosen(ranking)} on {hosts} {ranking.instance_type}: {ranking.metric}{unit}, {runs}"


def _chosen(ranking: Ranking) -> str:
    """The options that aren't numbers, of which the shape is one."""
    try:
        options = json.loads(ranking.options)
    except ValueError:
        return ""
    words = [f"{name} {value}" for name, value in options.items() if isinstance(value, str)]
    return f" {clip(', '.join(words), _LONGEST_OPTIONS)}" if words else ""


def sentences(ranking: Ranking) -> List[str]:
    """Who is the odd one out, or why nobody is named."""
    if ranking.obstacle:
        return [ranking.obstacle]
    sisters = len(ranking.hosts) - 1
    number = _COUNTS[sisters] if sisters < len(_COUNTS) else f"{sisters:,}"
    odd = [_odd(host, ranking, number) for host in ranking.hosts if host.odd]
    odd = odd or ["none of them is the odd one out"]
    odd.append(f"a difference of {ranking.visible:.2g} % or more of a single host would have been seen")
    if ranking.left_out:
        names = ", ".join(ranking.left_out[:_ENDS]) + (" …" if len(ranking.left_out) > _ENDS else "")
        odd.append(f"too few runs for a place: {names}")
    return odd


def _odd(host: Ranked, ranking: Ranking, sisters: str) -> str:
    change, low, high = (abs(number or 0.0) for number in (host.change, host.low, host.high))
    smallest, largest = sorted((low, high))
    better = (host.change or 0.0) > 0
    alone = f"; it alone has {host.alone_with}" if host.alone_with else ""
    return (
        f"{host.host}: this {ranking.instance_type} is {change:.2g} % {'faster' if better else 'slower'}"
        f" ({smallest:.2g} to {largest:.2g}) than its {sisters} sisters{alone}"
    )


def lines(rankings: Sequence[Ranking], paint: Paint, columns: int) -> List[str]:
    """The rankings for a terminal."""
    text: List[str] = []
    for ranking in rankings:
        text += ["", *(paint(line, "bold") for line in led(_LEAD, title(ranking), columns))]
        rows = _rows(ranking)
        name_width = max((width(host.host) for _place, host in rows), default=0)
        before = 0
        for place, host in rows:
            text += ["  …"] if place != before + 1 else []
            before = place
            change = "" if host.change is None else f"  {host.change:+.1f} %"
            line = f"  {place:>3}  {pad(host.host, name_width)}  {host.value:.6g}{change}"
            text.append(paint(clip(line, columns), "red" if (host.change or 0) < 0 else "green") if host.odd else line)
        for sentence in sentences(ranking):
            text += led("  ", sentence, columns)
    return text


def _rows(ranking: Ranking) -> List[Tuple[int, Ranked]]:
    """Each host with its place; of a long ranking both ends, and every odd one."""
    placed = list(enumerate(ranking.hosts, 1))
    if len(placed) <= 2 * _ENDS + 2:
        return placed
    return [entry for entry in placed if entry[0] <= _ENDS or entry[0] > len(placed) - _ENDS or entry[1].odd]
