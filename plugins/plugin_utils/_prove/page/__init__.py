# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a run as a page: no script, no network, for a screen, paper or a reader. PRIVATE to the collection."""

from __future__ import annotations

from pathlib import Path

from ....module_utils._prove.statistics.history import history_of
from ....module_utils._prove.statistics.record import Record
from ....module_utils._prove.statistics.verdict import Verdict
from ..._page import fill
from .. import sentences
from . import plot

FOLDER = Path(__file__).parent


def render(record: Record, result: Verdict, ending: sentences.Ending) -> str:
    """The text of the page, in which the output of a load or a host is never markup."""
    history, settings = history_of(record), record.start.settings
    return fill(
        FOLDER / "page.html.j2",
        ["page.css"],
        host=record.start.host,
        headline=sentences.headline(result, ending),
        look=result.verdict,
        result=result,
        facts=sentences.facts(record, result, ending),
        columns=sentences.columns(record),
        rows=[sentences.row(record, metric) for metric in result.metrics],
        places=[sentences.place_cells(place) for place in record.start.places],
        void=[load for load in sentences.loads(record) if load[-1]],
        parts=sentences.parts(result),
        plots=[plot.plot_of(history, settings, metric) for metric in result.metrics if result.pairs],
        margin=settings.margin,
        width=plot.WIDTH,
        height=plot.HEIGHT,
        scope=sentences.SCOPE,
    )
