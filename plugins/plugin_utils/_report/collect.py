# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the results of modules to a report: cleaned, merged per host, with every host of the play.

PRIVATE to the collection.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Container, Dict, Iterable, List, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import allowances, drift, model, proven, queues
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.clean import NAME, Budget, text
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import (
    Gate,
    HostReport,
    Report,
    ReportedFinding,
    Run,
)
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.statuses import ORDER

# What a report may say about a host's identity. No serials, no addresses, no instance ids.
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
_REQUIRED = {"findings", "actions"}
SAMPLES = 64  # of the allowances of one host that are kept: two for each of 32 interfaces


def follows_contract(result: Any) -> bool:
    """Whether a task's result is that of a state module: it has lists of actions and findings.

    A cloud module's result is about many hosts at once; `cloud_findings` hands each host its own.
    """
    if not isinstance(result, Mapping) or "instances" in result:
        return False
    return all(isinstance(result.get(name), (list, tuple)) for name in _REQUIRED)


@dataclass
class _Host:
    """What is known about one host so far."""

    groups: Tuple[str, ...] = ()
    state: str = model.SILENT
    message: str = ""
    last_message: Optional[str] = None  # of the last result
    budget: Budget = field(default_factory=Budget)
    platform: Dict[str, Any] = field(default_factory=dict)
    workload: str = ""
    changed: bool = False
    reboot_reasons: List[str] = field(default_factory=list)
    reboot_required: bool = False
    errors: Dict[str, str] = field(default_factory=dict)
    actions: List[Mapping[str, Any]] = field(default_factory=list)
    findings: List[ReportedFinding] = field(default_factory=list)
    allowances: List[Mapping[str, Any]] = field(default_factory=list)
    queue_map: Tuple[Mapping[str, Any], ...] = ()
    notes: List[str] = field(default_factory=list)


class Collector:
    """Takes results as they come; `report` may be asked at any time."""

    def __init__(self) -> None:
        self._hosts: Dict[str, _Host] = {}
        self.findings = 0  # that somebody may want to do something about

    def expect(self, names: Iterable[str]) -> None:
        """These hosts are in the play: one that never reports is shown as silent."""
        for name in names:
            self._host(name)

    def groups(self, name: str, groups: Iterable[str]) -> None:
        """The inventory groups of a host, for the filters of the page."""
        self._host(name).groups = tuple(sorted({text(group, NAME) for group in groups}))

    def unreachable(self, name: str, message: Any) -> None:
        """Ansible could not talk to the host; what it reported before stays."""
        host = self._host(name)
        host.state, host.message = model.UNREACHABLE, text(message)

    def failed(self, name: str, message: Any) -> None:
        """A task of the host failed."""
        host = self._host(name)
        host.state, host.message = model.FAILED, text(message)

    def rescued(self, failed: Container[str]) -> None:
        """Only these hosts failed for Ansible: the play rescued the others, and what they reported counts."""
        for name, host in self._hosts.items():
            if host.state == model.FAILED and host.last_message is not None and name not in failed:
                host.state, host.message = model.REPORTED, host.last_message

    def add(self, name: str, result: Mapping[str, Any], failed: bool = False) -> None:
        """One result of a state module. What it says about a concern replaces what was said before."""
        host = self._host(name)
        budget = host.budget
        findings, strange = _findings(result.get("findings"), budget)
        errors = _mapping(result.get("errors"))
        replaced = {finding.concern for finding in findings} | set(errors)
        host.findings = [finding for finding in host.findings if finding.concern not in replaced] + findings
        host.errors = {concern: why for concern, why in host.errors.items() if concern not in replaced}
        host.errors.update({budget.text(concern, NAME): budget.text(why) for concern, why in errors.items()})
        actions = _actions(result.get("actions"), budget)
        replaced.update(str(action["concern"]) for action in actions)
        host.actions = [action for action in host.actions if action["concern"] not in replaced] + actions
        platform = _mapping(result.get("platform"))
        host.platform.update({key: _scalar(platform[key], budget) for key in PLATFORM if platform.get(key) is not None})
        host.workload = _workloads(result.get("workload"), budget) or host.workload
        host.changed = host.changed or result.get("changed") is True
        host.reboot_required = host.reboot_required or result.get("reboot_required") is True
        host.reboot_reasons += budget.texts(result.get("reboot_reasons"))
        samples = result.get("allowances")
        host.allowances += [budget.value(sample) for sample in samples] if isinstance(samples, list) else []
        host.queue_map = queues.of_result(result.get("queue_map"), budget) or host.queue_map
        host.last_message = budget.text(result.get("msg") or "")
        if failed or host.state != model.FAILED:
            # The module's own line also covers the concerns that went well.
            host.message = model.sentence_of(host.errors) if failed and errors else host.last_message
            host.state = model.FAILED if failed else model.REPORTED
        if strange:
            host.notes.append(f"{strange} findings or actions were not of the agreed form and are left out")
        if budget.exhausted() and not any("more than" in note for note in host.notes):
            host.notes.append("the host reported more than 256 KiB: the rest is left out")
        self.findings += sum(finding.status in ("would_change", "needs_reboot", "refused") for finding in findings)

    def add_samples(self, name: str, samples: List[Dict[str, Any]]) -> None:
        """What was measured of a host's allowances: see allowances.py."""
        self.add(name, {"findings": [], "actions": [], "allowances": samples})

    def seen(self) -> int:
        """How many hosts reported, failed or were unreachable."""
        return sum(host.state != model.SILENT for host in self._hosts.values())

    def total(self) -> int:
        """How many hosts are expected."""
        return len(self._hosts)

    def count(self, state: str) -> int:
        """How many hosts are in this state."""
        return sum(host.state == state for host in self._hosts.values())

    def names(self) -> List[str]:
        """The hosts that are expected or reported."""
        return list(self._hosts)

    def report(
        self,
        run: Run,
        blind_spots: Iterable[str] = (),
        fail_on: Iterable[str] = (),
        earlier: Optional[Tuple[str, Tuple[HostReport, ...]]] = None,
        directory: str = "",
        proofs: Optional[Mapping[str, proven.Proof]] = None,
    ) -> Report:
        """The report as of now, hosts by name; `earlier` is what document.load gives."""
        since, before = earlier or ("", ())
        samples = {host.name: host.allowances for host in before}
        known = proofs or {}
        hosts = tuple(self._frozen(name, samples.get(name, ()), known.get(name)) for name in sorted(self._hosts))
        return Report(
            run=run,
            hosts=hosts,
            blind_spots=tuple(blind_spots),
            gate=gate_of(hosts, tuple(fail_on)) if fail_on else None,
            drift=drift.compare(since, before, hosts, run.mode) if earlier else None,
            directory=directory,
        )

    def _host(self, name: str) -> _Host:
        return self._hosts.setdefault(str(name), _Host())

    def _frozen(self, name: str, samples: Tuple[Mapping[str, Any], ...], proof: Optional[proven.Proof]) -> HostReport:
        host = self._hosts[name]
        samples = (*allowances.of_interfaces(samples, host.allowances), *host.allowances)[-SAMPLES:]
        return HostReport(
            name=text(name, 255),
            state=host.state,
            message=host.message,
            groups=host.groups,
            platform=dict(host.platform),
            workload=host.workload,
            changed=host.changed,
            reboot_required=host.reboot_required,
            reboot_reasons=tuple(dict.fromkeys(host.reboot_reasons)),
            errors=dict(host.errors),
            actions=tuple(host.actions),
            findings=(*proven.beside(host.findings, proof), *_limits(samples)),
            allowances=samples,
            queue_map=host.queue_map,
            notes=tuple(host.notes),
            proven=asdict(proof) if proof else None,
        )


def gate_of(hosts: Iterable[HostReport], statuses: Tuple[str, ...]) -> Gate:
    """Which hosts have a status that fails the run, and how many findings that are."""
    hits = {
        host.name: sum(status in statuses for found in host.statuses().values() for status in found) for host in hosts
    }
    return Gate(statuses, tuple(sorted(name for name, count in hits.items() if count)), sum(hits.values()))


def _limits(samples: Iterable[Mapping[str, Any]]) -> List[ReportedFinding]:
    """A limit of EC2 that was hit, as a finding: it is seen where the others are."""
    return [
        ReportedFinding(
            concern="allowances",
            knob="limits",
            status="advice",
            where=found["interface"],
            reason=found["sentence"],
            reference="ENA driver guide; Netflix, 2014–2017",
        )
        for found in allowances.verdicts(samples)
        if found["sentence"]
    ]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _scalar(value: Any, budget: Budget) -> Any:
    return value if isinstance(value, bool) else budget.text(value, NAME)


def _fields(entry: Mapping[str, Any], names: Iterable[str], budget: Budget) -> Dict[str, Any]:
    return {
        name: budget.value(entry.get(name))
        if name in _VALUES
        else budget.text(entry.get(name) or "", *([NAME] if name in _NAMES else []))
        for name in names
    }


def _workloads(names: Any, budget: Budget) -> str:
    """The workloads of a host in their order; an earlier nearmetal reported a single one, as text."""
    return budget.text(", ".join(map(str, names)) if isinstance(names, list) else names or "", NAME)


def _findings(entries: Any, budget: Budget) -> Tuple[List[ReportedFinding], int]:
    """The findings that have the agreed form, and how many have not."""
    found: List[ReportedFinding] = []
    strange = 0
    for entry in entries if isinstance(entries, (list, tuple)) else ():
        if not isinstance(entry, Mapping) or entry.get("status") not in STATUSES or not entry.get("concern"):
            strange += 1
        elif not budget.exhausted():
            finding = ReportedFinding(**_fields(entry, FINDING_FIELDS, budget))
            # The one during which the budget ended is incomplete.
            found += [] if budget.exhausted() else [finding]
    found.sort(key=lambda finding: (finding.concern, finding.upkeep, ORDER.get(finding.status, 0)))
    return found, strange


def _actions(entries: Any, budget: Budget) -> List[Mapping[str, Any]]:
    entries = entries if isinstance(entries, (list, tuple)) else ()
    return [
        _fields(entry, ACTION, budget) for entry in entries if isinstance(entry, Mapping) and not budget.exhausted()
    ]
