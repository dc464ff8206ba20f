# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last verdict of prove for each host, from the reports in the report directory. PRIVATE to the collection."""

from __future__ import annotations

import math
import os
import re
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from ...module_utils._concerns.registry import CONCERNS
from ...module_utils._planning.knob import BOOT, RESTART
from ...module_utils._prove.statistics.rules import BETTER, UNCLEAR, VERDICTS
from ...module_utils._words import counted
from .._clean import NAME, Budget, text
from .._files import latest, made_of
from .._prove import document, figures
from .model import ReportedFinding

FOLDER = "prove"
_NAME = re.compile(r"(?P<host>.+)-(?P<when>[0-9]{8}T[0-9]{6}Z)-[0-9]{1,10}\.json", re.ASCII)
_LARGEST = 16 * 1024 * 1024  # bytes of one report


@dataclass(frozen=True)
class Proof:
    """The result of the last run of prove on a host."""

    verdict: str
    kept: bool
    ended: float  # seconds since 1970
    load: str
    against: str  # the tuning in place of the untuned host; empty for the untuned host
    tested: Tuple[str, ...]  # `concern.option`, without what the load could not show
    # The values that were measured, by `concern.option`.
    wanted: Mapping[str, Tuple[Any, ...]] = field(default_factory=dict)
    metric: str = ""  # the metric that decided; empty without pairs
    unit: str = ""
    change: Optional[float] = None  # percent
    low: Optional[float] = None  # the interval; None where nothing is excluded on this side
    high: Optional[float] = None
    evidence: Optional[float] = None  # to 1

    def says(self, measured: bool = True) -> str:
        """One sentence for each setting that took part; `measured` is whether its value is the one wanted now."""
        date = time.strftime("%d %b %Y", time.gmtime(self.ended)).lstrip("0")
        result = self.verdict.replace("_", " ")
        lead = f"proven on {date}" if self.verdict == BETTER else f"prove found {result} on {date}"
        other_settings = len(self.tested) - 1
        conditions = f", with {counted(other_settings, 'other setting')}" if other_settings else ""
        conditions += "" if measured else ", with a value other than the one wanted now"
        conditions += ", against another tuning" if self.against else ""
        if self.change is None:
            return f"{lead}{conditions}"
        least, interval = figures.at_least(self.low, self.high), figures.interval(self.low, self.high)
        change = f"{self.metric} {least}{figures.percent(self.change)} ({interval})"
        return f"{lead}: {change}{conditions}, under the load of that run"


def last(directory: str, hosts: Iterable[str]) -> Dict[str, Proof]:
    """The latest proof of each of these hosts. Damaged reports, and those of another version, are ignored."""
    proof_of_host = {}
    for host, paths in latest(os.path.join(directory, FOLDER), _NAME, hosts):
        # A resumed run may end after a run that began later.
        proofs = filter(None, (made_of(path, _LARGEST, partial(_of_host, host)) for path in paths))
        proof = max(proofs, key=lambda proof: proof.ended, default=None)
        if proof is not None:
            proof_of_host[host] = proof
    return proof_of_host


def with_proof(findings: Iterable[ReportedFinding], proof: Optional[Proof]) -> Tuple[ReportedFinding, ...]:
    """The findings, with the gain that prove measured on this host in place of published gains."""
    if proof is None:
        return tuple(findings)
    gains = {measured: proof.says(measured) for measured in (True, False)}
    return tuple(
        finding._replace(gain=gains[finding.wanted in proof.wanted.get(finding.name, ())])
        if finding.name in proof.tested
        else finding
        for finding in findings
    )


def _of_host(host: str, plain: Mapping[str, Any]) -> Optional[Proof]:
    known = (plain["schema"], plain["host"]) == (document.SCHEMA, host) and plain["version"] in document.READABLE
    # A run whose load failed before any pair says nothing of its settings.
    measured = known and (plain["verdict"].get("pairs", 1) or plain["verdict"]["verdict"] != UNCLEAR)
    return proof_of(plain) if measured else None


def proof_of(plain: Mapping[str, Any]) -> Proof:
    """The proof in the report of a run. Raises a built-in exception, such as KeyError, for anything else."""
    verdict = plain["verdict"]
    if verdict["verdict"] not in VERDICTS:
        raise ValueError(verdict["verdict"])
    ended = float(plain["ended"])
    after = BOOT if plain["settings"].get("reboot") is True else RESTART if plain.get("restart") else ""
    time.gmtime(ended)
    first: Mapping[str, Any] = next((metric for metric in verdict["metrics"] if metric["primary"] is True), {})
    change, low, high, evidence = (_number(first.get(name)) for name in ("change", "low", "high", "evidence"))
    return Proof(
        verdict=str(verdict["verdict"]),
        kept=plain["kept"] is True,
        ended=ended,
        load=text(plain["load"]["command"]),
        against=text(plain["against"]),
        tested=tuple(text(name, NAME) for name in plain["tested"] if _was_felt(str(name), after)),
        wanted={name: tuple(values) for name, values in Budget().value(plain["wanted"]).items()},
        metric=text(first.get("name", ""), NAME),
        unit=text(first.get("unit", ""), NAME),
        change=change,
        low=low,
        high=high,
        evidence=None if change is None else evidence,
    )


def _was_felt(name: str, after: str) -> bool:
    """Whether the load could show a setting; earlier versions compared others too."""
    concern, _dot, knob = name.partition(".")
    return concern not in CONCERNS or not CONCERNS[concern].unfelt(knob, after)


def _number(value: Any) -> Optional[float]:
    number = None if value is None else float(value)
    if number is not None and not math.isfinite(number):
        raise ValueError(number)
    return number
