# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read about a run: its progress, its block at the end, and Markdown. Pure. PRIVATE to the collection."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...module_utils._prove.statistics.forecast import describe_levels, measurements_at_most
from ...module_utils._prove.statistics.guards import GUARDS
from ...module_utils._prove.statistics.history import history_of
from ...module_utils._prove.statistics.interval import Comparison
from ...module_utils._prove.statistics.keeping import missing
from ...module_utils._prove.statistics.order import TUNED, UNTUNED
from ...module_utils._prove.statistics.record import EACH, PAIR, SHAM, SOAK, WARM_UP, Measurement, Place, Record
from ...module_utils._prove.statistics.rules import BETTER, SAME, WORSE
from ...module_utils._prove.statistics.settings import Settings
from ...module_utils._prove.statistics.single_concerns import Part
from ...module_utils._prove.statistics.verdict import Verdict, verdict
from ...module_utils._words import LONGEST_VALUE, clipped, counted, in_words, printable, status_words
from . import activity
from .figures import at_least, duration, figure, interval, percent, ratio

UNTUNED_AGAINST = "against"  # the untuned state where it is another tuning
PROGRAMS_HINT = "if it serves the load, name it in prove_programs, and if it always runs here, in prove_tolerate"
_USUAL = 220  # measurements: the median of simulated runs that keep such a gain
_SET_BY_OTHERS = "left as somebody else set it"
_NO_PAIRS = "no pairs"
SCOPE = "holds for this load, this host and this hour"
_LONGEST_COMMAND = 100  # characters of a command


class Ending(NamedTuple):
    """What a run compared, and what it did to the host at its end."""

    kept: bool
    tested: Sequence[str]
    untested: Sequence[str] = ()  # what the tuning sets too
    written: Sequence[str] = ()  # the settings of `untested` that were written with what was kept
    left_out: Sequence[str] = ()  # what is never written: a driver refuses it, or only the other tuning sets it
    tuned_before: bool = False  # whether nearmetal had tuned the host before; if so, it is tuned again after the run
    reboot_required: bool = False
    wanted: Mapping[str, Sequence[Any]] = {}  # what the tuning sets, by setting
    set_by_others: Sequence[str] = ()  # what a restore left alone
    sha256: str = ""  # of the record's file


def progress(record: Record, busiest: str = "") -> str:
    """One line after a measurement; `busiest` is the program that used the most CPU time beside the load."""
    last = record.measurements[-1]
    result = verdict(record)
    place = f"{record.start.host}  {_place(record, last, result.pairs_at_most)}"
    return f"{place}: {_figure(last)}{_interim_result(record, last, result, busiest)}"


def _place(record: Record, last: Measurement, most_pairs: int) -> str:
    attempt = f", attempt {last.attempt}" if last.attempt > 1 else ""
    if last.phase == EACH:
        return f"{last.concern}, pair {last.pair} of at most {most_pairs}{attempt}, {condition(record, last)}"
    if last.phase == PAIR:
        return f"pair {last.pair} of at most {most_pairs}{attempt}, {condition(record, last)}"
    if last.phase == SOAK:
        return f"pair of stays {last.pair}, load {last.attempt}, {condition(record, last)}"
    if last.phase == SHAM:
        return f"sham pair {last.pair}{attempt}, {condition(record, last)}"
    return f"warm-up {last.pair}, {condition(record, last)}"


def _figure(last: Measurement) -> str:
    if last.error:
        return last.error
    metric = last.metrics[0]
    return " ".join(filter(None, (metric.name, figure(metric.value), metric.unit)))


def _interim_result(record: Record, last: Measurement, result: Verdict, busiest: str) -> str:
    """The guard that voided this measurement, or the evidence so far; empty for neither."""
    firings = history_of(record).judged[-1][1]
    if firings:
        if firings[0].detail == last.error:
            return f"; void: {GUARDS[firings[0].guard]}"
        program = f", most by {busiest}: {PROGRAMS_HINT}" if busiest else ""
        detail = f"{firings[0].detail}{program if firings[0].guard.endswith('foreign_cpu') else ''}"
        return f"; void: {GUARDS[firings[0].guard]} ({detail})"
    comparison = _phase_comparison(result, last)
    if comparison is None or comparison.change is None:
        return ""
    remaining = "" if result.seconds_left is None else f"; at most {duration(result.seconds_left)} left"
    return f"; so far {_change(comparison)}, evidence {_evidence(comparison)}{remaining}"


def _phase_comparison(result: Verdict, last: Measurement) -> Optional[Comparison]:
    """The comparison of the pairs to which the measurement belongs; None without any."""
    if last.phase == EACH:
        return next((part.comparison for part in result.parts if part.concern == last.concern), None)
    return (
        result.metrics[0] if result.metrics and (last.phase == PAIR or (last.phase == SOAK and result.stays)) else None
    )


def condition(record: Record, measurement: Measurement) -> str:
    """The state of the host in a measurement."""
    if measurement.phase == EACH:
        return f"without {measurement.concern}" if measurement.host_state == UNTUNED else "with all"
    return UNTUNED_AGAINST if record.start.against and measurement.host_state == UNTUNED else measurement.host_state


def plan(host: str, settings: Settings, tested: Sequence[str], untested: Sequence[str], against: str) -> List[str]:
    """What a run would do, the summary first, as check mode shows it."""
    concerns = len({name.partition(".")[0] for name in tested})
    measurements = measurements_at_most(settings, concerns if settings.each and concerns > 1 else 0)
    seconds = settings.seconds + settings.settle
    usual = min(_USUAL, measurements)
    length = (
        f"some {usual} measurements, about {duration(usual * seconds)}, for a gain of 5 % in noise of 2 %, at most"
        f" {measurements}, about {duration(measurements * seconds)},"
    )
    lines = [
        f"{host}  would compare {against or 'untuned'} with tuned in {', '.join(tested)}",
        f"  {length} if each takes {seconds:g} s with settling, without switches and repetitions; nothing was switched",
    ]
    if untested:
        lines.append(f"  would not be tested: {clipped(_by_reason(untested), 600)}")
    return lines


def block(record: Record, result: Verdict, ending: Ending) -> List[str]:
    """The lines at the end of a run."""
    lines = [f"PROVE  {record.start.host}  {headline(result, ending)}"]
    lines += [f"  {reason}" for reason in result.reasons]
    for metric in result.metrics:
        lines.append(f"  {_label(metric)}  {_change_with_evidence(metric)}")
        if metric.change is not None:
            levels = ", ".join(map(" ".join, _levels(record, metric)))
            lines.append(f"    medians of the pairs, with quartiles: {levels}")
    lines += [f"  {line}" for line in (*_quality(result), *activity.lines(record))]
    lines += [f"  {line}" for line in parts(result)]
    lines.append(f"  {_cost(record)}")
    lines.append(f"  tested: {_tested(record, ending)}{_against(record)}")
    lines += [f"  {label}: {clipped(_by_reason(texts), 600)}{hint}" for label, texts, hint in _untested(ending)]
    if ending.left_out:
        lines.append(f"  left out: {clipped('; '.join(map(printable, ending.left_out)), 400)}")
    if ending.set_by_others:
        lines.append(f"  {_SET_BY_OTHERS}: {clipped('; '.join(ending.set_by_others), 400)}")
    lines.append(f"  seed {result.seed}   {SCOPE}")
    return lines


def parts(result: Verdict) -> List[str]:
    """A line for each concern that was compared, the strongest evidence first."""
    ordered = sorted(result.parts, key=lambda part: -part.comparison.evidence)
    return [f"with {part.concern}: {_effect(part)}: {_pairs_of(part)}" for part in ordered]


def _pairs_of(part: Part) -> str:
    pairs = f", {part.pairs} pairs" if part.pairs else ""
    repeated = f", {part.repeated} repeated" if part.repeated else ""
    return f"{_change_with_evidence(part.comparison)}{pairs}{repeated}"


def _effect(part: Part) -> str:
    effect = part.verdict.replace("_", " ")
    if part.verdict in (BETTER, WORSE):
        effect += " than without it"
    if part.verdict == SAME:
        effect = "the same as without it"
    return f"{effect} ({part.reason})" if part.reason else effect


def tuning(options: Mapping[str, Any]) -> str:
    """The options of `tune` and their values on one line; empty without options."""
    settings = [
        f"{name} {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in sorted(options.items())
    ]
    return clipped(printable(", ".join(settings)), 200)


def _tested(record: Record, ending: Ending) -> str:
    """The settings that were compared, with both values where all their places have the same."""
    changes: Dict[str, Dict[str, None]] = {}
    for setting, _where, *values in map(place_cells, record.start.places):
        changes.setdefault(setting, {})[" → ".join(values)] = None
    known = {name: next(iter(found)) if len(found) == 1 else f"{len(found)} changes" for name, found in changes.items()}
    return ", ".join(f"{name} ({known[name]})" if name in known else name for name in ending.tested)


def place_cells(place: Place) -> Tuple[str, ...]:
    """A place that differs as cells of a table: the setting, where, and the value in each state."""
    return place.setting, place.where, *(in_words(value, "absent", LONGEST_VALUE) for value in place[2:])


def _levels(record: Record, metric: Comparison) -> List[Tuple[str, str]]:
    """The two states with the level of a metric in each: the median, and the quartiles."""
    return [
        (
            UNTUNED_AGAINST if record.start.against and level["state"] == UNTUNED else level["state"],
            "{} ({} to {})".format(*(figure(level[name]) for name in ("median", "lower", "upper"))),
        )
        for level in describe_levels(history_of(record))
        if level["metric"] == metric.name
    ]


def _against(record: Record) -> str:
    return f"; against {record.start.against}, not untuned" if record.start.against else ""


def headline(result: Verdict, ending: Ending) -> str:
    """The verdict, and what the run did to the host."""
    answer = result.verdict.replace("_", " ")
    if ending.kept:
        return f"{answer}, kept"
    others = ", but for what somebody else set" if ending.set_by_others else ""
    if result.keep:
        return f"{answer}, restored (run tune to keep it){others}"
    tuning_before = (
        " to the tuning from before the run (nearmetal.ec2.restore removes it)" if ending.tuned_before else ""
    )
    return f"{answer}, restored{tuning_before}{others}"


def _untested(ending: Ending) -> List[Tuple[str, List[str], str]]:
    """What was not tested: a label, each setting with its reason, and what follows. First what was written."""
    written = [text for text in ending.untested if text.partition(":")[0] in ending.written]
    others = [text for text in ending.untested if text not in written]
    pending = f"; {status_words('needs_reboot')}" if ending.reboot_required else ""
    groups = [("written, untested", written, pending), ("not tested", others, "; tune sets it" if ending.kept else "")]
    return [group for group in groups if group[1]]


def _by_reason(texts: Sequence[str]) -> str:
    """The settings on one line, those with the same reason together."""
    names: Dict[str, List[str]] = {}
    for text in map(printable, texts):
        name, _colon, reason = text.partition(": ")
        names.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(of_reason)}: {reason}" for reason, of_reason in names.items())


def summary(result: Verdict, ending: Ending) -> str:
    """The verdict in one line, with the figure that decided, or else the reason."""
    reason = result.reasons[0]
    if result.by_primary:
        first = result.metrics[0]
        reason = f"{_label(first)} {_change(first)}, evidence {_evidence(first)}"
    return f"{headline(result, ending)}: {reason}"


def _label(metric: Comparison) -> str:
    unit = f" in {metric.unit}" if metric.unit else ""
    return f"{metric.name}{unit} ({metric.better} is better)"


def _change(metric: Comparison) -> str:
    if metric.change is None:
        return _NO_PAIRS
    return f"{at_least(metric.low, metric.high)}{_typical(metric)}"


def _typical(metric: Comparison) -> str:
    return f"{percent(metric.change or 0.0)} ({interval(metric.low, metric.high)})"


def _change_with_evidence(metric: Comparison) -> str:
    evidence = "" if metric.change is None else f"   evidence {_evidence(metric)}"
    return f"{_change(metric)}{evidence}"


def _evidence(metric: Comparison) -> str:
    return f"{ratio(metric.evidence)} ({metric.needed:.0f}:1 is needed)"


def _quality(result: Verdict) -> List[str]:
    repeated = sum(result.repeated.values())
    repetitions = f", {repeated} repeated ({', '.join(result.repeated)})" if repeated else ""
    parts = [f"{result.pairs} pairs of at most {result.pairs_at_most}{repetitions}"]
    if result.noise is not None:
        parts.append(f"noise {result.noise:.1f} % within a pair")
    sham = result.sham
    if sham.change is not None:
        parts.append(f"A/A {percent(sham.change)} ({interval(sham.low, sham.high)})")
    lines = [", ".join(parts)]
    parts = []
    if result.smallest_visible is not None:
        parts.append(f"{result.pairs_at_most} pairs could show a change of {result.smallest_visible:.1f} %")
    if result.carry_over is not None:
        parts.append(f"carry-over {percent(result.carry_over)}")
    guarded = [metric.name for metric in result.metrics[1:] if metric.not_worse]
    if guarded:
        parts.append(f"{', '.join(guarded)} not worse by more than the limit")
    if result.unwatched:
        parts.append(f"not watched: {', '.join(result.unwatched)}")
    lines += ["; ".join(parts)] if parts else []
    lost = [missing.sentence(figure) for figure in result.missing if figure.tuned]
    soak = f"{counted(result.soaked, 'further load')} before it was kept" if result.soaked and result.keep else ""
    if result.switched:
        soak = (
            f"the change is that of {counted(result.stays, 'pair')} of stays, {counted(result.soaked, 'further load')};"
            f" right after switches it is {_typical(result.switched)}, evidence {_evidence(result.switched)}"
        )
    return [*lines, *filter(None, [soak, "; ".join(lost)])]


def _cost(record: Record) -> str:
    """What switching cost, and how long the run took."""
    # Of a stay only the first load comes after a switch.
    measurements = [last for last in record.measurements if last.phase != SOAK or last.attempt == 1]
    if record.start.settings.reboot:
        measurements = [last for last in measurements if last.phase != WARM_UP]
    switches = sorted(measurement.switch_seconds for measurement in measurements)
    if not switches:
        return "nothing was compared" if record.measurements else "nothing was measured"
    typical = switches[len(switches) // 2]
    seconds = record.measurements[-1].ended - record.start.began
    if record.start.settings.reboot:
        cost = f"{len(switches)} reboots of {duration(typical)} each"
    else:
        cost = f"a switch took {typical:.2f} s"
    return f"{cost}, the whole run {duration(seconds)}; load: {command(record)}"


def command(record: Record) -> str:
    """The load, and where it ran."""
    where = f" (on {record.start.load_on})" if record.start.load_on else ""
    return clipped(printable(record.start.load), _LONGEST_COMMAND) + where


def markdown(record: Record, result: Verdict, ending: Ending) -> str:
    """The report as Markdown, with every measurement."""
    lines = [f"# Prove: {cell(record.start.host)}: {headline(result, ending)}", ""]
    lines += [f"{cell(reason)}.\n" for reason in result.reasons]
    lines += [*_table(columns(record), [row(record, metric) for metric in result.metrics])]
    lines += [""] if result.parts else []
    lines += [f"- {cell(line)}" for line in parts(result)]
    lines += ["", *(f"- {cell(line)}" for line in facts(record, result, ending)), f"- {SCOPE}", ""]
    if record.start.places:
        lines += [*_table(("setting", "where", *columns(record)[4:]), map(place_cells, record.start.places)), ""]
    return "\n".join([*lines, *_table(("phase", "pair", "attempt", "state", "figures", "void"), loads(record))]) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> List[str]:
    lines = [f"| {' | '.join(map(cell, cells))} |" for cells in (head, *rows)]
    return [lines[0], f"|{'---|' * len(head)}", *lines[1:]]


def loads(record: Record) -> List[Tuple[str, ...]]:
    """Each load as cells of a table, with its figures, and what voided it."""
    return [
        (
            load.phase.replace("_", " "),
            str(load.pair),
            str(load.attempt),
            condition(record, load),
            load.error or ", ".join(f"{metric.name} {figure(metric.value)}" for metric in load.metrics),
            "; ".join(f"{firing.guard}: {firing.detail}" for firing in firings),
        )
        for load, firings in history_of(record).judged
    ]


def columns(record: Record) -> Tuple[str, ...]:
    """The heads of the columns of `row`."""
    return "figure", "change", "interval", "evidence", UNTUNED_AGAINST if record.start.against else UNTUNED, TUNED


def row(record: Record, metric: Comparison) -> Tuple[str, ...]:
    """One metric as cells of a table: its name, its change, the interval, the evidence, the levels."""
    if metric.change is None:
        return _label(metric), _NO_PAIRS, "–", "–", "–", "–"
    levels = [text for _state, text in _levels(record, metric)]
    return _label(metric), percent(metric.change), interval(metric.low, metric.high), _evidence(metric), *levels


def facts(record: Record, result: Verdict, ending: Ending) -> List[str]:
    """What a report lists of a run beside its figures, one sentence each."""
    lines = [*_quality(result), *activity.lines(record), _cost(record), *activity.version(record)]
    start = record.start
    lines += [f"tested: {_tested(record, ending)}{_against(record)}"]
    lines += [f"{label}: {text}{hint}" for label, texts, hint in _untested(ending) for text in texts]
    lines += [f"left out: {text}" for text in ending.left_out]
    lines += [f"{_SET_BY_OTHERS}: {text}" for text in ending.set_by_others]
    lines += [status_words("needs_reboot")] if ending.reboot_required else []
    about = {
        "serves the load": ", ".join(start.programs),
        "tolerated": ", ".join(start.tolerate),
        "health": start.health,
        "restarts": start.restart,
    }
    about["measured on"] = ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in start.machine.items() if text)
    lines += [f"{name}: {printable(text)}" for name, text in about.items() if text]
    lines += [f"seed {result.seed}, nearmetal {start.version}"]
    return lines + ([f"SHA-256 of the record: {ending.sha256}"] if ending.sha256 else [])


def cell(text: str) -> str:
    """A text that stays within a cell of a table, and is no markup."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|!" else char for char in printable(text))
