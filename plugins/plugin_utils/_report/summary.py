# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report derives from its hosts: totals, the matrix of marks, top findings and the commands that fix them.

PRIVATE to the collection.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ...module_utils._planning import unit
from ...module_utils._words import in_words, span
from .._ansible.plays import TUNE
from . import commands, model, worth
from .headings import BY_API, FAILED, OPEN, ORDER, heading_of, headings, in_order, worst
from .model import HostReport, Report, clause, plural

TOPS = 5  # findings that a terminal and the page's list show; the others are beside their hosts
ROWS = 40  # a longer table is folded: hosts with equal marks share a row
PATTERNS = 25  # rows of a folded table
VALUE = 60  # characters of a value beside a sentence


@dataclass(frozen=True)
class Top:
    """One kind of finding, over all hosts that have it."""

    concern: str
    knob: str
    status: str
    hosts: Tuple[str, ...]
    change: str  # "xen → tsc"; empty when the hosts differ or nothing changes
    reason: str  # of the host whose gain is shown, else the most frequent reason
    other_reasons: int  # how many further wordings there are
    gain: str
    reference: str
    fix: str  # a command, or a sentence where no command helps
    worth: str = ""  # what is known of the gain, on the host that knows most: see worth.py
    risk: str = ""  # what the change costs at most

    @property
    def name(self) -> str:
        """`concern.knob`, or the concern alone."""
        return ".".join(filter(None, (self.concern, self.knob)))


def concerns_of(report: Report) -> List[str]:
    """Every concern that any host reported, in the order of the nine headings."""
    return in_order(concern for host in report.hosts for concern in host.marks())


def cells(host: HostReport, concerns: List[str]) -> List[str]:
    """The status that each concern's cell shows; empty if the host reported nothing."""
    statuses = host.marks()
    return [worst(statuses.get(concern, ())) for concern in concerns]


def rows(report: Report, concerns: List[str]) -> List[Tuple[str, HostReport]]:
    """A row per host; for a large fleet, a row per pattern of marks, the most frequent first: `web-01 +17`."""
    if len(report.hosts) <= ROWS:
        return [(host.name, host) for host in report.hosts]
    patterns: Dict[Tuple[str, ...], List[HostReport]] = {}
    for host in report.hosts:
        patterns.setdefault((host.state, *cells(host, concerns)), []).append(host)
    folded = sorted(patterns.values(), key=lambda hosts: (-len(hosts), hosts[0].name))
    return [(hosts[0].name + (f" +{len(hosts) - 1:,}" if hosts[1:] else ""), hosts[0]) for hosts in folded]


def status_totals(report: Report) -> Dict[str, int]:
    """How many findings have each status; only those that occur, in the order of ORDER."""
    count: Counter[str] = Counter(
        status for host in report.hosts for statuses in host.statuses().values() for status in statuses
    )
    return {status: count[status] for status in sorted(count, key=lambda status: ORDER[status])}


def top_findings(report: Report) -> List[Top]:
    """The open findings: what would help most first, by gain, then by risk and number of hosts; upkeep last."""
    groups: Dict[Tuple[str, str, str], List[_Entry]] = {}
    upkeep = set()
    for host in report.hosts:
        for concern, sentence in host.errors.items():
            groups.setdefault((concern, "", FAILED), []).append(_Entry(host.name, {"reason": sentence}))
        risks = worth.risks_of(host)
        for finding in host.findings:
            if finding.status in OPEN:
                key = (finding.concern, finding.knob, finding.status)
                upkeep |= {key} if finding.upkeep else set()
                risk = worth.risk_of(finding, risks)
                entry = _Entry(host.name, finding._asdict(), worth.worth_of(host, finding), risk)
                groups.setdefault(key, []).append(entry)
    tops = [_top(report, key in upkeep, *key, entries) for key, entries in groups.items()]
    return sorted(tops, key=lambda top: ((top.concern, top.knob, top.status) in upkeep, *_helps(top)))


def tops_title(report: Report, tops: List[Top]) -> str:
    """What the list of open findings is: nothing helps where only refusals and unknowns are left."""
    if report.restores:
        return "What was left"
    helps = any(top.worth or top.status == FAILED for top in tops)
    return "What would help most" if helps else "What stays open"


def _helps(top: Top) -> Tuple[Any, ...]:
    """The order in which findings help: a fault first, then what can be changed, then what can only be read."""
    kind = 0 if top.status == FAILED else 1 if top.worth else 2
    worths, risks = list(worth.WORTH), list(worth.RISK)
    place = (worths.index(top.worth), risks.index(top.risk)) if top.worth else (0, 0)
    return (kind, *place, -len(top.hosts), ORDER[top.status], top.concern, top.knob)


class _Entry(NamedTuple):
    host: str
    finding: Mapping[str, Any]
    worth: str = ""
    risk: str = ""


def show(value: Any, limit: int = VALUE) -> str:
    """A knob's value in a few characters; None as a dash."""
    return in_words(value, "–", limit)


def change_of(finding: Mapping[str, Any]) -> str:
    """`xen → tsc`; empty when nothing changes, also where kernel 6.1 satisfies "3.10 or newer"."""
    now, wanted, status = finding.get("now"), finding.get("wanted"), finding.get("status")
    good = wanted == now or status == "ok" or (wanted is None and status not in ("would_change", "changed"))
    return "" if good else f"{show(now)} → {show(wanted)}"


def everything(report: Report) -> Tuple[str, str]:
    """The command that does what this run showed, and what it leaves out; empty without such a command."""
    hosts, slower = commands.changing(report), worth.slower(report)
    changes = {finding.name for host in report.hosts for finding in host.findings if finding.status == "would_change"}
    fix = commands.fix_command(report, hosts, without=slower) if hosts and changes - {*slower} else ""
    left_out = f"without {span(slower)}, {worth.WORTH[worth.LOSS]}" if "-e tune_exclude=" in fix and slower else ""
    return fix, left_out


def counts_line(report: Report) -> str:
    """`12 hosts: 10 reported, 2 unreachable`"""
    states = [f"{count} {state}" for state, count in report.states().items() if count]
    return f"{plural(len(report.hosts), 'host')}{': ' if states else ''}{', '.join(states)}"


def hosts_files(report: Report) -> Dict[str, str]:
    """The files of host names that the commands of this report need, by name."""
    return commands.hosts_files(report, ((top.hosts, top.fix) for top in top_findings(report)))


def _top(report: Report, is_upkeep: bool, concern: str, knob: str, status: str, entries: List[_Entry]) -> Top:
    hosts = tuple(dict.fromkeys(entry.host for entry in entries))
    reasons = Counter(str(entry.finding["reason"]) for entry in entries)
    changes = {change_of(entry.finding) for entry in entries}
    best = min(entries, key=lambda entry: list(worth.WORTH).index(entry.worth) if entry.worth else 9)
    gaining = [entry for entry in (best, *entries) if entry.finding.get("gain")]
    # The reason of the host whose gain is shown, else the most frequent.
    usual = reasons.most_common(1)[0][0]
    example = gaining[0].finding if gaining else next(one.finding for one in entries if one.finding["reason"] == usual)
    with_gain = {entry.host for entry in gaining}
    gain = str(gaining[0].finding["gain"]) if gaining else ""
    changeable = status in ("would_change", "needs_reboot", "needs_restart") and not report.restores
    return Top(
        concern=concern,
        knob=knob,
        status=status,
        hosts=hosts,
        change=changes.pop() if len(changes) == 1 else "",
        reason=str(example["reason"]),
        other_reasons=len(reasons) - 1,
        gain=gain if len(with_gain) in (0, len(hosts)) else f"{len(with_gain)} of {plural(len(hosts), 'host')}: {gain}",
        reference=str(example.get("reference") or ""),
        fix=worth.LEAVE_OUT if best.worth == worth.LOSS else _fix(report, concern, knob, status, hosts, is_upkeep),
        worth=best.worth if changeable else "",
        risk=max((entry.risk for entry in entries), key=list(worth.RISK).index) if changeable else "",
    )


def _fix(report: Report, concern: str, knob: str, status: str, hosts: Tuple[str, ...], is_upkeep: bool) -> str:
    if status == "would_change" and concern in BY_API and TUNE in report.run.command:
        return f"run the role nearmetal.ec2.{concern}: see docs/cloud.md"
    if status == "would_change":
        if not is_upkeep:
            return commands.fix_command(report, hosts, f"{concern}.{knob}" if knob else concern)
        # What keeps a concern's values has no option of its own, and the unit keeps those of all concerns.
        kept = "" if concern in (unit.NAME, unit.METRICS) else concern
        changes = (finding for host in report.hosts if host.name in hosts for finding in worth.to_tune(host))
        if any(change.status == status and kept in ("", change.concern) for change in changes):
            return f"comes with the settings{f' of {kept}' if kept else ''} that it keeps"
        return commands.fix_command(report, hosts, kept)
    return {
        "needs_reboot": f"reboot when it suits: {span(hosts)}",
        "needs_restart": f"restart the service when it suits: {span(hosts)}",
    }.get(status, "")


def not_audited(report: Report) -> List[str]:
    """The titles of those of the nine headings that no concern of this run covers."""
    if report.restores:
        return []
    answered = {heading_of(concern) for concern in concerns_of(report)}
    # A host's platform facts answer the first heading as far as a host can.
    answered |= {headings()[0]} if any(host.platform.get("host_class") for host in report.hosts) else set()
    return [heading.title for heading in headings() if heading not in answered]


def left_out(report: Report) -> str:
    """A sentence about hosts of the earlier report that this run lacks; empty without such hosts."""
    absent = tuple(report.drift["absent"]) if report.drift else ()
    said = clause(len(absent), "host", "of that report is not in this play", "of that report are not in this play")
    return f"{said}: {span(absent)}" if absent else ""


def all_clear(report: Report, words: str) -> str:
    """These words, such as `none found`, said of nobody but the hosts that reported."""
    reported = report.states()[model.REPORTED]
    if reported == len(report.hosts):
        return words
    return f"{words} on the hosts that reported" if reported else "no host reported"


def trouble(host: HostReport) -> str:
    """Why a host has no complete report; empty for a host that has one."""
    return {
        model.UNREACHABLE: f"unreachable: {host.message}",
        model.FAILED: f"failed: {host.message}",
        model.SKIPPED: "skipped: the play's conditions leave this host out",
        model.SILENT: "no result: the run ended before this host reported anything",
    }.get(host.state, "")
