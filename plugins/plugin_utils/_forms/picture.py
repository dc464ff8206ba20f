# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of a host in report.html, as data that report.js shows. PRIVATE to the collection."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Callable, Iterable, List, Sequence, Tuple

from ...module_utils._agent.picture.drawing import text
from ...module_utils._agent.picture.host import panels
from ...module_utils._agent.picture.scene import Row, Scene, place_words, scene_of, summary, work

_MOST_NAMED = 8  # CPUs in a row of words


def figure(layout: Row, queue_map: Sequence[Row], place: Callable[[str], int]) -> List[Any]:
    """Both states of a host, or one if they are the same, and what becomes of each queue; texts by their places."""
    scenes = [scene_of(layout, queue_map, state)._replace(queues={}) for state in ("now", "wanted")]
    states = [("now", scenes[0])]
    states += [("after this run", scenes[1])] if scenes[0].duties != scenes[1].duties else []
    parts = [text(summary(scenes[0]), "muted"), *panels(states)]
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
