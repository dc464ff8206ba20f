# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdicts of several hosts as one map, and what they say together. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
from statistics import mean
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.evidence import NEEDED, path
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.interval import bounds, estimate, percent
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.metrics import SMALLER
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.settings import MULTIPLY
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._proof import words
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.clean import NAME, text
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._terminal.layout import clip, pad, width, wrap

Paint = Callable[[str, str], str]
_MARKS = {"better": "▲", "worse": "▼", "same": "=", "unsafe": "✗", "failed": "✗", "unreachable": "✗"}
_COLORS = {"better": "green", "worse": "red", "unsafe": "red", "failed": "red", "unreachable": "red", "same": "blue"}
_MOST = 700.0  # as a logarithm: beyond it a product is no number for a computer
_WIDEST = 40  # columns of a host's name
_NONE = "–"
_TITLE = "PROVE  "


class Together(NamedTuple):
    """What all hosts say of the metric that decides, if the effect is the same on each of them."""

    hosts: int
    metric: str
    change: float  # percent
    low: Optional[float]
    high: Optional[float]
    evidence: float
    how: str  # multiply | average
    left_out: int  # hosts whose pairs are a selection


class Host(NamedTuple):
    """One host's result."""

    name: str
    verdict: str  # or failed, unreachable
    kept: bool
    metrics: Sequence[Mapping[str, Any]]
    differences: Sequence[float]
    how: str
    selected: bool = False  # whether the pairs that count are a selection
    compared: Tuple[str, ...] = ()  # the load, the tuning to compare with, and the settings


def host_of(name: str, result: Mapping[str, Any], lost: str = "") -> Optional[Host]:
    """The host's part in the map; None where its task compared nothing. `lost` says so of one without a verdict."""
    found = result.get("verdict")
    if lost:
        return Host(text(name, NAME), lost, False, (), (), "")
    if not isinstance(found, Mapping):
        return None
    # A load that names its host is the same load on another.
    load = str(result.get("load", "")).replace(name, "{host}")
    return Host(
        name=text(name, NAME),
        verdict=str(found["verdict"]),
        kept=result.get("kept") is True,
        metrics=found["metrics"],
        differences=found["differences"],
        how=str(found["several"]),
        selected=found["selection"],
        compared=(load, str(result.get("against", "")), *sorted(map(str, result.get("tested", ())))),
    )


def together(hosts: Sequence[Host]) -> Optional[Together]:
    """The evidence of all hosts with pairs; None of fewer than two, or where they compared different things.

    Of each host it is that of its last pair: the most that it ever had could not be multiplied or averaged.
    """
    measured = _measured(hosts)
    if len(measured) < 2 or len({_kind(host) for host in measured}) != 1:
        return None
    runs, how = [host.differences for host in measured], measured[0].how
    name, better = (str(measured[0].metrics[0][field]) for field in ("name", "better"))

    def above(shift: float) -> float:
        return _combined([path(run, shift)[-1].above for run in runs], how)

    def below(shift: float) -> float:
        return _combined([path(run, shift)[-1].below for run in runs], how)

    every = [difference for run in runs for difference in run]
    span = bounds(every, lambda shift: above(shift) >= NEEDED, lambda shift: below(shift) >= NEEDED)
    sign = -1 if better == SMALLER else 1
    low, high = (span.low, span.high) if sign > 0 else (-span.high, -span.low)
    middle = max(low, min(high, sign * estimate([estimate(run) for run in runs])))
    ends = [percent(end) if math.isfinite(end) else None for end in (low, high)]
    left_out = sum(bool(host.differences) for host in hosts) - len(runs)
    return Together(len(runs), name, percent(middle), ends[0], ends[1], max(above(0.0), below(0.0)), how, left_out)


def _measured(hosts: Sequence[Host]) -> List[Host]:
    """The hosts whose pairs say something of the tuning: decided or not, but no selection."""
    return [host for host in hosts if host.differences and not host.selected]


def _kind(host: Host) -> Tuple[str, ...]:
    """What has to be the same on all hosts, so that a single effect can be."""
    return (host.how, *(str(host.metrics[0][field]) for field in ("name", "unit", "better")), *host.compared)


def _combined(sides: Sequence[float], how: str) -> float:
    """One side's evidence of all hosts; each begins at 1/2, and so does what comes of them."""
    if how != MULTIPLY:
        return mean(sides)
    if not all(sides):
        return 0.0
    return math.exp(min(_MOST, sum(math.log(2 * side) for side in sides))) / 2


def lines(hosts: Sequence[Host], paint: Paint, columns: int = 120) -> List[str]:
    """The map: a row for each host, a column for each metric, and what they say together.

    Where the columns of the terminal don't suffice, each figure has a line of its own below its host.
    """
    counts = {host.verdict: 0 for host in hosts}
    for host in hosts:
        counts[host.verdict] += 1
    said = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items())
    first, *rest = wrap(f"{len(hosts)} hosts: {said}", columns - len(_TITLE))
    found = [_TITLE + first, *(" " * len(_TITLE) + line for line in rest)]
    names: List[str] = list(dict.fromkeys(str(metric["name"]) for host in hosts for metric in host.metrics))
    rows = [["", "host", "verdict", *names], *([*_head(host), *_cells(host, names)] for host in hosts)]
    widths = [max(width(row[column]) for row in rows) for column in range(len(rows[0]))]
    below = sum(widths) + 2 * len(widths) > columns
    for row, verdict in zip(rows, ["", *(host.verdict for host in hosts)]):
        beside = row[:3] if below else row
        line = "  ".join(pad(cell, size) for cell, size in zip(beside, widths)).rstrip()
        color = _COLORS.get(verdict, "")
        found.append(f"  {paint(line, color) if color else line}")
        if below and verdict:
            found += [f"     {name}: {cell}" for name, cell in zip(names, row[3:]) if cell != _NONE]
    common = together(hosts)
    together_said = ""
    if common is not None:
        together_said = _together(common)
    elif len(_measured(hosts)) > 1:
        together_said = "not put together: the hosts had different loads, settings, figures or tunings to compare with"
    found += [f"  {line}" for line in wrap(together_said, columns - 2) if line]
    return found


def _head(host: Host) -> Tuple[str, str, str]:
    verdict = host.verdict.replace("_", " ") + (", kept" if host.kept else "")
    return _MARKS.get(host.verdict, "?"), clip(host.name, _WIDEST), verdict


def _cells(host: Host, names: Sequence[str]) -> List[str]:
    by_name: Dict[str, Mapping[str, Any]] = {str(metric["name"]): metric for metric in host.metrics}
    return [_cell(by_name.get(name)) for name in names]


def _cell(metric: Optional[Mapping[str, Any]]) -> str:
    if metric is None or metric["change"] is None:
        return _NONE
    return f"{words.percent(metric['change'])} ({words.interval(metric['low'], metric['high'])})"


def _together(common: Together) -> str:
    if common.low is not None and common.high is not None and common.low > common.high:
        return f"together, {common.metric} on {common.hosts} hosts: no single effect explains them, the hosts differ"
    verb = "multiplied" if common.how == MULTIPLY else "averaged"
    rest = f"; {common.left_out} left out, whose pairs are a selection" if common.left_out else ""
    ratio = f"{common.evidence:.3g}:1" if common.evidence <= 100000 else "more than 100000:1"
    return (
        f"together, {common.metric} on {common.hosts} hosts: {words.percent(common.change)}"
        f" ({words.interval(common.low, common.high)}), evidence {ratio}, {verb} ({NEEDED:.0f}:1 is needed){rest}"
    )
