# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a terminal: the verdict, one compact table, then what would help most. PRIVATE to the collection."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Sequence, Tuple

from ...module_utils._words import lines_of, span
from .._benchmark import sentences
from .._columns import Paint, clip, led, pad, plain, width, wrap
from .._report import commands, model, summary, worth
from .._report.headings import BY_NAME, FAILED, OPEN, ORDER, heading_of, in_order
from .._report.model import HostReport, Report, ReportedFinding, plural

TROUBLED = 8
NARROWEST = 40
READABLE = 24  # columns that a sentence needs beside others


def render(report: Report, columns: int = 80, paint: Paint = plain) -> List[str]:
    """The lines to print."""
    columns = max(columns, NARROWEST)
    lines = _title(report, columns, paint) + _trouble(report, columns, paint)
    concerns = summary.concerns_of(report)
    if concerns:
        lines += [""]
        single = len(report.hosts) == 1
        lines += _detail(report.hosts[0], columns, paint) if single else _matrix(report, concerns, columns, paint)
        below = _next_step(report, columns, paint) if single else _tops(report, columns, paint)
        lines += ["", *below] if below else []
        lines += _sizing(report.hosts[0], columns, paint) if single else []
    lines += _commands(report, paint)
    lines += sentences.lines(report.rankings, paint, columns)
    lines += _reboots(report, columns, paint) + _drift(report, columns, paint) + _gate(report, columns, paint)
    for sentence in report.blind_spots:
        lines += [paint(line, "bright yellow") for line in _indented("Not seen: ", sentence, columns)]
    return lines


def _title(report: Report, columns: int, paint: Paint) -> List[str]:
    run = report.run
    totals = summary.status_totals(report)
    counts = ", ".join(BY_NAME[status].counted(count) for status, count in totals.items())
    counted = f"{summary.counts_line(report)} in {run.seconds:.1f} s"
    lines = [paint(line, "bold") for line in led(f"{run.title.upper()}  ", counted, columns)]
    verdict = worth.verdict(report)
    lines += _indented("Planned for: ", verdict.planned, columns) if verdict.planned else []
    if counts or any(host.state == model.REPORTED for host in report.hosts):
        lines += wrap(verdict.lead, columns)
    kept = sum(finding.upkeep for host in report.hosts for finding in host.findings)
    if kept and kept < sum(totals.values()):
        keeps = "kept" if run.mode == "restore" else "keeps" if kept == 1 else "keep"
        counts += f"; {kept:,} of these only {keeps} values over reboots"
    lines += wrap(counts, columns) if counts else []
    for name, text in verdict.facts:
        lines += _indented(f"{name}: ", text, columns) if name in worth.SAID else []
    return lines + ([f"  {paint(verdict.command, 'bold')}"] if verdict.command else [])


def _trouble(report: Report, columns: int, paint: Paint) -> List[str]:
    """Hosts without a report, grouped by their sentence."""
    by_sentence: Dict[str, List[str]] = {}
    skipped = summary.trouble(HostReport("", model.SKIPPED))
    for host in report.hosts:
        sentence = summary.trouble(host)
        # Errors of concerns are listed below the table.
        if sentence and not host.only_errors:
            by_sentence.setdefault(sentence, []).append(host.name)
    lines: List[str] = []
    for sentence, names in list(by_sentence.items())[:TROUBLED]:
        mark, color = ("–", "dark gray") if sentence == skipped else ("✗", "red")
        first, *mistakes = lines_of(f"{mark} {span(tuple(names))}: {sentence}")
        said = [f"  {line}" for mistake in mistakes for line in wrap(mistake, columns - 2)]
        lines += [paint(line, color) for line in (*_indented("", first, columns), *said)]
    rest = len(by_sentence) - TROUBLED
    return lines + ([paint(f"✗ and {rest} more reasons: see the report", "red")] if rest > 0 else [])


def _indented(lead: str, sentence: str, columns: int) -> List[str]:
    words = " ".join((lead + sentence).split())
    first, *more = wrap(words, columns)
    return [first, *(f"  {line}" for line in wrap(words[len(first) :], columns - 2) if more)]


def _mark(status: str, paint: Paint) -> str:
    return paint(BY_NAME[status].mark, BY_NAME[status].color) if status else paint("·", "dark gray")


# --- the table of many hosts ---


def _matrix(report: Report, concerns: List[str], columns: int, paint: Paint) -> List[str]:
    rows = summary.rows(report, concerns)
    gaps = _gaps(concerns)
    used = sum(gaps) + len(concerns)
    # The headings of the columns extend to the left, above the names of the hosts.
    needed = max(len(concern) + 2 - sum(gaps[: i + 1]) - i for i, concern in enumerate(concerns))
    first = min(max(needed, *(width(label) for label, _host in rows)), max(columns - used, 12))
    lines = _heads(concerns, gaps, first, columns, paint)
    for label, host in rows[: summary.PATTERNS] if len(rows) > summary.ROWS else rows:
        lines.append(_row(label, host, concerns, gaps, first, columns, paint))
    if len(rows) > summary.ROWS:
        lines.append(f"… {len(rows) - summary.PATTERNS} further rows are in the report")
    present = {status for _label, host in rows for status in summary.cells(host, concerns) if status}
    return [*lines, "", *_legend(sorted(present, key=ORDER.__getitem__), columns, paint)]


def _legend(statuses: Sequence[str], columns: int, paint: Paint) -> List[str]:
    lines, used = [""], 0
    for status in statuses:
        needed = 3 + 2 + width(BY_NAME[status].words)
        if used and used + needed > columns:
            lines.append("")
            used = 0
        lines[-1] += ("   " if used else "") + f"{_mark(status, paint)} {paint(BY_NAME[status].words, 'dark gray')}"
        used += needed
    return lines


def _gaps(concerns: List[str]) -> List[int]:
    """Spaces before each column: two where another heading begins."""
    numbers = [heading_of(concern).number for concern in concerns]
    return [1] + [1 + (before != number) for before, number in zip(numbers, numbers[1:])]


def _heads(concerns: List[str], gaps: List[int], first: int, columns: int, paint: Paint) -> List[str]:
    places = [first + sum(gaps[: i + 1]) + i for i in range(len(concerns))]
    lines = []
    for i in reversed(range(len(concerns))):
        bars = "┐" + "".join("│".rjust(gaps[j] + 1) for j in range(i + 1, len(concerns)))
        label = clip(concerns[i], places[i] - 1).rjust(places[i] - 1)
        lines.append(f"{paint(label, 'bold')} {paint(clip(bars, columns - places[i]), 'dark gray')}")
    return lines


def _row(
    label: str, host: HostReport, concerns: List[str], gaps: List[int], first: int, columns: int, paint: Paint
) -> str:
    statuses = summary.cells(host, concerns)
    if not any(statuses):
        state = clip({model.SILENT: "no result"}.get(host.state, host.state), columns - first - 1)
        return f"{pad(label, first)} {paint(state, 'dark gray' if host.state == model.SKIPPED else 'red')}"
    marks = "".join(" " * gap + _mark(status, paint) for gap, status in zip(gaps, statuses))
    whole = host.state == model.REPORTED or host.only_errors
    return pad(label, first) + marks + ("" if whole else paint(" ✗", "red"))


# --- the table of one host ---


def _detail(host: HostReport, columns: int, paint: Paint) -> List[str]:
    about = clip(host.about, columns - width(host.name) - 2)
    lines = [f"{paint(host.name, 'bold')}  {paint(about, 'dark gray')}"]
    places = {concern: place for place, concern in enumerate(in_order(row.concern for row in host.rows))}
    rows = sorted(host.rows, key=lambda row: (_urgency(row), places[row.concern]))
    cells = [(row.concern, _knob(row), summary.show(row.now, 24), summary.show(row.wanted, 24)) for row in rows]
    titles = ("concern", "knob", "now", "wanted")
    widths = [max(width(text) for text in column) for column in zip(titles, *cells)]
    room = columns - sum(widths) - 2 * (len(widths) + 1)
    count = Counter(row.reason for row in rows if not row.upkeep)
    for reason, number in count.items():
        if number >= worth.MANY:
            lines += _indented(f"{number} settings: ", reason, columns)
    rows = [row._replace(reason="") if count[row.reason] >= worth.MANY else row for row in rows]
    if room < READABLE:
        return lines + [line for row in rows for line in _stacked(row, columns, paint)]
    lines.append(
        paint("  " + "  ".join(pad(title, size) for title, size in zip((*titles, "why"), (*widths, 3))), "bold")
    )
    for row, texts in zip(rows, cells):
        why = wrap(_why(row), room) + (wrap(row.gain, room) if row.gain else [])
        columns_text = "  ".join(pad(text, size) for text, size in zip(texts, widths))
        lines.append(f"{_mark(row.status, paint)} {columns_text}  {why[0]}".rstrip())
        lines += [" " * (columns - room) + line for line in why[1:]]
    return lines


def _urgency(row: ReportedFinding) -> int:
    """0 for what there is to do, or was done; 1 for what else is open; 2 for the rest, also for upkeep."""
    changes = row.status in (FAILED, *worth.CHANGES)
    return 2 if row.upkeep or not (changes or row.status in OPEN) else int(not changes)


def _knob(row: ReportedFinding) -> str:
    return " ".join(part for part in (row.knob, row.place) if part)


def _why(row: ReportedFinding) -> str:
    words = BY_NAME[row.status].words
    lead = "" if row.status in ("ok", "would_change", "changed") else words
    return ": ".join(filter(None, (lead, row.reason)))


def _stacked(row: ReportedFinding, columns: int, paint: Paint) -> List[str]:
    name = " ".join(part for part in (row.concern, _knob(row)) if part)
    change = summary.change_of(row._asdict()) or summary.show(row.now)
    fits = width(f"{name}  {change}") <= columns - 2
    first, *more = [f"{name}  {change}"] if fits else wrap(name, columns - 2)
    texts = ("" if fits else change, _why(row), row.gain)
    return [
        f"{_mark(row.status, paint)} {first}",
        *(f"  {line}" for line in more),
        *(f"    {line}" for text in texts if text for line in wrap(text, columns - 4)),
    ]


def _sizing(host: HostReport, columns: int, paint: Paint) -> List[str]:
    """The arithmetic behind the findings about the instance's size."""
    if not host.sizing:
        return []
    return ["", paint("Sizing", "bold"), *(line for text in host.sizing for line in led("- ", text, columns))]


def _next_step(report: Report, columns: int, paint: Paint) -> List[str]:
    host = report.hosts[0]
    fix, without = summary.everything(report)
    if not fix or not any(row.status == "would_change" and row.concern not in host.errors for row in host.findings):
        return []
    title = f"To apply the changes{f' {without}' if without else ''}: "
    lead, *more = _fix(fix, columns - len(title))
    return [f"{title}{paint(lead, 'bold')}", *(f"  {paint(line, 'bold')}" for line in more)]


def _fix(fix: str, columns: int) -> List[str]:
    """Wrap a sentence; a command stays on one line, so that it can be copied."""
    return [fix] if commands.is_command(fix) else wrap(fix, columns)


# --- below the table ---


def _commands(report: Report, paint: Paint) -> List[str]:
    """The commands of each host, not wrapped, so that they can be copied; hosts with the same commands share them."""
    names: Dict[Tuple[str, ...], List[str]] = {}
    for host in report.hosts:
        if host.commands:
            names.setdefault(host.commands, []).append(host.name)
    lines: List[str] = []
    for typed, hosts in names.items():
        lines += ["", paint(f"# On {span(tuple(hosts))}", "bold"), *typed]
    return lines


def _tops(report: Report, columns: int, paint: Paint) -> List[str]:
    tops = summary.top_findings(report)
    if not tops:
        return [f"{summary.all_clear(report, 'nothing is left to do').capitalize()}."]
    lines = [paint(summary.tops_title(report, tops), "bold")]
    for top in tops[: summary.TOPS]:
        lead = plural(len(top.hosts), "host").rjust(11)
        words = "" if top.change else f"  {BY_NAME[top.status].words}"
        name = clip(top.name, columns - width(lead) - 4)
        rest = clip(f"{words}  {top.change}".rstrip(), columns - width(lead) - 4 - width(name))
        lines.append(f"{lead}  {_mark(top.status, paint)} {paint(name, 'bold')}{rest}")
        more = f" (and {plural(top.other_reasons, 'other reason')})" if top.other_reasons else ""
        lines += _titled("why", wrap(top.reason + more, columns - 11), paint)
        lines += _titled("gain", wrap(top.gain, columns - 11), paint) if top.gain else []
        lines += _titled("fix", [paint(line, "bold") for line in _fix(top.fix, columns - 11)], paint) if top.fix else []
    hidden = len(tops) - summary.TOPS
    return lines + ([f"     {plural(hidden, 'further finding')} in the report"] if hidden > 0 else [])


def _titled(title: str, lines: Sequence[str], paint: Paint) -> List[str]:
    return [f"     {paint((title if not i else '').ljust(5), 'dark gray')} {part}" for i, part in enumerate(lines)]


def _reboots(report: Report, columns: int, paint: Paint) -> List[str]:
    names = tuple(host.name for host in report.hosts if host.reboot_required)
    if not names:
        return []
    sentence = f"{plural(len(names), 'host')} {'needs' if len(names) == 1 else 'need'} a reboot: "
    return [paint(line, "purple") for line in _indented(sentence, span(names), columns)]


def _drift(report: Report, columns: int, paint: Paint) -> List[str]:
    if report.drift is None:
        return []
    changes = report.drift["changes"]
    counted = plural(len(changes), "change")
    head = f"Drift since {report.drift['since']}: {counted if changes else summary.all_clear(report, counted)}"
    lines = ["", *(paint(line, "bold") for line in wrap(head, columns))]
    for change in changes[: summary.TOPS]:
        sentence = f"{change['host']}  {change['what']}: {change['before']} → {change['after']}"
        sentence += f", owner: {change['owner']}" if change["owner"] else ""
        lines += led("  ", sentence, columns)
    rest = len(changes) - summary.TOPS
    lines += [f"  and {rest:,} more in the report"] if rest > 0 else []
    left_out = summary.left_out(report)
    return lines + (led("  ", left_out, columns) if left_out else [])


def _gate(report: Report, columns: int, paint: Paint) -> List[str]:
    gate = report.gate
    if gate is None:
        return []
    if not gate.hosts:
        line = f"audit_fail_on ({', '.join(gate.statuses)}): {summary.all_clear(report, 'none found')}"
        return [paint(line, "green") if line.endswith("found") else line]
    sentence = f"{plural(gate.findings, 'finding')} on {span(gate.hosts)}"
    return [paint(line, "red") for line in _indented("audit_fail_on: ", sentence, columns)]
