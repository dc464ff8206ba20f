# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read of a run: its progress, its block at the end, and Markdown. Pure. PRIVATE to the collection."""

from __future__ import annotations

import json
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.each import Part
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.guards import GUARDS
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.history import history_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.interval import Comparison
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.order import UNTUNED
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.record import EACH, PAIR, SHAM, Measurement, Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.rules import BETTER, SAME, WORSE
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.verdict import Verdict, verdict
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import clipped, printable

SCOPE = "this load, this host, this hour"
_LONGEST = 100  # characters of a command


class Ending(NamedTuple):
    """What was done to the host at the end of a run, and what it had compared."""

    kept: bool
    tested: Sequence[str]
    untested: Sequence[str] = ()
    tuned_before: bool = False  # by nearmetal, and so it is again where the tuning isn't kept
    reboot_required: bool = False
    wanted: Mapping[str, Sequence[Any]] = {}  # what the tuning sets, by setting


def progress(record: Record, busiest: str = "") -> str:
    """One line after a measurement; `busiest` is the program that used the most CPU time beside the load."""
    last = record.measurements[-1]
    found = verdict(record)
    place = f"{record.start.host}  {_place(record, last, found.pairs_at_most)}"
    return f"{place}: {_figure(last)}{_so_far(record, last, found, busiest)}"


def _place(record: Record, last: Measurement, most: int) -> str:
    again = f", attempt {last.attempt}" if last.attempt > 1 else ""
    if last.phase == EACH:
        return f"{last.concern}, pair {last.pair} of at most {most}{again}, {condition(record, last)}"
    if last.phase == PAIR:
        return f"pair {last.pair} of at most {most}{again}, {condition(record, last)}"
    if last.phase == SHAM:
        return f"sham pair {last.pair}{again}, {condition(record, last)}"
    return f"warm-up {last.pair}, {condition(record, last)}"


def _figure(last: Measurement) -> str:
    if last.error:
        return last.error
    metric = last.metrics[0]
    return " ".join(filter(None, (metric.name, f"{metric.value:.6g}", metric.unit)))


def _so_far(record: Record, last: Measurement, found: Verdict, busiest: str) -> str:
    """What the run says so far: the guard that made this measurement void, or the evidence."""
    history = history_of(record)
    attempts = [*history.warm_ups, *history.shams, *history.pairs]
    attempts += [attempt for pairs in history.parts.values() for attempt in pairs]
    firings = [firing for attempt in attempts for firing in attempt.firings if last in attempt.measurements]
    if firings:
        program = f", most by {busiest}: if it is a part of the load, name it in prove_programs" if busiest else ""
        why = f"{firings[0].detail}{program if firings[0].guard == 'foreign_cpu' else ''}"
        return f"; void: {GUARDS[firings[0].guard]} ({why})"
    first = _of_progress(found, last)
    if first is None or first.change is None:
        return ""
    left = "" if found.seconds_left is None else f"; at most {duration(found.seconds_left)} left"
    return f"; so far {_change(first)}, evidence {_evidence(first)}{left}"


def _of_progress(found: Verdict, last: Measurement) -> Optional[Comparison]:
    """What the pairs to which the measurement belongs say so far."""
    if last.phase == EACH:
        return next((part.comparison for part in found.parts if part.concern == last.concern), None)
    return found.metrics[0] if found.metrics and last.phase == PAIR else None


def condition(record: Record, measurement: Measurement) -> str:
    """The state of the host in a measurement."""
    if measurement.phase == EACH:
        return f"without {measurement.concern}" if measurement.host_state == UNTUNED else "with all"
    return "against" if record.start.against and measurement.host_state == UNTUNED else measurement.host_state


def block(record: Record, found: Verdict, ending: Ending) -> List[str]:
    """The lines at the end of a run."""
    lines = [f"PROVE  {record.start.host}  {headline(found, ending)}"]
    lines += [f"  {reason}" for reason in found.reasons]
    lines += [f"  {_named(metric)}  {_change(metric)}   evidence {_evidence(metric)}" for metric in found.metrics]
    lines += [f"  {line}" for line in _quality(found)]
    lines += [f"  {line}" for line in parts(found)]
    lines.append(f"  {_cost(record)}")
    lines.append(f"  tested: {', '.join(ending.tested)}{_against(record)}")
    if ending.untested:
        listed = clipped("; ".join(map(printable, ending.untested)), 400)
        lines.append(f"  {_left_out(ending)}: {listed}{'; needs a reboot' if ending.reboot_required else ''}")
    lines.append(f"  seed {found.seed}   {SCOPE}")
    return lines


def parts(found: Verdict) -> List[str]:
    """Which concern did it: one line each, the strongest evidence first."""
    ordered = sorted(found.parts, key=lambda part: -part.comparison.evidence)
    return [
        f"with {part.concern}: {_effect(part)}: {_change(part.comparison)}   evidence {_evidence(part.comparison)},"
        f" {part.pairs} pairs{f', {part.repeated} repeated' if part.repeated else ''}"
        for part in ordered
    ]


def _effect(part: Part) -> str:
    said = part.verdict.replace("_", " ")
    if part.verdict in (BETTER, WORSE):
        said += " than without it"
    if part.verdict == SAME:
        said = "the same as without it"
    return f"{said} ({part.reason})" if part.reason else said


def tuning(options: Mapping[str, Any]) -> str:
    """What the options of `tune` ask for, in a few words; empty for none."""
    said = [f"{name} {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in sorted(options.items())]
    return clipped(printable(", ".join(said)), 200)


def _against(record: Record) -> str:
    return f"; against {record.start.against}, not untuned" if record.start.against else ""


def headline(found: Verdict, ending: Ending) -> str:
    """The verdict and what was done."""
    answer = found.verdict.replace("_", " ")
    if ending.kept:
        return f"{answer}, kept"
    if found.keep:
        return f"{answer}; tune keeps it"
    return f"{answer}; tuned as before the run: restore takes it back" if ending.tuned_before else f"{answer}, restored"


def _left_out(ending: Ending) -> str:
    return "written, untested" if ending.kept else "not tested"


def summary(found: Verdict, ending: Ending) -> str:
    """The whole in one line: the figure that decided, or else what did."""
    said = found.reasons[0]
    if found.by_primary:
        first = found.metrics[0]
        said = f"{_named(first)} {_change(first)}, evidence {_evidence(first)}"
    return f"{headline(found, ending)}: {said}"


def _named(metric: Comparison) -> str:
    unit = f" in {metric.unit}" if metric.unit else ""
    return f"{metric.name}{unit} ({metric.better} is better)"


def _change(metric: Comparison) -> str:
    if metric.change is None:
        return "no pairs"
    return f"{percent(metric.change)} ({interval(metric.low, metric.high)})"


def interval(low: Optional[float], high: Optional[float]) -> str:
    """What the figures exclude so far."""
    if low is None and high is None:
        return "nothing is excluded yet"
    if low is None:
        return f"below {percent(high or 0.0)}"
    if high is None:
        return f"above {percent(low)}"
    return f"{signed(low)} to {signed(high)}"


def _evidence(metric: Comparison) -> str:
    ratio = f"{metric.evidence:.0f}" if metric.evidence >= 10 else f"{metric.evidence:.1f}"
    ratio = "more than 100000" if metric.evidence > 100000 else ratio
    return f"{ratio}:1 ({metric.needed:.0f}:1 is needed)"


def _quality(found: Verdict) -> List[str]:
    repeated = sum(found.repeated.values())
    why = f", {repeated} repeated ({', '.join(found.repeated)})" if repeated else ""
    parts = [f"{found.pairs} pairs of at most {found.pairs_at_most}{why}"]
    if found.noise is not None:
        parts.append(f"noise {found.noise:.1f} % within a pair")
    sham = found.sham
    if sham.change is not None:
        parts.append(f"A/A {percent(sham.change)} ({interval(sham.low, sham.high)})")
    lines = [", ".join(parts)]
    parts = []
    if found.smallest_visible is not None:
        parts.append(f"{found.pairs_at_most} pairs could show {found.smallest_visible:.1f} %")
    if found.carry_over is not None:
        parts.append(f"carry-over {percent(found.carry_over)}")
    guarded = [metric.name for metric in found.metrics[1:] if metric.not_worse]
    if guarded:
        parts.append(f"{', '.join(guarded)} not worse than the margin")
    if found.unwatched:
        parts.append(f"not watched: {', '.join(found.unwatched)}")
    return [*lines, *(["; ".join(parts)] if parts else [])]


def _cost(record: Record) -> str:
    """What switching cost, and how long the run took."""
    switches = sorted(measurement.switch_seconds for measurement in record.measurements)
    if not switches:
        return "nothing was measured"
    typical = switches[len(switches) // 2]
    seconds = record.measurements[-1].ended - record.start.began
    return f"a switch took {typical:.2f} s, the whole run {duration(seconds)}; load: {command(record)}"


def command(record: Record) -> str:
    """The load, and where it ran."""
    where = f" (on {record.start.load_on})" if record.start.load_on else ""
    return clipped(printable(record.start.load), _LONGEST) + where


def percent(value: float) -> str:
    """A change in percent, with its sign."""
    return f"{signed(value)} %"


def signed(value: float) -> str:
    """A number with its sign, and a true minus."""
    text = f"{value:+.1f}" if abs(value) < 1e6 else f"{value:+.2g}"
    return ("0.0" if text in ("+0.0", "-0.0") else text).replace("-", "−")


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def markdown(record: Record, found: Verdict, ending: Ending) -> str:
    """The report as Markdown, with every measurement."""
    lines = [f"# Prove: {cell(record.start.host)}: {headline(found, ending)}", ""]
    lines += [f"{cell(reason)}.\n" for reason in found.reasons]
    lines += ["| figure | change | interval | evidence |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(map(cell, row(metric)))} |" for metric in found.metrics]
    lines += [""] if found.parts else []
    lines += [f"- {cell(line)}" for line in parts(found)]
    lines += ["", *(f"- {cell(line)}" for line in facts(record, found, ending)), f"- {SCOPE}", ""]
    lines += ["| phase | pair | attempt | state | figures |", "|---|---|---|---|---|"]
    for measurement in record.measurements:
        figures = measurement.error or ", ".join(f"{metric.name} {metric.value:.6g}" for metric in measurement.metrics)
        phase, state = measurement.phase.replace("_", " "), cell(condition(record, measurement))
        lines.append(f"| {phase} | {measurement.pair} | {measurement.attempt} | {state} | {cell(figures)} |")
    return "\n".join(lines) + "\n"


def row(metric: Comparison) -> Tuple[str, str, str, str]:
    """One metric as cells of a table: its name, its change, the interval, the evidence."""
    change = "no pairs" if metric.change is None else percent(metric.change)
    return _named(metric), change, interval(metric.low, metric.high), _evidence(metric)


def facts(record: Record, found: Verdict, ending: Ending) -> List[str]:
    """What else is to be known of a run."""
    said = [*_quality(found), _cost(record), f"tested: {', '.join(ending.tested)}{_against(record)}"]
    said += [f"{_left_out(ending)}: {text}" for text in ending.untested]
    said += ["needs a reboot"] if ending.reboot_required else []
    return [*said, f"seed {found.seed}, nearmetal {record.start.version}"]


def cell(text: str) -> str:
    """A text that stays within a cell of a table, and is no markup."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|!" else char for char in printable(text))
