# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change is worth and what it costs: the verdict of a report, and the order of its findings. PRIVATE."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from ...module_utils import _measured
from ...module_utils._concerns.registry import HEADINGS
from ...module_utils._planning import gate
from ...module_utils._planning.waivers import EXPIRED, UNWANTED
from ...module_utils._prove.statistics.rules import BETTER, WORSE
from ...module_utils._words import span
from .._ansible.plays import AUDIT, TUNE
from . import commands, model
from .headings import OPEN
from .model import HostReport, Report, ReportedFinding, clause, plural

# What is known of a gain, the best first.
PROVEN, PUBLISHED, UNMEASURED, NO_GAIN, LOSS = "proven", "published", "unmeasured", "no_gain", "loss"
WORTH = {
    PROVEN: "proven here",
    PUBLISHED: "published figure",
    UNMEASURED: "unmeasured",
    NO_GAIN: "no gain measured",
    LOSS: _measured.LOSS,
}
BASE = "base"  # the workload of a host that names none
_CHOICE = "tune.workload"  # the finding with which `auto` says what runs
_PROGRAM = "tune.program"  # and the one about a program, which wants its name where its wishes count
_MOST_LEFT_OUT = 20  # hosts that a command leaves out by their names
MANY = 3  # findings with the same reason, which is said once for all of them
# Facts that a terminal shows, too.
SAID = REFUSED, OVER, NOT_LOOKED_AT, NEXT = "Refused", "Expired waivers", "Not looked at", "Next"
_APPLY = ("-e", "tune_workload_auto=apply")
_SUGGEST = ("-e", "tune_workload=auto", *_APPLY)
_NAME_WORKLOADS = (
    "say in tune_workload what the hosts do, in group_vars beside the inventory: Ansible reads none beside your"
    " playbook for a playbook of a collection; tune_workload: auto with tune_workload_auto: apply plans for what runs"
)
_PLAN_SUITED = "tune_workload_auto: apply plans {} for what runs there"
_ASK_FOR = "set in tune_concerns what tune_only names, or leave it out of tune_only"
_TUNE_ANYWAY = "{}_allow_not_ec2: true looks at hosts outside EC2 too"
# Classes of hosts of which nothing is looked at unless it is asked for, and what is said of them.
_LEFT = ", and nothing was looked at there"
_OUTSIDE = {
    "not_ec2": (f"isn't on EC2{_LEFT}", f"aren't on EC2{_LEFT}"),
    "container": (f"is a container{_LEFT}", f"are containers{_LEFT}"),
}
LEAVE_OUT = "leave it out with tune_exclude or tune_waivers"
_COUNTED = {**WORTH, PUBLISHED: "with a published figure", NO_GAIN: "without a gain when measured"}
# What a change costs, the least first.
FREE, RESTART, REBOOT, INTERRUPTS = "free", "restart", "reboot", "interrupts"
RISK = {
    FREE: "no interruption",
    RESTART: "restart of the service",
    REBOOT: "takes effect after a reboot",
    INTERRUPTS: "may interrupt for a moment",
}
_SAID = {  # of one and of several
    INTERRUPTS: ("may interrupt traffic or work for a moment",) * 2,
    REBOOT: ("takes effect after a reboot", "take effect after a reboot"),
}
CHANGES = ("would_change", "changed", "needs_reboot", "needs_restart")
_SETTLED = ("ok", "not_applicable", "waived")
_WITHOUT_REPORT = {
    model.FAILED: ("failed", "failed"),
    model.UNREACHABLE: ("was unreachable", "were unreachable"),
    model.SKIPPED: ("was skipped", "were skipped"),
    model.SILENT: ("gave no result", "gave no result"),
}


class _Words(NamedTuple):
    """What a run of a mode says of its settings, of one and of several."""

    done: Tuple[str, str]
    waits: str = ""  # the status of those of which it says something else
    later: Tuple[str, str] = ("", "")


_BACK_LATER = ("has its value from before after a reboot", "have their values from before after a reboot")
_PREVIEW = "restore in check mode"
_WORDS = {
    "audit": _Words(("can be tuned better",) * 2),
    "tune": _Words(
        ("was changed and verified", "were changed and verified"), "would_change", ("wasn't changed", "weren't changed")
    ),
    "restore": _Words(("was given back", "were given back"), "needs_reboot", _BACK_LATER),
    _PREVIEW: _Words(("would be given back",) * 2, "needs_reboot", _BACK_LATER),
}


class Verdict(NamedTuple):
    """The first lines of a report."""

    planned: str  # for which workloads, and for how much of a host; empty for what plans nothing
    lead: str
    facts: Tuple[Tuple[str, str], ...]  # what it is about, and a sentence
    command: str = ""  # what to run first, where nobody said what the hosts are for


def worth_of(host: HostReport, finding: ReportedFinding) -> str:
    """What is known of the gain of a finding on its host."""
    proof: Mapping[str, Any] = host.proven or {}
    if finding.name in proof.get("tested", ()):
        return {BETTER: PROVEN, WORSE: LOSS}.get(proof["verdict"], NO_GAIN)
    if finding.gain.startswith(_measured.LOSS):
        return LOSS
    if finding.gain.startswith((_measured.NO_GAIN, _measured.TRADE)):
        return NO_GAIN
    return PUBLISHED if finding.gain else UNMEASURED


def risks_of(host: HostReport) -> Dict[Tuple[str, str], str]:
    """Concern and knob → what the change costs, for the changes that cost something."""
    risks: Dict[Tuple[str, str], str] = {}
    for action in host.actions:
        key = (str(action.get("concern")), str(action.get("knob")))
        if action.get("disruptive") is True:
            risks[key] = INTERRUPTS
        elif action.get("scope") == "boot":
            risks.setdefault(key, REBOOT)
    for finding in host.findings:
        if finding.status == "needs_reboot":
            risks.setdefault((finding.concern, finding.knob), REBOOT)
    return risks


def risk_of(finding: ReportedFinding, risks: Mapping[Tuple[str, str], str]) -> str:
    """What a finding's change costs, by the risks of its host."""
    # The knob may be changed in the same run, without a restart of anything.
    return RESTART if finding.status == "needs_restart" else risks.get((finding.concern, finding.knob), FREE)


def counts(host: HostReport) -> Dict[str, int]:
    """How many findings a host has of each status that isn't settled, without what only keeps values."""
    counted = Counter("failed" for _concern in host.errors)
    counted.update(finding.status for finding in host.findings if not finding.upkeep)
    return {status: count for status, count in counted.items() if status not in _SETTLED}


def changes_of(host: HostReport) -> List[ReportedFinding]:
    """The settings that a run changes on a host, without what only keeps them, nor those of a concern that failed."""
    findings = (finding for finding in host.findings if finding.concern not in host.errors)
    return [finding for finding in findings if finding.status in CHANGES and not finding.upkeep]


def slower(report: Report) -> Tuple[str, ...]:
    """The settings to change that were measured as a loss."""
    changes = ((host, finding) for host in report.hosts for finding in to_tune(host))
    return tuple(dict.fromkeys(finding.name for host, finding in changes if worth_of(host, finding) == LOSS))


def to_tune(host: HostReport) -> List[ReportedFinding]:
    """The settings among these changes: not what a service keeps of an old value until it starts anew."""
    return [finding for finding in changes_of(host) if finding.status != "needs_restart"]


def verdict(report: Report) -> Verdict:
    """What a reader needs first: how much there is to do, for whom, what it brings and what it costs."""
    reported = [host for host in report.hosts if host.state == model.REPORTED and not outside(host)]
    changes = [(host, finding) for host in reported for finding in to_tune(host)]
    reporting = () if report.restores else reported
    asked = [host for host in reporting if not _asked_nothing(host)]
    looked = {concern for host in asked for concern in host.statuses() if concern in HEADINGS}
    unseen = [concern for concern in HEADINGS if concern not in looked] if looked else []
    within = f" in the {len(looked)} of {plural(len(HEADINGS), 'concern')} that were looked at" if unseen else ""
    nameless = [host.name for host in reporting if looked and _names_none(host)]
    suited = {host.name: _unplanned(host) for host in reporting if _unplanned(host)}
    choosable = suited or 0 < len(nameless) == len(reported)
    return Verdict(
        _planned(reported, [concern for concern in HEADINGS if concern in looked]) if looked else "",
        _lead(report, reported, changes, within),
        (
            *_facts(report, reported, changes),
            *((REFUSED, words) for words in _say_refused(reported) if reported[1:]),
            *((OVER, words) for words in _say_expired(reporting)),
            *([(NOT_LOOKED_AT, ", ".join(unseen))] if unseen else ()),
            *([(NEXT, _ASK_FOR)] if any(map(_unwanted, reporting)) else ()),
            *((NEXT, words) for words in _say_stopped(report)),
            *((NEXT, _TUNE_ANYWAY.format(role)) for role in _roles_outside(report)[:1]),
            # At last, because the command follows.
            *([(NEXT, _say_nameless(nameless, len(reported)))] if nameless else ()),
            *([(NEXT, _PLAN_SUITED.format(span(tuple(suited), 4)))] if suited else ()),
        ),
        commands.finishing(report) or (_next_command(report, _APPLY if suited else _SUGGEST) if choosable else ""),
    )


def _say_stopped(report: Report) -> Iterable[str]:
    """How a run goes on that stopped at a host before it came to all others."""
    causes = [host.name for host in report.hosts if host.state in (model.FAILED, model.UNREACHABLE)]
    left = commands.left(report)
    if left:
        yield f"{span(left)} {'is' if len(left) == 1 else 'are'} left to restore"
    elif causes and report.states()[model.SILENT]:
        limit = shlex.quote(":".join([report.run.limit or "all", *(f"!{name}" for name in causes[:_MOST_LEFT_OUT])]))
        yield f"--limit {limit} goes on without {span(causes)}, at which the run stopped"


def _next_command(report: Report, variables: Tuple[str, ...]) -> str:
    """The command that audits the same hosts with these variables too; empty for a run that isn't one of tune."""
    run = report.run
    if TUNE not in run.command:
        return ""
    limit = ("--limit", run.limit) if run.limit else ()
    words = commands.join([*(AUDIT if word == TUNE else word for word in run.command), *limit, *variables])
    return f"{words} ({run.beside})" if run.beside else words


def outside(host: HostReport) -> str:
    """The class of a host that nobody looked at for its class; empty for others, also where it was allowed."""
    kind = str(host.platform.get("host_class", ""))
    looked_at = [finding for finding in host.findings if finding.name != _CHOICE]
    held = any(finding.reason.startswith(gate.OUTSIDE.get(kind, kind)) for finding in looked_at)
    seen = {finding.status for finding in looked_at} - {"refused", "not_applicable"}
    return kind if kind in _OUTSIDE and held and not seen and not host.errors else ""


def _asked_nothing(host: HostReport) -> bool:
    """Whether the run left every concern of the host as it is, as without any option."""
    left = {(finding.knob, finding.status) for finding in host.findings}
    return (left == {("state", "advice")} or _unwanted(host)) and not host.errors


def _unwanted(host: HostReport) -> bool:
    """Whether the run is limited to what nobody wants of the host."""
    return bool(host.findings) and all(finding.reason.endswith(UNWANTED) for finding in host.findings)


def _roles_outside(report: Report) -> List[str]:
    """Of a host outside EC2, the role that would look at it: of a run without a workload that of its concern."""
    away = [host for host in report.hosts if outside(host) == "not_ec2"]
    return ["tune" if host.workload else host.findings[0].concern for host in away]


def _planned(reported: List[HostReport], looked: List[str]) -> str:
    notes = {True: " (no tune_workload)", False: ""}
    count = Counter((_planned_for(host), notes[_names_none(host)]) for host in reported if host.workload)
    named = [f"{name} on {plural(number, 'host')}{note}" for (name, note), number in count.most_common(6)]
    more = [f"{len(count) - 6} more"] if len(count) > 6 else []
    whom = ", ".join(named + more or looked[:3])
    return f"{whom}; {len(looked)} of {plural(len(HEADINGS), 'concern')}"


def _planned_for(host: HostReport) -> str:
    """The workloads of a host, and the programs whose maintainers' wishes count."""
    programs = [finding.where for finding in host.findings if finding.name == _PROGRAM and finding.wanted]
    kinds = "programs" if programs[1:] else "program"
    return f"{host.workload} and {kinds} {span(programs)}" if programs else host.workload


def _say_nameless(nameless: List[str], reported: int) -> str:
    if len(nameless) == reported:
        return _NAME_WORKLOADS
    return f"{span(nameless, 4)} {'has' if len(nameless) == 1 else 'have'} no tune_workload: {_NAME_WORKLOADS}"


def _names_none(host: HostReport) -> bool:
    """Whether nobody said what the host is for, nor asked for a look at what runs."""
    return host.workload == BASE and all(finding.name != _CHOICE for finding in host.findings)


def _unplanned(host: HostReport) -> Tuple[str, ...]:
    """The workloads that auto recognized on a host, if it was planned for base all the same."""
    found = (str(one.wanted) for one in host.findings if one.name == _CHOICE and one.status == "advice")
    return tuple(name for name in dict.fromkeys(found) if name != BASE) if host.workload == BASE else ()


def _say_unplanned(reported: List[HostReport]) -> Iterable[str]:
    for names, count in Counter(filter(None, map(_unplanned, reported))).most_common():
        runs = "runs" if count == 1 else "run"
        are, were = ("are" if len(names) > 1 else "is"), ("was" if count == 1 else "were")
        yield f"{plural(count, 'host')} {runs} what {span(names)} {are} for, and {were} planned for base alone"


def _say_refused(reported: List[HostReport]) -> Iterable[str]:
    """The reasons that many refused findings share; a single host has its own line of them."""
    count = Counter(finding.reason for host in reported for finding in host.findings if finding.status == "refused")
    shared = [f"{plural(number, 'finding')}: {reason}" for reason, number in count.most_common(3) if number >= MANY]
    if shared:
        yield "; ".join(shared)


def _say_expired(reported: Iterable[HostReport]) -> Iterable[str]:
    findings = (finding for host in reported for finding in host.findings if finding.reason.startswith(EXPIRED))
    over = Counter((finding.where or finding.name, finding.reason[len(EXPIRED) :][:10]) for finding in findings)
    if over:
        yield span([f"{name} on {plural(count, 'host')} (until {day})" for (name, day), count in over.most_common()])


def _lead(
    report: Report, reported: List[HostReport], changes: List[Tuple[HostReport, ReportedFinding]], within: str
) -> str:
    if not report.hosts:
        return "The play had no hosts."
    states = report.states()
    away = Counter(outside(host) for host in report.hosts)
    parts = [
        *(_say_changes(report, changes) if changes else _say_nothing_left(report, reported, within)),
        _say_restarts(reported) if not changes or report.run.mode in ("tune", "restore") else "",
        *([] if report.restores else _say_unplanned(reported)),
        clause(sum(len(host.errors) for host in reported), "concern", "failed", "failed"),
        *(clause(away[kind], "host", *words) for kind, words in _OUTSIDE.items()),
        *(clause(states[state], "host", *words) for state, words in _WITHOUT_REPORT.items()),
    ]
    return "; ".join(filter(None, parts)) + "."


def _say_restarts(reported: List[HostReport], more: str = "") -> str:
    """What services keep of old values until they start anew; empty if nothing is kept."""
    waiting = [len(changes_of(host)) - len(to_tune(host)) for host in reported]
    count, hosts = sum(waiting), plural(sum(map(bool, waiting)), "host")
    verb, services = ("takes", "its service") if count == 1 else ("take", "their services")
    words = f"{plural(count, f'{more}setting')} {verb} effect only after a restart of {services} on {hosts}"
    return words if count else ""


def _say_nothing_left(report: Report, reported: List[HostReport], within: str) -> Iterable[str]:
    idle = [] if report.restores else [host for host in reported if _asked_nothing(host)]
    unasked = [host for host in idle if not _unwanted(host)]
    concerns = dict.fromkeys(concern for host in unasked for concern in host.statuses())
    clear = sum(not host.errors for host in reported) - len(idle)
    refused = sum(finding.status == "refused" for host in reported for finding in host.findings)
    left = "give back" if report.restores else "change"
    keeping = any(finding.upkeep and finding.status == "would_change" for host in reported for finding in host.findings)
    but = " but what keeps values over reboots" if keeping and not report.restores else ""
    yield f"Nothing{but} is left to {left} on {plural(clear, 'host')}{within}" if clear else ""
    word = "nothing" if clear else "Nothing"
    yield f"{word} of {span(tuple(concerns))} was asked for on {plural(len(unasked), 'host')}" if unasked else ""
    yield from _say_unwanted([host for host in idle if _unwanted(host)])
    yield clause(refused, "setting", "was refused", "were refused")


def _say_unwanted(hosts: List[HostReport]) -> Iterable[str]:
    names = dict.fromkeys(finding.name.replace(".state", "") for host in hosts for finding in host.findings)
    workloads = tuple(dict.fromkeys(host.workload for host in hosts if host.workload)) or ("a workload",)
    if hosts:
        whose = f"neither {span(workloads)} nor tune_concerns wants on {plural(len(hosts), 'host')}"
        yield f"tune_only names {span(tuple(names))}, which {whose}"


def _say_changes(report: Report, changes: List[Tuple[HostReport, ReportedFinding]]) -> Iterable[str]:
    previews = report.restores and any(finding.status == "would_change" for _host, finding in changes)
    words = _WORDS[_PREVIEW if previews else report.run.mode or "audit"]
    waiting = sum(finding.status == words.waits for _host, finding in changes)
    at_once = [(host, finding) for host, finding in changes if finding.status != words.waits]
    if at_once:
        hosts = len({host.name for host, _finding in at_once})
        of_all = f"{hosts:,} of {plural(len(report.hosts), 'host')}" if len(report.hosts) > 1 else "this host"
        proof = any(worth_of(host, finding) in (PROVEN, PUBLISHED) for host, finding in at_once)
        unproven = "" if proof or report.restores else ", without proof that any of it helps"
        yield f"{plural(len(at_once), 'setting')} on {of_all} {words.done[len(at_once) != 1]}{unproven}"
    yield clause(waiting, "setting", *words.later)
    if report.restores:
        stays = [status for status in OPEN if status not in CHANGES]
        left = sum(not finding.upkeep and finding.status in stays for host in report.hosts for finding in host.findings)
        yield clause(left, "setting", "was left as it is", "were left as they are")


def _facts(
    report: Report, reported: List[HostReport], changes: List[Tuple[HostReport, ReportedFinding]]
) -> Iterable[Tuple[str, str]]:
    if changes and not report.restores:
        worth = Counter(worth_of(host, finding) for host, finding in changes)
        yield "Worth", ", ".join(f"{worth[kind]:,} {words}" for kind, words in _COUNTED.items() if worth[kind])
        if slower(report):
            yield "Slower when measured", f"{span(slower(report))}: {LEAVE_OUT}"
    restarts = _say_restarts(reported, "more " if changes else "")
    if (changes or restarts) and not report.restores:
        yield "Risk", "; ".join(filter(None, (_risk(changes) if changes else "", restarts)))
    upkeep = sum(finding.upkeep for host in reported for finding in host.findings)
    if upkeep:
        files = plural(upkeep, "file or unit", "files and units")
        yield ("Taken away", files) if report.restores else ("Kept over reboots", f"by {files}")
    reboots = clause(sum(host.reboot_required for host in report.hosts), "host", "waits", "wait")
    if reboots:
        yield "Reboot", f"{reboots} for a reboot"
    failed = [f"{host.name} ({host.state})" for host in report.hosts if host.state != model.REPORTED]
    if failed:
        yield "Without a full report", span(failed, 4)


def _risk(changes: List[Tuple[HostReport, ReportedFinding]]) -> str:
    costs = {host.name: risks_of(host) for host, _finding in changes}
    hosts: Dict[str, List[str]] = {FREE: []}
    for host, finding in changes:
        hosts.setdefault(risk_of(finding, costs[host.name]), []).append(host.name)
    if set(hosts) == {FREE}:
        return "none interrupts anything or needs a reboot"
    said = [
        f"{len(hosts[kind]):,} {words[len(hosts[kind]) != 1]} on {plural(len(set(hosts[kind])), 'host')}"
        for kind, words in _SAID.items()
        if kind in hosts
    ]
    return "; ".join([*said, *([f"{len(hosts[FREE]):,} without either"] if hosts[FREE] else [])])
