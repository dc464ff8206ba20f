# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdicts of several hosts as a page: a row for each host, a cell for each figure. PRIVATE to the collection."""

from __future__ import annotations

import math
import os
import time
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from ....module_utils._prove.statistics.metrics import LARGER
from ....module_utils._prove.statistics.rules import BETTER, SAME, UNCLEAR, WORSE
from ..._files import make_folder, writing
from ..._files import write as write_file
from ..._page import fill
from .. import figures, host_map
from . import FOLDER

_DECIDED = (BETTER, WORSE, SAME, UNCLEAR)  # verdicts by the figures; what voids or stops a run makes them worthless
_STRONG = (5.0, 20.0)  # percent from which a change has a darker shade


class Cell(NamedTuple):
    """One figure of one host."""

    look: str  # better | worse | same | open | none
    shade: int  # 1 to 3
    mark: str
    change: str
    interval: str


class Row(NamedTuple):
    """One host."""

    host: host_map.Host
    mark: str
    verdict: str
    cells: Sequence[Cell]


class Figure(NamedTuple):
    """The head of a column."""

    name: str
    about: str  # the unit, and which direction is better


def write(directory: str, hosts: Sequence[host_map.Host], now: float) -> str:
    """Write the page beside the records, below the report directory; its path. Raises NearmetalError."""
    path = os.path.join(directory, "prove", time.strftime("hosts-%Y%m%dT%H%M%SZ.html", time.gmtime(now)))
    with writing(f"the report {path}"):
        make_folder(path)
        return write_file(path, render(hosts, now))


def render(hosts: Sequence[host_map.Host], now: float) -> str:
    """The text of the page, in which nothing that a host reported is markup."""
    figures = _figures(hosts)
    return fill(
        FOLDER / "heat_map.html.j2",
        ["page.css", "heat_map.css"],
        count=len(hosts),
        counted=host_map.counted(hosts),
        closing=host_map.closing(hosts),
        figures=figures,
        rows=[_row(host, figures) for host in hosts],
        ended=time.strftime("%d %b %Y %H:%M UTC", time.gmtime(now)).lstrip("0"),
    )


def _figures(hosts: Sequence[host_map.Host]) -> List[Figure]:
    figures = {str(metric["name"]): metric for host in hosts for metric in host.metrics}
    return [
        Figure(name, ", ".join(filter(None, (str(metric["unit"]), f"{metric['better']} is better"))))
        for name, metric in figures.items()
    ]


def _row(host: host_map.Host, figures: Sequence[Figure]) -> Row:
    by_name = {str(metric["name"]): metric for metric in host.metrics}
    mark, _name, verdict = host_map.head(host)
    return Row(host, mark, verdict, [_cell(host, by_name.get(figure.name)) for figure in figures])


def _cell(host: host_map.Host, metric: Optional[Mapping[str, Any]]) -> Cell:
    if metric is None or metric["change"] is None:
        return Cell("none", 1, host_map.NONE, "not measured", "")
    change = float(metric["change"])
    look = _look(host, metric)
    return Cell(
        look,
        1 + sum(abs(change) >= strong for strong in _STRONG),
        host_map.MARKS.get(look, "?"),
        figures.percent(change),
        figures.interval(metric["low"], metric["high"]),
    )


def _look(host: host_map.Host, metric: Mapping[str, Any]) -> str:
    """What the interval says; open where it excludes neither a gain nor a loss, or where guards biased the pairs."""
    low = -math.inf if metric["low"] is None else metric["low"]
    high = math.inf if metric["high"] is None else metric["high"]
    if host.verdict not in _DECIDED or host.selected or low > high:
        return "open"
    if low > 0 or high < 0:
        return BETTER if (low > 0) == (metric["better"] == LARGER) else WORSE
    return SAME if host.verdict == SAME and metric["primary"] else "open"
