# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last verdict of prove for each host, from the reports beside this one. PRIVATE to the collection."""

from __future__ import annotations

import json
import math
import os
import re
import time
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.rules import BETTER, VERDICTS
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._proof import document, log, words
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.clean import NAME, Budget, text
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import ReportedFinding

FOLDER = "prove"
_NAME = re.compile(r"(?P<host>.+)-(?P<when>[0-9]{8}T[0-9]{6}Z)-[0-9]{1,10}\.json", re.ASCII)
_LARGEST = 16 * 1024 * 1024  # bytes of one report
_MOST = 20  # reports that are read for a host, also of hosts whose names look the same in a file's name


@dataclass(frozen=True)
class Proof:
    """What came of the last run on a host."""

    verdict: str
    kept: bool
    ended: float  # seconds since 1970
    load: str
    against: str  # another tuning in place of the untuned host; empty for that
    tested: Tuple[str, ...]  # `concern.option`
    wanted: Mapping[str, Tuple[Any, ...]] = field(default_factory=dict)  # what was measured, by `concern.option`
    metric: str = ""  # that decided; empty of a run without pairs
    unit: str = ""
    change: Optional[float] = None  # percent
    low: Optional[float] = None  # the interval; None where nothing is excluded on this side
    high: Optional[float] = None
    evidence: Optional[float] = None  # to 1

    def says(self, measured: bool = True) -> str:
        """One sentence, beside each setting that took part; whether with the value that is wanted now."""
        date = time.strftime("%d %b %Y", time.gmtime(self.ended)).lstrip("0")
        found = self.verdict.replace("_", " ")
        begin = f"proven on {date}" if self.verdict == BETTER else f"prove found {found} on {date}"
        others = len(self.tested) - 1
        rest = f", with {others} other setting{'' if others == 1 else 's'}" if others else ""
        rest += "" if measured else ", with another value than is wanted now"
        rest += ", against another tuning" if self.against else ""
        if self.change is None:
            return f"{begin}{rest}"
        interval = words.interval(self.low, self.high)
        return f"{begin}: {self.metric} {words.percent(self.change)} ({interval}){rest}, under its load"


def last(directory: str, hosts: Iterable[str]) -> Dict[str, Proof]:
    """The latest proof of each of these hosts. A report that is damaged, or of another version, is none."""
    folder = os.path.join(directory, FOLDER)
    files: Dict[str, List[Tuple[str, str]]] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match:
            files.setdefault(match["host"], []).append((match["when"], name))
    found = {}
    for host in hosts:
        latest = sorted(files.get(log.file_name(host), ()), reverse=True)[:_MOST]
        proofs = filter(None, (_read(os.path.join(folder, name), host) for _when, name in latest))
        # A run that was resumed ends after one that began later.
        proof = max(proofs, key=lambda each: each.ended, default=None)
        if proof is not None:
            found[host] = proof
    return found


def beside(findings: Iterable[ReportedFinding], proof: Optional[Proof]) -> Tuple[ReportedFinding, ...]:
    """The findings, those that took part with what was measured in place of what others measured elsewhere."""
    if proof is None:
        return tuple(findings)
    gains = {measured: proof.says(measured) for measured in (True, False)}
    return tuple(
        replace(finding, gain=gains[finding.wanted in proof.wanted.get(name, ())]) if name in proof.tested else finding
        for finding in findings
        for name in (f"{finding.concern}.{finding.knob}",)
    )


def _read(path: str, host: str) -> Optional[Proof]:
    try:
        if os.path.getsize(path) > _LARGEST:
            return None
        with open(path, encoding="utf-8") as stream:
            plain = json.load(stream)
        if (plain["schema"], plain["version"], plain["host"]) != (document.SCHEMA, document.VERSION, host):
            return None
        return proof_of(plain)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def proof_of(plain: Mapping[str, Any]) -> Proof:
    """The proof in the report of a run. Raises one of Python's errors for what isn't one."""
    found = plain["verdict"]
    if found["verdict"] not in VERDICTS:
        raise ValueError(found["verdict"])
    ended = float(plain["ended"])
    time.gmtime(ended)
    first: Mapping[str, Any] = next((metric for metric in found["metrics"] if metric["primary"] is True), {})
    change, low, high, evidence = (_number(first.get(name)) for name in ("change", "low", "high", "evidence"))
    return Proof(
        verdict=str(found["verdict"]),
        kept=plain["kept"] is True,
        ended=ended,
        load=text(plain["load"]["command"]),
        against=text(plain["against"]),
        tested=tuple(text(name, NAME) for name in plain["tested"]),
        wanted={name: tuple(values) for name, values in Budget().value(plain["wanted"]).items()},
        metric=text(first.get("name", ""), NAME),
        unit=text(first.get("unit", ""), NAME),
        change=change,
        low=low,
        high=high,
        evidence=evidence,
    )


def _number(value: Any) -> Optional[float]:
    number = None if value is None else float(value)
    if number is not None and not math.isfinite(number):
        raise ValueError(number)
    return number
