# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as data, from which every form of it is made. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ...module_utils._plan import Finding
from ...module_utils._planning import unit
from .._benchmark.ranking import Ranking
from .._clean import text

VERSION = 1  # of the schema: a reader refuses another one

REPORTED, FAILED, UNREACHABLE, SKIPPED, SILENT = "reported", "failed", "unreachable", "skipped", "silent"
PERSIST = "persist"  # the knob of every concern that makes its values permanent
_ABOUT = ("instance_type", "host_class", "architecture", "distribution", "distribution_version", "kernel")
STATES = (REPORTED, FAILED, UNREACHABLE, SKIPPED, SILENT)


def plural(number: int, noun: str, nouns: str = "") -> str:
    """`1 host`, `2 hosts`, `1,000 hosts`"""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def clause(number: int, noun: str, one: str, several: str) -> str:
    """`1 host failed`, `2 hosts were skipped`; empty without any."""
    return f"{plural(number, noun)} {one if number == 1 else several}" if number else ""


def sentence_of(errors: Mapping[str, str]) -> str:
    """The errors of concerns in one line."""
    return text("; ".join(f"{concern}: {why}" for concern, why in errors.items()))


class ReportedFinding(Finding):
    """A finding as a host reported it, with the knob's owner if the host names one."""

    @property
    def name(self) -> str:
        """`concern.knob`, or the concern alone."""
        return ".".join(filter(None, (self.concern, self.knob)))

    @property
    def key(self) -> str:
        """`concern.knob place`: what a finding is about, the same in every run, whatever its status and values."""
        return " ".join(filter(None, (self.name, self.where)))

    @property
    def place(self) -> str:
        """Where the knob is; empty if the wanted value is that place, as for a file."""
        return "" if self.where == self.wanted else self.where

    @property
    def upkeep(self) -> bool:
        """Whether the finding is only about keeping values: the unit with its export, and the files of each concern.

        An obstacle to that (refused, failed) is not upkeep.
        """
        keeps = self.concern in (unit.NAME, unit.METRICS) or self.knob == PERSIST
        return keeps and self.status in ("would_change", "changed")


@dataclass(frozen=True)
class HostReport:
    name: str
    state: str = SILENT  # of STATES
    message: str = ""  # why it failed or could not be reached; else the module's one line
    groups: Tuple[str, ...] = ()
    platform: Mapping[str, Any] = field(default_factory=dict)
    workload: str = ""
    changed: bool = False
    reboot_required: bool = False
    reboot_reasons: Tuple[str, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)  # concern -> sentence
    actions: Tuple[Mapping[str, Any], ...] = ()
    findings: Tuple[ReportedFinding, ...] = ()
    allowances: Tuple[Mapping[str, Any], ...] = ()  # samples: see allowances.py
    queue_map: Tuple[Mapping[str, Any], ...] = ()  # NICs: see picture.py
    topology: Mapping[str, Any] = field(default_factory=dict)  # see picture.py
    commands: Tuple[str, ...] = ()  # lines of a shell script that would do the same as the run
    sizing: Tuple[str, ...] = ()  # the arithmetic of sizing, line by line
    notes: Tuple[str, ...] = ()  # sentences about values that were cut or not understood
    proven: Optional[Mapping[str, Any]] = None  # the last verdict of prove: see proven.py

    @property
    def rows(self) -> List[ReportedFinding]:
        """The findings, and before them each concern that ended with an error."""
        return [*(ReportedFinding(concern, "", FAILED, why) for concern, why in self.errors.items()), *self.findings]

    @property
    def about(self) -> str:
        """Its type, system and kernel in a few words."""
        return " · ".join(str(self.platform[name]) for name in _ABOUT if self.platform.get(name))

    @property
    def family(self) -> str:
        """`c5` of `c5.large`; empty when the host doesn't know its type."""
        return str(self.platform.get("instance_type") or "").partition(".")[0]

    @property
    def only_errors(self) -> bool:
        """Whether the message says no more than `errors` do."""
        return self.state == FAILED and bool(self.errors) and self.message == sentence_of(self.errors)

    def statuses(self) -> Dict[str, List[str]]:
        """Concern → the statuses of its findings, `failed` for one that ended with an error."""
        statuses: Dict[str, List[str]] = {concern: ["failed"] for concern in self.errors}
        for finding in self.findings:
            statuses.setdefault(finding.concern, []).append(finding.status)
        return statuses

    def marks(self) -> Dict[str, List[str]]:
        """Concern → the statuses that its mark shows: upkeep counts only for a concern without other findings.

        What keeps a value from lasting marks the unit, beside a concern's other findings.
        """
        knobs: Dict[str, List[str]] = {concern: ["failed"] for concern in self.errors}
        for finding in self.findings:
            if not finding.upkeep:
                lost = finding.knob == PERSIST and finding.status == "refused"
                knobs.setdefault(unit.NAME if lost else finding.concern, []).append(finding.status)
        return {**self.statuses(), **knobs}


@dataclass(frozen=True)
class Gate:
    """The statuses of `audit_fail_on` and how often they were hit."""

    statuses: Tuple[str, ...]
    hosts: Tuple[str, ...] = ()
    findings: int = 0


@dataclass(frozen=True)
class Run:
    """The run that a report is about."""

    mode: str  # audit | tune | restore
    started: str  # UTC, as 2026-01-31T12:00:00Z
    finished: str
    seconds: float
    collection: str = ""  # version
    inventory: Tuple[str, ...] = ()
    command: Tuple[str, ...] = ()  # applies what this run showed, on all hosts; empty when no command does
    limit: str = ""
    beside: str = ""  # a note beside the command, or a sentence in place of it
    checked: bool = False  # whether it was another playbook than an audit, with --check

    @property
    def title(self) -> str:
        """What a report is headed with."""
        return f"check of {'tune' if self.mode == 'audit' else self.mode}" if self.checked else self.mode


class Past(NamedTuple):
    """One earlier audit: see history.py."""

    finished: str  # UTC, as 2026-01-31T12:00:00Z
    hosts: Mapping[str, Mapping[str, int]]  # host → status → findings


@dataclass(frozen=True)
class Report:
    run: Run
    hosts: Tuple[HostReport, ...] = ()
    blind_spots: Tuple[str, ...] = ()  # sentences about what the writer could not check
    gate: Optional[Gate] = None
    drift: Optional[Mapping[str, Any]] = None  # see drift.py
    directory: str = ""  # where it is written, as a user would type it
    rankings: Tuple[Ranking, ...] = ()  # of the hosts' benchmarks: see _benchmark/ranking.py
    past: Tuple[Past, ...] = ()  # earlier audits: see history.py

    @property
    def restores(self) -> bool:
        """Whether the run gave settings back, or would: that has neither worth nor risk."""
        return self.run.mode == "restore"

    def states(self) -> Dict[str, int]:
        """How many hosts are in each state."""
        return {state: sum(host.state == state for host in self.hosts) for state in STATES}
