# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdicts of several hosts as one map, and their combined evidence. Pure. PRIVATE to the collection."""

from __future__ import annotations

import math
import os
from collections import Counter
from statistics import mean
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from urllib.parse import quote

from ...module_utils._prove.statistics.evidence import NEEDED, path
from ...module_utils._prove.statistics.interval import bounds, estimate, percent
from ...module_utils._prove.statistics.metrics import SMALLER
from ...module_utils._prove.statistics.settings import MULTIPLY
from .._clean import NAME, text
from .._columns import Paint, clip, led, pad, width
from . import figures

MARKS = {"better": "▲", "worse": "▼", "same": "=", "unsafe": "✗", "failed": "✗", "unreachable": "✗"}
_COLORS = {"better": "green", "worse": "red", "unsafe": "red", "failed": "red", "unreachable": "red", "same": "blue"}
_LARGEST_LOGARITHM = 700.0  # beyond it the product overflows a float
_WIDEST_NAME = 40  # columns of a host's name
NONE = "–"
_TITLE = "PROVE  "


class CombinedEvidence(NamedTuple):
    """The combined evidence of all hosts about the metric that decides, if the effect is the same on each."""

    hosts: int
    metric: str
    change: float  # percent
    low: Optional[float]
    high: Optional[float]
    evidence: float
    method: str  # multiply | average
    left_out: int  # hosts whose pairs guards biased


class Host(NamedTuple):
    """One host's result."""

    name: str
    verdict: str  # or failed, unreachable
    kept: bool
    metrics: Sequence[Mapping[str, Any]]
    differences: Sequence[float]
    method: str
    selected: bool = False  # whether guards biased the pairs that count
    compared: Tuple[str, ...] = ()  # the load, the tuning to compare with, and the settings
    message: str = ""  # why there is no verdict
    page: str = ""  # the file name of its own report


def host_of(name: str, result: Mapping[str, Any], failure: str = "") -> Optional[Host]:
    """The host's row in the map; None if its task compared nothing. `failure` is failed or unreachable, or empty."""
    verdict = result.get("verdict")
    if failure and not isinstance(verdict, Mapping):  # a verdict of prove_fail_on is a verdict
        return Host(text(name, NAME), failure, False, (), (), "", message=text(result.get("msg", "")))
    if not isinstance(verdict, Mapping):
        return None
    pages = [os.path.basename(str(path)) for path in result.get("reports", ()) if str(path).endswith(".html")]
    # A load that contains the host's name counts as the same load on every host.
    load = str(result.get("load", "")).replace(name, "{host}")
    return Host(
        name=text(name, NAME),
        verdict=str(verdict["verdict"]),
        kept=result.get("kept") is True,
        metrics=verdict["metrics"],
        differences=verdict["differences"],
        method=str(verdict["several"]),
        selected=verdict["selection"],
        compared=(load, str(result.get("against", "")), *sorted(map(str, result.get("tested", ())))),
        page=quote(pages[0]) if pages else "",
    )


def combine(hosts: Sequence[Host]) -> Optional[CombinedEvidence]:
    """The evidence of all hosts with pairs; None for fewer than two, or if they compared different things.

    Each host counts with the evidence after its last pair: peaks could not be multiplied or averaged.
    """
    measured = _usable_hosts(hosts)
    if len(measured) < 2 or len({_question(host) for host in measured}) != 1:
        return None
    runs, method = [host.differences for host in measured], measured[0].method
    name, better = (str(measured[0].metrics[0][field]) for field in ("name", "better"))

    def above(shift: float) -> float:
        return _combined_side([path(run, shift)[-1].above for run in runs], method)

    def below(shift: float) -> float:
        return _combined_side([path(run, shift)[-1].below for run in runs], method)

    differences = [difference for run in runs for difference in run]
    span = bounds(differences, lambda shift: above(shift) >= NEEDED, lambda shift: below(shift) >= NEEDED)
    sign = -1 if better == SMALLER else 1
    low, high = (span.low, span.high) if sign > 0 else (-span.high, -span.low)
    middle = max(low, min(high, sign * estimate([estimate(run) for run in runs])))
    ends = [percent(end) if math.isfinite(end) else None for end in (low, high)]
    left_out = sum(bool(host.differences) for host in hosts) - len(runs)
    return CombinedEvidence(
        len(runs), name, percent(middle), ends[0], ends[1], max(above(0.0), below(0.0)), method, left_out
    )


def _usable_hosts(hosts: Sequence[Host]) -> List[Host]:
    """The hosts with pairs, decided or not, except those whose pairs guards biased."""
    return [host for host in hosts if host.differences and not host.selected]


def _question(host: Host) -> Tuple[str, ...]:
    """What must be the same on all hosts whose evidence is combined."""
    return (host.method, *(str(host.metrics[0][field]) for field in ("name", "unit", "better")), *host.compared)


def _combined_side(sides: Sequence[float], method: str) -> float:
    """One side's evidence of all hosts; like that of each host, it begins at 1/2."""
    if method != MULTIPLY:
        return mean(sides)
    if not all(sides):
        return 0.0
    return math.exp(min(_LARGEST_LOGARITHM, sum(math.log(2 * side) for side in sides))) / 2


def lines(hosts: Sequence[Host], paint: Paint, columns: int = 120) -> List[str]:
    """The map: a row for each host, a column for each metric, and the combined evidence.

    If the terminal is too narrow for the columns, each figure has a line of its own below its host.
    """
    text_lines = led(_TITLE, f"{len(hosts)} hosts: {counted(hosts)}", columns)
    names: List[str] = list(dict.fromkeys(str(metric["name"]) for host in hosts for metric in host.metrics))
    rows = [["", "host", "verdict", *names], *([*_clipped_head(host), *_cells(host, names)] for host in hosts)]
    widths = [max(width(row[column]) for row in rows) for column in range(len(rows[0]))]
    stacked = sum(widths) + 2 * len(widths) > columns
    for row, verdict in zip(rows, ["", *(host.verdict for host in hosts)]):
        cells = row[:3] if stacked else row
        line = "  ".join(pad(cell, size) for cell, size in zip(cells, widths)).rstrip()
        color = _COLORS.get(verdict, "")
        text_lines.append(f"  {paint(line, color) if color else line}")
        if stacked and verdict:
            text_lines += [f"     {name}: {cell}" for name, cell in zip(names, row[3:]) if cell != NONE]
    return text_lines + (led("  ", closing(hosts), columns) if closing(hosts) else [])


def counted(hosts: Sequence[Host]) -> str:
    """How many hosts have each verdict."""
    counts = Counter(host.verdict for host in hosts)
    return ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items())


def closing(hosts: Sequence[Host]) -> str:
    """What all hosts show together, or why nothing is; empty for a single host with pairs."""
    common = combine(hosts)
    if common is not None:
        return _combined_line(common)
    if len(_usable_hosts(hosts)) > 1:
        return "not combined: the hosts had different loads, settings, figures or tunings to compare with"
    return ""


def head(host: Host) -> Tuple[str, str, str]:
    """The mark, the name and the verdict of a host, with what was done."""
    verdict = host.verdict.replace("_", " ") + (", kept" if host.kept else "")
    return MARKS.get(host.verdict, "?"), host.name, verdict


def _clipped_head(host: Host) -> Tuple[str, str, str]:
    mark, name, verdict = head(host)
    return mark, clip(name, _WIDEST_NAME), verdict


def _cells(host: Host, names: Sequence[str]) -> List[str]:
    by_name: Dict[str, Mapping[str, Any]] = {str(metric["name"]): metric for metric in host.metrics}
    return [_cell(by_name.get(name)) for name in names]


def _cell(metric: Optional[Mapping[str, Any]]) -> str:
    if metric is None or metric["change"] is None:
        return NONE
    return f"{figures.percent(metric['change'])} ({figures.interval(metric['low'], metric['high'])})"


def _combined_line(common: CombinedEvidence) -> str:
    if common.low is not None and common.high is not None and common.low > common.high:
        return f"combined, {common.metric} on {common.hosts} hosts: the effect differs from host to host"
    verb = "multiplied" if common.method == MULTIPLY else "averaged"
    left_out = (
        f"; {common.left_out} left out, because guards voided more pairs in one state than chance explains"
        if common.left_out
        else ""
    )
    evidence = f"evidence {figures.ratio(common.evidence)}, {verb} ({NEEDED:.0f}:1 is needed){left_out}"
    return (
        f"combined, {common.metric} on {common.hosts} hosts: {figures.percent(common.change)}"
        f" ({figures.interval(common.low, common.high)}), {evidence}"
    )
