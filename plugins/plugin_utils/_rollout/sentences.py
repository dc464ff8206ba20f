# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout says: its plan, its line of progress, its decisions, its end. Pure. PRIVATE to the collection."""

from __future__ import annotations

import json
import shlex
import time
from typing import Any, List, Mapping

from ...module_utils._words import counted, plain, sentence, span
from .._files import short_path
from .decision import BACK, GO_ON, HOLD, so_far
from .metrics import Values
from .record import Batch, Record

TITLE = "ROLLOUT"
WORDS = {GO_ON: "goes on", HOLD: "holds", BACK: "goes back", "": "not decided"}
OUTCOMES = {"done": "done", "held": "held", "taken_back": "taken back", "": "not over"}
_MOST_LINES = 10
_MOST_NAMES = 5


def plan(start: Mapping[str, Any], first: int = 0) -> List[str]:
    """The batches that are left."""
    ends = start["ends"]
    sizes = [end - begin for begin, end in zip([0, *ends], ends)]
    rest = len(start["hosts"]) - ends[-1]
    names = ", ".join(name for name, _better, _margin in start["settings"]["metrics"])
    metrics = f"metrics: {names}" if names else "no metrics, guards alone decide"
    strata = len(set(start["strata"]))
    return [
        f"{TITLE}  {counted(len(start['hosts']), 'host')} in {'1 stratum' if strata == 1 else f'{strata} strata'}"
        f", batches of {', '.join(map(str, sizes[first:]))}" + (f"; {rest} stay as they are" if rest else ""),
        f"  {metrics}; seed {start['settings']['seed']}",
    ]


def preview(
    start: Mapping[str, Any], first: int, tried: Mapping[str, Values], target: str, drawn: bool = True
) -> List[str]:
    """The plan with the hosts of each batch, how long each takes, and what metrics say now of a few hosts.

    `drawn` unless it goes on with a record: another run draws the same by the seed alone.
    """
    ends, options, settings = start["ends"], start["options"], start["settings"]
    hosts = [start["hosts"][begin:end] for begin, end in zip([0, *ends], ends)][first:]
    batches = [f"batch {first + number}: {plain(span(names, _MOST_NAMES))}" for number, names in enumerate(hosts, 1)]
    before, most = (options["before"], options["watch_at_most"]) if settings["metrics"] else (0, options["watch"])
    times = f"watched for {_duration(before)} before its tuning and for {_duration(options['watch'])}"
    lines = [f"each batch is {times}, at most {_duration(max(most, options['watch']))}, after it"]
    for name, values in tried.items():
        said = [f"{plain(host)} {'no value' if value is None else f'{value:g}'}" for host, value in values.items()]
        lines.append(f"{name} now: {', '.join(said)}")
    wanted = f" -e {shlex.quote(json.dumps({'target': target}))}" if target else ""
    lines.append(f"what each host would get: ansible-playbook nearmetal.ec2.tune --check{wanted}")
    seed = [f"these hosts in these batches: add -e rollout_seed={settings['seed']}, or they are drawn anew"]
    return [*plan(start, first), *(f"  {line}" for line in (*few(batches), *(seed if drawn else ()), *lines))]


def _duration(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.3g} min"


def progress(kept: Record, batch: Batch) -> str:
    """One line: the batch, the looks so far, the time left at most, what the metrics say so far."""
    settings, interval = kept.settings, kept.start["options"]["interval"]
    if not batch.tuned:
        return f"{TITLE}  batch {batch.number} of {len(kept.start['ends'])}: look {len(batch.before) + 1} before it"
    changes = [f"{name} {signed(change)} %" for name, change in so_far(settings, kept.watch(batch)).items()]
    said = f"; so far {', '.join(changes)}" if changes else ""
    left = (settings.looks if len(batch.after) < settings.looks else settings.most_looks) - len(batch.after)
    return (
        f"{TITLE}  batch {batch.number} of {len(kept.start['ends'])}"
        f", {len(kept.tuned())} of {counted(len(kept.hosts), 'host')} tuned, look {len(batch.after) + 1}"
        f", {time.strftime('%H:%M:%S', time.gmtime(max(0.0, left * interval)))} left to decide{said}"
    )


def decision(kept: Record, batch: Batch) -> List[str]:
    """What was decided on a batch, and why."""
    head = f"{TITLE}  batch {batch.number} of {len(kept.start['ends'])}: {word(kept, batch)}"
    return [head, *(f"  {line}" for line in few([figure(data) for data in batch.judgment["figures"]]))] + [
        f"  {sentence(reason)}" for reason in few(batch.judgment["reasons"])
    ]


def word(kept: Record, batch: Batch) -> str:
    """The decision on a batch in a word or two."""
    last = batch.number == len(kept.start["ends"]) and batch.decision == GO_ON
    return "stays" if last else WORDS[batch.decision]


def held(kept: Record, number: int) -> List[str]:
    return [f"{TITLE}  batch {number} of {len(kept.start['ends'])} doesn't begin", *(f"  {line}" for line in kept.held)]


def few(lines: List[str]) -> List[str]:
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"and {len(lines) - _MOST_LINES} more"]


def figure(data: Mapping[str, Any]) -> str:
    """One metric: its change with its interval."""
    if data["change"] is None:
        return f"{data['name']}: of no host known both before and after"
    low, high = ("?" if data[end] is None else signed(data[end]) for end in ("low", "high"))
    interval = "too few hosts for an interval" if low == high == "?" else f"{low} to {high}"
    hosts = f"{counted(data['tuned'], 'tuned host')} against {data['waiting']} that wait"
    return f"{data['name']}: {signed(data['change'])} % ({interval}), {data['better']} is better; {hosts}"


def signed(percent: float) -> str:
    """A change in percent, with the sign of a minus."""
    return f"{percent:+.1f}".replace("-", "−")


def why(kept: Record) -> str:
    """How a run ended, and why, in one sentence; that a batch may go on is no reason why a rollout isn't over."""
    reasons = kept.held or (kept.batches[-1].judgment.get("reasons", ()) if kept.outcome and kept.batches else ())
    return sentence(": ".join(filter(None, (f"rollout {OUTCOMES[kept.outcome]}", "; ".join(few(list(reasons)))))))


def end(kept: Record) -> List[str]:
    """The lines at the end of a run."""
    count = len(kept.tuned())
    lines = [f"{TITLE}  {OUTCOMES[kept.outcome]}: {count} of {counted(len(kept.hosts), 'host')} tuned"]
    left = {host: reason for host, reason in kept.restored.items() if reason}
    if kept.restored:
        lines.append(f"  taken back: {len(kept.restored) - len(left)} of {counted(len(kept.restored), 'host')}")
    lines += few([f"  not taken back: {plain(host)}: {sentence(reason)}" for host, reason in left.items()])
    if left:
        lines.append(f"  finish it: ansible-playbook nearmetal.ec2.restore -e target={','.join(sorted(left))}")
    if kept.outcome in ("", "held"):
        lines.append(f"  go on: ansible-playbook nearmetal.ec2.rollout -e rollout_resume={short_path(kept.path)}")
    return [*lines, f"  record: {short_path(kept.path)}"]
