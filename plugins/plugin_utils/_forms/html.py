# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.html: one file that needs no network, for a browser, a printer or a screen reader.

Nothing that a host reported is ever markup or script: only the page's own style and script are allowed, by their
hashes, the data is in a block that no browser runs, and the script only sets text.
PRIVATE to the collection.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from markupsafe import Markup

from ...module_utils._agent.picture.drawing import text
from ...module_utils._agent.picture.host import panels
from ...module_utils._agent.picture.scene import Row, Scene, place_words, scene_of, work
from ...module_utils._agent.picture.scene import summary as summary_of_scene
from ...module_utils._words import span
from .._benchmark import sentences
from .._page import data as data_of_page
from .._page import fill
from .._prove import figures
from .._report import commands, model, summary, worth
from .._report.headings import BY_NAME, LOOKS, ORDER, OTHER, under_headings, worst
from .._report.model import HostReport, Report, ReportedFinding, plural
from .sources import links

DRIFT = 200
_MOST_NAMED = 8  # CPUs in a row of words
_Costs = Mapping[Tuple[str, str], str]  # concern and knob → what a change costs


def render(report: Report) -> str:
    """The text of report.html, the hosts with most to do first."""
    report = replace(report, hosts=tuple(sorted(report.hosts, key=lambda host: -_changes(host))))
    concerns, tops = summary.concerns_of(report), summary.top_findings(report)
    everything, without = summary.everything(report)
    return fill(
        Path(__file__).with_name("report.html.j2"),
        ["report.css", "picture.css", "paper.css"],
        ["report.js"],
        breakable=_breakable,
        command=_command,
        data=_data(report, concerns),
        report=report,
        run=report.run,
        counts=summary.counts_line(report),
        verdict=worth.verdict(report),
        worth=worth.WORTH,
        risk=worth.RISK,
        everything=everything if commands.preview(everything) else "",
        without=without,
        preview=commands.preview,
        links=links,
        looks=BY_NAME,
        totals=summary.status_totals(report),
        headings=_headings(report, concerns) if not report.restores else [],
        tops_title=summary.tops_title(report, tops),
        tops=tops[: summary.TOPS],
        tops_left=len(tops) - summary.TOPS,
        drift=report.drift["changes"][:DRIFT] if report.drift else [],
        drift_left=len(report.drift["changes"]) - DRIFT if report.drift else 0,
        is_command=commands.is_command,
        left_out=summary.left_out(report),
        all_clear=summary.all_clear,
        span=span,
        plural=plural,
        ranking_title=sentences.title,
        ranking_says=sentences.sentences,
    )


def _breakable(name: str) -> Markup:
    """A name that a narrow page breaks between its words alone."""
    return Markup("<wbr>").join(re.findall(r"[^._]+[._]*|[._]+", name))


def _command(text: str) -> Markup:
    """A command that a narrow page breaks between its words, not behind the hyphens of an option."""
    return Markup(" ").join(Markup("<span class='word'>{}</span>").format(word) for word in text.split(" "))


def _headings(report: Report, concerns: List[str]) -> List[Dict[str, Any]]:
    """The nine headings, each with the number of hosts per status."""
    tiles = []
    for heading, under_heading in under_headings(concerns):
        count = Counter(worst(filter(None, summary.cells(host, under_heading))) for host in report.hosts)
        counts = [(status, count[status]) for status in sorted(filter(None, count), key=ORDER.__getitem__)]
        if heading != OTHER:
            # A host's platform facts answer the first heading as far as a host can.
            kinds = Counter(str(host.platform.get("host_class") or "") for host in report.hosts)
            classes = (
                [f"{number:,} {kind}" for kind, number in kinds.most_common() if kind] if heading.number == 1 else []
            )
            tiles.append(
                {
                    "heading": heading,
                    "concerns": under_heading,
                    "bar": _bar(counts),
                    "found": counts,
                    "classes": " · ".join(classes),
                }
            )
    return tiles


def _bar(counts: List[Tuple[str, int]]) -> List[Tuple[str, float, float]]:
    """Status, left edge and width in percent."""
    whole = sum(count for _status, count in counts)
    parts, edge = [], 0.0
    for status, count in counts:
        parts.append((status, round(edge, 3), round(100 * count / whole, 3)))
        edge += 100 * count / whole
    return parts


class _Pool:
    """Stores each text once: a thousand hosts report the same few sentences."""

    def __init__(self) -> None:
        self.places: Dict[str, int] = {"": 0}

    def add(self, text: Any) -> int:
        return self.places.setdefault(str(text), len(self.places))


def _data(report: Report, concerns: List[str]) -> Markup:
    """The data that report.js reads, as JSON."""
    pool, pictures = _Pool(), _Pool()
    place = {concern: number for number, concern in enumerate(concerns)}
    hosts = [_host(host, concerns, place, pool, pictures, report.restores) for host in report.hosts]
    parts = [json.loads(picture or "[null, null]") for picture in pictures.places]
    drawn = [layout and figure(layout, queue_map, pool.add) for layout, queue_map in parts]
    plain = {
        "statuses": [[look.name, look.mark, look.words] for look in LOOKS],
        "many": worth.MANY,
        "changes": {"tune": "changed", "restore": "given back"}.get(report.run.mode, "to change"),
        "now": "Before" if report.run.mode == "tune" or (report.restores and not report.run.checked) else "Now",
        "kept": "Taken away:" if report.restores else "Kept over reboots by",
        "worth": list(worth.WORTH.values()),
        "risk": list(worth.RISK.values()),
        "concerns": concerns,
        "headings": [
            [heading.number if heading != OTHER else "", heading.title, [place[concern] for concern in under]]
            for heading, under in under_headings(concerns)
            if under
        ],
        "hosts": _with_trend(report, hosts),
        "past": [past.finished for past in report.past],
        "texts": list(pool.places),
        "pictures": drawn,
        # Only addresses that this project knows: nothing that a host reported becomes one.
        "sources": {
            name: url
            for reference in {finding.reference for host in report.hosts for finding in host.findings}
            for name, url in links(reference)
            if url
        },
    }
    return data_of_page(plain)


def _with_trend(report: Report, plain: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The hosts with `trend`: status → findings in each earlier audit, null where the host was not in it, and now."""
    for host, data in zip(report.hosts, plain):
        now = worth.counts(host) if host.state == model.REPORTED else None
        all_counts = [*(past.hosts.get(host.name) for past in report.past), now]
        statuses = sorted({status for counts in all_counts if counts for status in counts}, key=ORDER.__getitem__)
        data["trend"] = [
            [ORDER[status], [None if counts is None else counts.get(status, 0) for counts in all_counts]]
            for status in (statuses if report.past else ())
        ]
    return plain


def _host(
    host: HostReport, concerns: List[str], place: Dict[str, int], pool: _Pool, pictures: _Pool, restores: bool
) -> Dict[str, Any]:
    costs = None if restores else worth.risks_of(host)
    rows = [
        [
            place[finding.concern],
            pool.add(finding.knob),
            pool.add(finding.place),
            ORDER[finding.status],
            pool.add(summary.show(finding.now, 400)),
            pool.add(summary.show(finding.wanted, 400)),
            pool.add(finding.reason),
            pool.add(finding.reference),
            pool.add(finding.gain),
            pool.add(finding.owner),
            int(finding.upkeep),
            *_worth(host, finding, costs),
        ]
        for finding in host.rows
    ]
    return {
        "name": host.name,
        "state": pool.add(host.state),
        "trouble": pool.add(summary.trouble(host)),
        "platform": pool.add(host.about),
        "type": pool.add(host.platform.get("instance_type") or host.platform.get("host_class") or ""),
        "kernel": pool.add(host.platform.get("kernel") or ""),
        "workload": pool.add(host.workload),
        "changes": _changes(host),
        "proof": pool.add(_proof(host)),
        "family": pool.add(host.family),
        "groups": [pool.add(group) for group in host.groups],
        "reboot": pool.add("; ".join(host.reboot_reasons)),
        "notes": [pool.add(note) for note in host.notes],
        "sizing": [pool.add(line) for line in host.sizing],
        "commands": [pool.add(line) for line in host.commands],
        "cells": [ORDER[status] if status else -1 for status in summary.cells(host, concerns)],
        # Hosts that look alike share what is drawn of them.
        "picture": pictures.add(
            json.dumps([host.topology, host.queue_map], ensure_ascii=False) if host.topology else ""
        ),
        "rows": rows,
    }


def _changes(host: HostReport) -> int:
    """How many settings a host has to change; -1 where nobody knows."""
    return len(worth.to_tune(host)) if host.state == model.REPORTED else -1


def _worth(host: HostReport, finding: ReportedFinding, costs: Optional[_Costs]) -> Tuple[int, int]:
    """The places of a change's worth and risk in their lists; -1 for what changes nothing, or only gives back."""
    if costs is None or finding.status not in worth.CHANGES or finding.upkeep:
        return -1, -1
    risk = list(worth.RISK).index(worth.risk_of(finding, costs))
    return list(worth.WORTH).index(worth.worth_of(host, finding)), risk


def _proof(host: HostReport) -> str:
    """The last verdict of prove in a few words."""
    if not host.proven:
        return ""
    date = time.strftime("%Y-%m-%d", time.gmtime(host.proven["ended"]))
    change = "" if host.proven["change"] is None else f" {figures.percent(host.proven['change'])}"
    return f"{host.proven['verdict'].replace('_', ' ')}{change}, {date}"


def figure(layout: Row, queue_map: Sequence[Row], place: Callable[[str], int]) -> List[Any]:
    """Both states of a host, or one if they are the same, and what becomes of each queue; texts by their places."""
    scenes = [scene_of(layout, queue_map, state)._replace(queues={}) for state in ("now", "wanted")]
    states = [("now", scenes[0])]
    states += [("after this run", scenes[1])] if scenes[0].duties != scenes[1].duties else []
    parts = [text(summary_of_scene(scenes[0]), "muted"), *panels(states)]
    said = [(f"{nic['name']}{place_words(nic)}", line) for nic in queue_map for line in changes(scenes[0], nic)]
    lines = [[place(where), place(line)] for where, line in said]
    return [[part.plain(place) for part in parts], lines]


def changes(scene: Scene, nic: Row) -> Iterable[str]:
    """`2 queues: any CPU → CPUs 0 and 1`; neighbors that say the same, or get one CPU each, are one line.

    Commas are within lists of CPUs alone, and an arrow is a change.
    """
    rows = [_said(scene, nic, row) for row in nic["queues"]]
    groups = [list(group) for _said_alike, group in groupby(rows, key=lambda row: row[1:3])]
    for group in groups:
        first, last, (_queue, said, moves, _cpu) = group[0][0], group[-1][0], group[0]
        which = f"queue {first}" if first == last else f"queues {first}–{last}"
        which = f"{len(rows)} queues" if first != last and len(groups) == 1 else which
        yield f"{which}: {said}{f' → {_listed([row[3] for row in group])}' if moves else ''}"


def _said(scene: Scene, nic: Row, row: Row) -> Tuple[int, str, bool, int]:
    """A queue, what is said of it, and whether it moves to a single CPU, which is said apart."""
    now, wanted = (work(scene, nic, row[state]) for state in ("now", "wanted"))
    if now == wanted:
        return row["queue"], f"{now}, stays", False, 0
    _word, _space, cpu = wanted.partition("CPU ")
    return (row["queue"], now, True, int(cpu)) if cpu.isdigit() else (row["queue"], f"{now} → {wanted}", False, 0)


def _listed(cpus: Sequence[int]) -> str:
    first, last = cpus[0], cpus[-1]
    if len(set(cpus)) == 1:
        return f"CPU {first}"
    if len(cpus) > 2 and list(cpus) == list(range(first, first + len(cpus))):
        return f"CPUs {first}–{last}, one each"
    if len(cpus) > _MOST_NAMED:
        return f"{len(cpus)} CPUs, one each"
    return f"CPUs {', '.join(map(str, cpus[:-1]))} and {last}"
