# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.json: the whole report for other programs; report.schema.json beside this file describes it. PRIVATE."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict
from typing import Any, Dict, Mapping, Tuple

from ...module_utils._error import NearmetalError
from ...module_utils._plan import STATUSES
from .._benchmark import sentences
from .._clean import Budget, text
from .._files import read_json
from . import allowances, model, summary
from .headings import under_headings
from .model import HostReport, Past, Report, ReportedFinding

LARGEST = 512 * 1024 * 1024  # bytes of an earlier report; 1,000 hosts are some 20 MB


def document(report: Report) -> Dict[str, Any]:
    """The report as plain JSON data."""
    tops = summary.top_findings(report)
    return {
        "version": model.VERSION,
        "run": asdict(report.run),
        "totals": {
            "hosts": {"all": len(report.hosts), **report.states()},
            "findings": summary.status_totals(report),
            "reboot_required": sum(host.reboot_required for host in report.hosts),
        },
        "blind_spots": list(report.blind_spots),
        "fail_on": asdict(report.gate) if report.gate else None,
        "headings": [
            {"number": heading.number, "title": heading.title, "concerns": under}
            for heading, under in under_headings(summary.concerns_of(report))
        ],
        "top": [asdict(top) for top in tops],
        "drift": report.drift,
        "history": [
            {"finished": past.finished, "hosts": len(past.hosts), "totals": _totals(past)} for past in report.past
        ],
        "rankings": [
            {
                **ranking._asdict(),
                "hosts": [host._asdict() for host in ranking.hosts],
                "says": sentences.sentences(ranking),
            }
            for ranking in report.rankings
        ],
        "hosts": [_host(host) for host in report.hosts],
    }


def _totals(past: Past) -> Dict[str, int]:
    """How many findings all hosts of an earlier audit had of each status."""
    totals: Counter[str] = Counter()
    for statuses in past.hosts.values():
        totals.update(statuses)
    return dict(totals)


def _host(host: HostReport) -> Dict[str, Any]:
    # asdict would copy every table deeply, which took most of the time for 1,000 hosts.
    plain = dict(host.__dict__)
    plain["findings"] = [{"key": finding.key, **finding._asdict()} for finding in host.findings]
    plain["limits"] = allowances.verdicts(host.allowances)
    return plain


def dump(report: Report) -> str:
    return json.dumps(document(report), ensure_ascii=False, indent=1, default=str, allow_nan=False) + "\n"


def load(path: str) -> Tuple[str, Tuple[HostReport, ...]]:
    """The time at which an earlier report was finished, and its hosts.

    Raises NearmetalError for a file that is absent, not a report, or of another version.
    """
    try:
        if os.path.getsize(path) > LARGEST:
            raise NearmetalError(
                f"audit_baseline: {path} is larger than {LARGEST >> 20} MiB, so it is not a report of nearmetal"
            )
        plain = read_json(path, LARGEST)
    except OSError as error:
        raise NearmetalError(f"audit_baseline: can't read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise NearmetalError(f"audit_baseline: {path} is not JSON: name the report.json of an earlier run") from None
    if not isinstance(plain, dict) or plain.get("version") != model.VERSION:
        raise NearmetalError(
            f"audit_baseline: {path} is not a report of version {model.VERSION}: make a report with this version first"
        )
    try:
        return str(plain["run"]["finished"]), tuple(_loaded(host) for host in plain["hosts"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise NearmetalError(f"audit_baseline: {path} is damaged: make a new report and name that file") from None


def _loaded(plain: Mapping[str, Any]) -> HostReport:
    names = ReportedFinding._fields
    findings = tuple(ReportedFinding(**{name: entry[name] for name in names}) for entry in plain["findings"])
    if plain["state"] not in model.STATES or any(finding.status not in STATUSES for finding in findings):
        raise ValueError(plain["name"])
    return HostReport(
        name=str(plain["name"]),
        state=plain["state"],
        platform=dict(plain["platform"]),
        errors={text(concern): text(why) for concern, why in plain["errors"].items()},
        actions=tuple(plain["actions"]),
        allowances=tuple(map(Budget().value, plain["allowances"])),
        findings=findings,
    )
