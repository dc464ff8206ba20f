# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the results of modules to a report: cleaned, merged per host, with every host of the play. PRIVATE."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Container, Dict, Iterable, List, Mapping, Optional, Tuple

from ...module_utils._plan import STATUSES
from .._benchmark.ranking import Ranking
from .._clean import NAME, Budget, mapping, text
from .._profile import document as profiled
from . import allowances, drift, model, picture, proven
from .headings import ORDER
from .model import Gate, HostReport, Past, Report, ReportedFinding, Run

# The facts of a report about a host's identity: no serials, no addresses, no instance ids.
PLATFORM = (
    "host_class",
    "hypervisor",
    "virtualization",
    "container",
    "instance_type",
    "burstable",
    "architecture",
    "distribution",
    "distribution_version",
    "kernel",
    "boot_loader",
)
ACTION = ("concern", "knob", "what", "where", "before", "after", "scope", "disruptive", "reversible", "wanted_by")
FINDING_FIELDS = ("concern", "knob", "where", "status", "now", "wanted", "reason", "reference", "gain", "owner")
_VALUES = {"now", "wanted", "before", "after", "disruptive"}
_NAMES = {"concern", "knob", "where", "status", "owner", "what", "scope", "reversible", "wanted_by"}
OWN_VALUE = "your value"
COMMAND = 4096  # characters of a line of shell commands, which must not be cut
SAMPLES = 64  # of the allowances of one host that are kept: two for each of 32 interfaces


@dataclass
class _Host:
    """What is known about one host so far."""

    report: HostReport
    last_message: Optional[str] = None  # of the last result
    budget: Budget = field(default_factory=Budget)

    def update(self, **values: Any) -> None:
        self.report = replace(self.report, **values)


class Collector:
    """Collects results as they arrive; `report` may be called at any time."""

    def __init__(self) -> None:
        self._hosts: Dict[str, _Host] = {}
        self.findings = 0  # findings to act on: would_change, needs_reboot, refused

    def expect(self, names: Iterable[str]) -> None:
        """Add the hosts of the play: a host that never reports is shown as silent."""
        for name in names:
            self._host(name)

    def groups(self, name: str, groups: Iterable[str]) -> None:
        """Set the inventory groups of a host, for the filters of the page."""
        self._host(name).update(groups=tuple(sorted({text(group, NAME) for group in groups})))

    def unreachable(self, name: str, message: Any) -> None:
        """Mark a host that Ansible could not reach; its earlier results stay."""
        self._host(name).update(state=model.UNREACHABLE, message=text(message))

    def failed(self, name: str, message: Any) -> None:
        """Mark a host with a failed task."""
        self._host(name).update(state=model.FAILED, message=text(message))

    def skipped(self, names: Iterable[str]) -> None:
        """Mark those of the expected hosts that have no result as left out by the play."""
        for host in filter(None, map(self._hosts.get, names)):
            if host.report.state == model.SILENT:
                host.update(state=model.SKIPPED)

    def rescued(self, failed: Container[str]) -> None:
        """Unmark failed hosts that the play rescued: Ansible counts only `failed` as failed."""
        for name, host in self._hosts.items():
            if host.report.state == model.FAILED and host.last_message is not None and name not in failed:
                host.update(state=model.REPORTED, message=host.last_message)

    def add(self, name: str, result: Mapping[str, Any], failed: bool = False) -> None:
        """Add one result of a state module. It replaces earlier results of the same concerns."""
        host = self._host(name)
        known, budget = host.report, host.budget
        findings, strange = _findings(result.get("findings"), budget)
        errors = mapping(result.get("errors"))
        replaced = {finding.concern for finding in findings} | set(errors)
        kept_errors = {concern: why for concern, why in known.errors.items() if concern not in replaced}
        new_errors = {budget.text(concern, NAME): budget.text(why) for concern, why in errors.items()}
        kept_findings = [finding for finding in known.findings if finding.concern not in replaced]
        actions = _actions(result.get("actions"), budget)
        findings = _with_own_values(findings, actions)
        replaced.update(str(action["concern"]) for action in actions)
        platform, samples = mapping(result.get("platform")), result.get("allowances")
        # Of several in their order; an earlier nearmetal reported a single one, as text.
        workload = result.get("workload")
        workload = ", ".join(map(str, workload)) if isinstance(workload, list) else workload
        host.update(
            findings=(*kept_findings, *findings),
            errors={**kept_errors, **new_errors},
            actions=(*(action for action in known.actions if action["concern"] not in replaced), *actions),
            platform={
                **known.platform,
                **{
                    key: platform[key] if isinstance(platform[key], bool) else budget.text(platform[key], NAME)
                    for key in PLATFORM
                    if platform.get(key) is not None
                },
            },
            workload=budget.text(workload or "", NAME) or known.workload,
            changed=known.changed or result.get("changed") is True,
            reboot_required=known.reboot_required or result.get("reboot_required") is True,
            reboot_reasons=(*known.reboot_reasons, *budget.texts(result.get("reboot_reasons"))),
            allowances=(*known.allowances, *map(budget.value, samples if isinstance(samples, list) else ())),
            commands=tuple(budget.texts(result.get("commands"), COMMAND)) or known.commands,
            queue_map=picture.queue_map_of(result.get("queue_map"), budget) or known.queue_map,
            topology=picture.layout_of(result.get("topology"), budget) or known.topology,
            sizing=tuple(budget.texts(mapping(result.get("sizing")).get("arithmetic"))) or known.sizing,
        )
        host.last_message = budget.text(result.get("msg") or "")
        if failed or known.state != model.FAILED:
            # The module's own message also covers the concerns without an error.
            message = model.sentence_of(host.report.errors) if failed and errors else host.last_message
            host.update(message=message, state=model.FAILED if failed else model.REPORTED)
        if strange:
            host.update(notes=(*known.notes, f"{strange} findings or actions have an unknown form and are left out"))
        if budget.exhausted() and not any("more than" in note for note in known.notes):
            too_much = "the host reported more than 256 KiB: the rest is left out"
            host.update(notes=(*host.report.notes, too_much))
        self.findings += sum(finding.status in ("would_change", "needs_reboot", "refused") for finding in findings)

    def add_samples(self, name: str, samples: List[Dict[str, Any]]) -> None:
        """Add samples of a host's allowances: see allowances.py."""
        self.add(name, {"findings": [], "actions": [], "allowances": samples})

    def seen(self) -> int:
        """How many hosts reported, failed, were unreachable or skipped."""
        return self.total() - self.count(model.SILENT)

    def total(self) -> int:
        return len(self._hosts)

    def count(self, state: str) -> int:
        return sum(host.report.state == state for host in self._hosts.values())

    def names(self, state: str = "") -> List[str]:
        """The hosts that are expected or reported; of one state, if it is given."""
        return [name for name, host in self._hosts.items() if state in ("", host.report.state)]

    def report(
        self,
        run: Run,
        blind_spots: Iterable[str] = (),
        fail_on: Iterable[str] = (),
        earlier: Optional[Tuple[str, Tuple[HostReport, ...]]] = None,
        directory: str = "",
        proofs: Optional[Mapping[str, proven.Proof]] = None,
        rankings: Tuple[Ranking, ...] = (),
        past: Tuple[Past, ...] = (),
        profiles: Optional[Mapping[str, profiled.Last]] = None,
    ) -> Report:
        """The report of the results so far, hosts by name; `earlier` is a result of document.load."""
        since, before = earlier or ("", ())
        samples = {host.name: host.allowances for host in before}
        known, seen = proofs or {}, profiles or {}
        hosts = tuple(
            self._frozen(name, samples.get(name, ()), known.get(name), seen.get(name)) for name in sorted(self._hosts)
        )
        return Report(
            run=run,
            hosts=hosts,
            blind_spots=tuple(blind_spots),
            gate=gate_of(hosts, tuple(fail_on)) if fail_on else None,
            drift=drift.compare(since, before, hosts, run.mode) if earlier else None,
            directory=directory,
            rankings=rankings,
            past=past,
        )

    def _host(self, name: str) -> _Host:
        return self._hosts.setdefault(str(name), _Host(HostReport(text(name, 255))))

    def _frozen(
        self,
        name: str,
        samples: Tuple[Mapping[str, Any], ...],
        proof: Optional[proven.Proof],
        profile: Optional[profiled.Last],
    ) -> HostReport:
        host = self._hosts[name].report
        samples = (*allowances.select_samples(samples, host.allowances), *host.allowances)[-SAMPLES:]
        return replace(
            host,
            reboot_reasons=tuple(dict.fromkeys(host.reboot_reasons)),
            findings=(*proven.with_proof(host.findings, proof), *_limits(samples), *_profiled(profile)),
            allowances=samples,
            proven=asdict(proof) if proof else None,
        )


def gate_of(hosts: Iterable[HostReport], statuses: Tuple[str, ...]) -> Gate:
    """The hosts with findings whose status fails the run, and the number of such findings."""
    hits = {
        host.name: sum(status in statuses for of_concern in host.statuses().values() for status in of_concern)
        for host in hosts
    }
    return Gate(statuses, tuple(sorted(name for name, count in hits.items() if count)), sum(hits.values()))


def _limits(samples: Iterable[Mapping[str, Any]]) -> List[ReportedFinding]:
    """Each exceeded limit of EC2 as a finding."""
    return [
        ReportedFinding(
            concern="allowances",
            knob="limits",
            status="advice",
            where=verdict["interface"],
            reason=verdict["sentence"],
            reference="ENA driver guide; Netflix, 2016",
        )
        for verdict in allowances.verdicts(samples)
        if verdict["sentence"]
    ]


def _profiled(profile: Optional[profiled.Last]) -> List[ReportedFinding]:
    """What the last profile of a host showed."""
    status = "advice" if profile and profile.advice else "ok"
    return [
        ReportedFinding(concern="profile", knob=name, status=status, reason=says, reference="docs/profile.md")
        for name, says in (profile.sentences() if profile else ())
    ]


def _fields(entry: Mapping[str, Any], names: Iterable[str], budget: Budget) -> Dict[str, Any]:
    return {
        name: budget.value(entry.get(name))
        if name in _VALUES
        else budget.text(entry.get(name) or "", *([NAME] if name in _NAMES else []))
        for name in names
    }


def _findings(entries: Any, budget: Budget) -> Tuple[List[ReportedFinding], int]:
    """The findings with a known form, and the number of the others."""
    findings: List[ReportedFinding] = []
    strange = 0
    for entry in entries if isinstance(entries, (list, tuple)) else ():
        if not isinstance(entry, Mapping) or entry.get("status") not in STATUSES or not entry.get("concern"):
            strange += 1
        elif not budget.exhausted():
            finding = ReportedFinding(**_fields(entry, FINDING_FIELDS, budget))
            # A finding that exhausts the budget is incomplete.
            findings += [] if budget.exhausted() else [finding]
    findings.sort(key=lambda finding: (finding.concern, finding.upkeep, ORDER.get(finding.status, 0)))
    return findings, strange


def _with_own_values(findings: List[ReportedFinding], actions: List[Mapping[str, Any]]) -> List[ReportedFinding]:
    """The findings; a value that the user asked for has no source but the user."""
    own = {(action["concern"], action["knob"]) for action in actions if action["wanted_by"] == "user"}
    return [
        finding._replace(reference=OWN_VALUE)
        if finding.status in ("would_change", "changed")
        and not finding.upkeep
        and finding.reference != "journal"  # what a restore gives back
        and finding[:2] in own
        else finding
        for finding in findings
    ]


def _actions(entries: Any, budget: Budget) -> List[Mapping[str, Any]]:
    entries = entries if isinstance(entries, (list, tuple)) else ()
    return [
        _fields(entry, ACTION, budget) for entry in entries if isinstance(entry, Mapping) and not budget.exhausted()
    ]
