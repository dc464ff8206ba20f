# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.md: for a ticket, a merge request or a wiki. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Sequence

from ...module_utils._words import span
from .._benchmark import sentences
from .._report import commands, summary, worth
from .._report.headings import BY_NAME, heading_of
from .._report.model import HostReport, Report, ReportedFinding, plural
from .sources import SEPARATOR, links

TOPS = 20
LONGEST = 60_000  # characters, which GitHub and GitLab take in a comment
DRIFT = 200  # rows; report.json has all changes
SETTLED = ("ok", "not_applicable", "changed", "waived")

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$^=-])")


def escape(text: str) -> str:
    """Text that Markdown, as CommonMark, GitHub or GitLab read it, shows as it is: no markup, link or mention."""
    escaped = _SPECIAL.sub(r"\\\1", text.replace("&", "&amp;"))
    # Bare addresses and mentions become links without any markup around them.
    escaped = escaped.replace("://", ":&#47;&#47;").replace("@", "&#64;").replace("%", "&#37;")
    return re.sub(r"(?i)(www)\.", r"\1&#46;", escaped)


def render(report: Report) -> str:
    run = report.run
    lines = [f"# {run.title.capitalize()} of {plural(len(report.hosts), 'host')}", ""]
    lines += [f"{escape(summary.counts_line(report))}. Ended {run.finished}, took {run.seconds:.1f} s.", ""]
    totals = summary.status_totals(report)
    lines += _verdict(report)
    if totals:
        counts = [f"{BY_NAME[status].mark} {BY_NAME[status].counted(count)}" for status, count in totals.items()]
        lines += [" · ".join(counts), ""]
    lines += [f"**Not seen:** {escape(sentence)}\n" for sentence in report.blind_spots]
    lines += _gate(report) + _tops(report) + _matrix(report) + _rankings(report) + _drift(report)
    return _with_hosts("\n".join(lines), report.hosts).rstrip() + "\n"


def _with_hosts(text: str, hosts: Iterable[HostReport]) -> str:
    """The text with a section for each host that fits; hosts of which the same is said share theirs."""
    alike: Dict[str, List[str]] = {}
    for host in hosts:
        alike.setdefault("\n".join(_host(host)), []).append(host.name)
    left = sum(map(len, alike.values()))
    for section, names in sorted(alike.items(), key=lambda item: item[1]):
        part = f"\n## {escape(span(tuple(names)))}\n\n{section}"
        if len(text) + len(part) > LONGEST:
            return f"{text}\n… {plural(left, 'further host')} in report.html and report.json\n"
        text, left = text + part, left - len(names)
    return text


def _code(command: str) -> str:
    """A command as code in a table, to be copied as it is; a text that could end the code is escaped."""
    return escape(command) if "`" in command else f"`{command.replace('|', chr(92) + '|')}`"


def _verdict(report: Report) -> List[str]:
    verdict = worth.verdict(report)
    facts = " · ".join(f"{name}: {escape(sentence)}" for name, sentence in verdict.facts)
    planned = f"Planned for: {escape(verdict.planned)}"
    lines = [*([planned, ""] if verdict.planned else []), f"**{escape(verdict.lead)}**", ""]
    return lines + ([facts, ""] if facts else []) + ([f"    {verdict.command}", ""] if verdict.command else [])


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> List[str]:
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    return lines + [f"| {' | '.join(cell or ' ' for cell in row)} |" for row in rows] + [""]


def _gate(report: Report) -> List[str]:
    if report.gate is None:
        return []
    statuses = ", ".join(report.gate.statuses)
    if not report.gate.hosts:
        return [f"**audit\\_fail\\_on** ({escape(statuses)}): {summary.all_clear(report, 'none found')}.", ""]
    hits = f"{plural(report.gate.findings, 'finding')} on {plural(len(report.gate.hosts), 'host')}"
    return [f"**audit\\_fail\\_on** ({escape(statuses)}): {hits}: {escape(span(report.gate.hosts, 20))}.", ""]


def _tops(report: Report) -> List[str]:
    tops = summary.top_findings(report)
    if not tops:
        return []
    lines = [f"## {summary.tops_title(report, tops)}", ""]
    rows = []
    for top in tops[:TOPS]:
        why = escape(top.reason) + (f" *{escape(top.gain)}*" if top.gain else "")
        mark = f"{BY_NAME[top.status].mark} {BY_NAME[top.status].words}"
        fix = _code(top.fix) if commands.is_command(top.fix) else escape(top.fix)
        rows.append((f"{len(top.hosts):,}", mark, escape(top.name), escape(top.change), why, fix))
    return lines + _table(("hosts", "status", "knob", "change", "why", "fix"), rows)


def _matrix(report: Report) -> List[str]:
    concerns = summary.concerns_of(report)
    if not concerns:
        return []
    rows = []
    hosts = summary.rows(report, concerns)
    shown = hosts if len(hosts) <= summary.ROWS else hosts[: summary.PATTERNS]
    for label, host in shown:
        marks = [BY_NAME[status].mark if status else " " for status in summary.cells(host, concerns)]
        rows.append((escape(label), escape(host.state), *marks))
    used = {status for host in report.hosts for status in summary.cells(host, concerns) if status}
    legend = " · ".join(f"{look.mark} {look.words}" for name, look in BY_NAME.items() if name in used)
    missing = summary.not_audited(report)
    missing_headings = [f"Not audited: {escape('; '.join(missing))}.", ""] if missing else []
    return [
        "## Hosts and concerns",
        "",
        *_table(("host", "state", *map(escape, concerns)), rows),
        *([f"… {plural(len(hosts) - len(shown), 'further row')} in report.html", ""] if hosts != shown else []),
        legend,
        "",
        *missing_headings,
    ]


def _rankings(report: Report) -> List[str]:
    lines = ["## Instances of one type", ""] if report.rankings else []
    for ranking in report.rankings:
        rows = [
            (
                str(place),
                escape(host.host),
                f"{host.value:.6g}",
                "" if host.change is None else escape(f"{host.change:+.1f} %"),
                "odd one out" if host.odd else "",
            )
            for place, host in enumerate(ranking.hosts, 1)
        ]
        lines += [f"{escape(sentences.title(ranking))}", ""]
        lines += _table(("place", "host", escape(ranking.metric), "against its sisters", ""), rows)
        lines += [line for sentence in sentences.sentences(ranking) for line in (escape(sentence), "")]
    return lines


def _drift(report: Report) -> List[str]:
    if report.drift is None:
        return []
    changes = report.drift["changes"]
    lines = [f"## Drift since {escape(report.drift['since'])}", ""]
    left_out = summary.left_out(report)
    lines += [f"{escape(left_out)}.", ""] if left_out else []
    if not changes:
        return [*lines, f"{summary.all_clear(report, 'nothing changed').capitalize()}.", ""]
    keys = ("host", "what", "before", "after", "owner")
    rows = [[escape(change[key]) for key in keys] for change in changes[:DRIFT]]
    lines += _table(("host", "what", "before", "now", "owner now"), rows)
    rest = len(changes) - DRIFT
    return lines + ([f"… and {rest:,} more in report.json", ""] if rest > 0 else [])


def _host(host: HostReport) -> List[str]:
    """The open findings of one host below the nine headings, and the number of settled ones."""
    lines = [escape(host.about), ""] if host.about else []
    trouble = summary.trouble(host)
    lines += [f"**{escape(trouble)}**", ""] if trouble else []
    lines += [f"Reboot required: {escape('; '.join(host.reboot_reasons))}", ""] if host.reboot_required else []
    grouped: Dict[int, List[ReportedFinding]] = {}
    for row in (row for row in host.rows if row.status not in SETTLED):
        grouped.setdefault(heading_of(row.concern).number, []).append(row)
    for number in sorted(grouped):
        lines += [f"### {heading_of(grouped[number][0].concern).title}", ""]
        lines += _table(("status", "knob", "now", "wanted", "why", "reference"), map(_row, grouped[number]))
    if host.commands:
        # Indented code has no fence that a command could end.
        lines += ["### Commands that would do the same", "", *(f"    {line}" for line in host.commands), ""]
    if host.sizing:
        lines += ["### Sizing", "", *(f"- {escape(line)}" for line in host.sizing), ""]
    settled = len(host.findings) - sum(finding.status not in SETTLED for finding in host.findings)
    lines += [f"{plural(settled, 'knob')} {'needs' if settled == 1 else 'need'} no change.", ""] if settled else []
    return lines + [line for note in host.notes for line in (f"Note: {escape(note)}", "")]


def _row(row: ReportedFinding) -> Sequence[str]:
    name = row.name + (f" {row.place}" if row.place else "")
    why = escape(row.reason) + (f" *{escape(row.gain)}*" if row.gain else "")
    look = BY_NAME[row.status]
    cells = (name, summary.show(row.now, 200), summary.show(row.wanted, 200))
    return (f"{look.mark} {look.words}", *map(escape, cells), why, _linked(row.reference))


def _linked(reference: str) -> str:
    """The sources of a finding, each a link if it is one that this project knows: a host's own text never is."""
    return SEPARATOR.join(f"[{escape(name)}](<{url}>)" if url else escape(name) for name, url in links(reference))
