# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a rollout: a line of JSON for each thing that happened, on disk before the next one. PRIVATE.

It is all that a rollout remembers. What follows at any moment follows from its lines alone, so a rollout whose
controller was killed goes on from them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from glob import glob
from typing import Any, Dict, List, Mapping, Optional, Set

from ...module_utils._error import NearmetalError
from ...module_utils._words import plain
from .._files import append, make_folder, short_path, writing
from .decision import Settings
from .effect import Look, Watch

FORMAT = 1
_MOST_BYTES = 512 * 1024 * 1024


@dataclass
class Batch:
    """What is known of one batch."""

    number: int  # from 1
    begin: int  # of its hosts, in the order of the draw
    end: int
    last: int  # of the hosts that are watched with it
    began: float = 0.0
    asked: float = 0.0  # the end of the last look
    before: List[Look] = field(default_factory=list)
    after: List[Look] = field(default_factory=list)
    tuning: float = 0.0  # when it began; 0 until then
    tuned: float = 0.0  # when it was over; 0 until then
    run: int = 0  # the run, from 1, that began to tune it
    vitals: Dict[str, Any] = field(default_factory=dict)  # host → what was seen of it before its tuning
    decision: str = ""
    closed: bool = False  # whether the hosts were told the decision
    judgment: Dict[str, Any] = field(default_factory=dict)


@dataclass
class Record:
    """What the lines of a record say."""

    path: str
    start: Dict[str, Any]
    batches: List[Batch] = field(default_factory=list)
    restored: Dict[str, str] = field(default_factory=dict)  # host → what was left, or why it failed; empty: all is back
    outcome: str = ""  # done | held | taken_back; empty while it goes on
    runs: List[Dict[str, Any]] = field(default_factory=list)  # each run of Ansible that worked on it
    without: Set[str] = field(default_factory=set)  # hosts that were unavailable when their batch was tuned
    held: List[str] = field(default_factory=list)  # why the last run tuned no further batch

    @property
    def hosts(self) -> List[str]:
        """All hosts, in the order of the draw."""
        return list(self.start["hosts"])

    @property
    def settings(self) -> Settings:
        """What decides."""
        given = self.start["settings"]
        return Settings(**{**given, "metrics": tuple(map(tuple, given["metrics"]))})

    def watch(self, batch: Batch, looks: Optional[int] = None) -> Watch:
        """What was seen of a batch, after so many looks."""
        strata = self.start["strata"][batch.begin : batch.last]
        return Watch(batch.end - batch.begin, strata, batch.before, batch.after[:looks])

    def tuned(self) -> List[str]:
        """The hosts that this rollout has tuned, or was about to; not those that were left out or are restored."""
        reached = max((batch.end for batch in self.batches if batch.tuning), default=0)
        hosts = self.start["hosts"][:reached]
        return [host for host in hosts if host not in self.without and self.restored.get(host) != ""]

    def add(self, kind: str, **content: Any) -> None:
        """Write a line, and take note of it. Raises NearmetalError when it can't be written."""
        line = {"kind": kind, **content}
        with writing(f"the record {self.path}"):
            append(self.path, (json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n").encode())
        self.note(**line)

    def note(self, kind: str, **line: Any) -> None:
        """Take note of a line."""
        if kind == "batch":
            self.batches.append(Batch(*(line[name] for name in ("number", "begin", "end", "last", "at"))))
        elif kind == "look":
            batch = self.batches[-1]
            (batch.after if batch.tuned else batch.before).append(line["values"])
            batch.asked = line["due"]
        elif kind == "hold":
            self.held = line["reasons"]
            if self.batches and not self.batches[-1].tuning:
                self.batches.pop()  # whoever resumes it begins it anew
        elif kind == "tuning":
            batch = self.batches[-1]
            batch.tuning, batch.run = batch.tuning or line["at"], batch.run or len(self.runs)
            self.without.update(line["without"])
            self.without.difference_update(line["vitals"])  # it is there again when a rollout goes on
            batch.vitals.update(line["vitals"])
        elif kind == "tuned":
            self.batches[-1].tuned = self.batches[-1].tuned or line["at"]
            self.without.update(line["without"])
        elif kind == "decision":
            batch = self.batches[-1]
            batch.decision, batch.judgment, batch.closed = line["decision"], line, True
            self.without.update(line["without"])
        elif kind == "restored":
            self.restored.update(line["hosts"])
        elif kind == "end":
            self.outcome = line["outcome"]
        elif kind == "run":
            if self.batches and not self.outcome:  # the run before was killed
                self.batches[-1].closed = False
            self.outcome, self.held = "", []
            self.runs.append(line)
            self.start["options"].update(line["options"])


def folder_of(directory: str) -> str:
    """Where records are, below the directory of the reports."""
    return os.path.join(directory, "rollout")


def begin(path: str, start: Mapping[str, Any]) -> Record:
    """A new record. Raises NearmetalError when it can't be written."""
    with writing(f"the record {path}"):
        make_folder(path)
        append(path, (json.dumps({"kind": "start", "format": FORMAT, **start}) + "\n").encode(), os.O_CREAT | os.O_EXCL)
    return Record(path, dict(start))


def read(path: str) -> Record:
    """The record in a file; a line that was cut, because the controller was killed, is left out."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(_MOST_BYTES)
    except OSError as error:
        raise NearmetalError(f"the record {plain(path)} can't be read: {error.strerror}") from None
    parsed = list(filter(None, map(_parsed, data.splitlines())))
    try:
        start = parsed[0]
        if start["kind"] == "start" and start["format"] > FORMAT:
            raise NearmetalError(f"{plain(path)} is a record of a newer version: go on with that one")
        record = Record(path, {**start, "hosts": list(start["hosts"])})
        for line in parsed[1:]:
            record.note(**line)
    except (KeyError, IndexError, TypeError):
        raise NearmetalError(f"{plain(path)} is no record of a rollout, or it was damaged: start a new one") from None
    return record


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None  # it was cut


def require_alone(directory: str, hosts: List[str], own: str = "") -> None:
    """Raise NearmetalError while a rollout other than `own`, which hasn't ended, has one of these hosts."""
    paths = sorted(glob(os.path.join(folder_of(directory), "*.jsonl")))
    for path in (path for path in paths if not (own and os.path.samefile(path, own))):
        record = read(path)
        both = [host for host in record.start["hosts"] if host in hosts]
        if not record.outcome and both:
            raise NearmetalError(
                f"another rollout has {plain(both[0])} and hasn't ended: go on with it by"
                f" -e rollout_resume={short_path(path)}, or give it up by deleting that file"
            )


def require_idle(record: Record) -> None:
    """Raise NearmetalError while the run of Ansible that wrote the last lines still lives on this machine."""
    last = record.runs[-1] if record.runs else {}
    if last.get("controller") != os.uname().nodename or last.get("pid") in (None, os.getppid()):
        return
    try:
        with open(f"/proc/{int(last['pid'])}/cmdline", "rb") as stream:
            lives = b"ansible" in stream.read(65536)
    except (OSError, ValueError):
        lives = False
    if lives:
        raise NearmetalError(f"the rollout still runs, as process {last['pid']}: wait for its end, or end it")
