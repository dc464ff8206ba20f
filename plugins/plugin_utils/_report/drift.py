# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes since an earlier report, and their owners. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, Optional, Tuple

from . import model
from .headings import BY_NAME
from .model import HostReport, ReportedFinding
from .summary import show

NEARMETAL = "nearmetal.ec2"
_PLATFORM = ("instance_type", "host_class", "kernel", "distribution", "distribution_version")
# What the kernel or AWS counts, which differs in each run.
_COUNTED = {
    "cpu_credits": ("balance", "charged", "surplus"),
    "ebs": ("burst_balance", "exceeded"),
    "kernel_check": (
        *("steal", "backlog_drops", "receive_rounds", "connections", "open_files", "compaction", "swap"),
        "memory_misses",
    ),
    "network_irq": ("irq_hotspot", "irq_used"),
    "service_check": ("threads", "open_files"),
}


def compare(since: str, before: Iterable[HostReport], after: Iterable[HostReport], mode: str) -> Dict[str, Any]:
    """`{since, changes, absent}`; a change is {host, concern, what, before, after, owner}, values as text.

    `absent` has the hosts of the earlier report that this run left out; they are not among the changes.
    Knobs of a host or concern that only one of the reports has are not compared.
    `owner` is the knob's owner now, as the host reports it, `nearmetal.ec2` for a knob that this run set, else empty.
    """
    old = {host.name: host for host in before}
    new = {host.name: host for host in after}
    changes = [change for name in sorted(new) for change in _host_changes(name, old.get(name), new[name], mode)]
    return {"since": since, "changes": changes, "absent": sorted(old.keys() - new.keys())}


def _host_changes(name: str, old: Optional[HostReport], new: HostReport, mode: str) -> Iterator[Dict[str, str]]:
    before = old.state if old else "not in the play"
    if before != new.state:
        yield _change(name, "", "host", before, new.state)
    if old is None or not _reported(old) or not _reported(new):
        return
    for key in _PLATFORM:
        if old.platform.get(key) != new.platform.get(key):
            yield _change(name, "", key, show(old.platform.get(key)), show(new.platform.get(key)))
    for concern in sorted(set(old.statuses()) & set(new.statuses())):
        yield from _concern_changes(name, concern, old, new, mode)


def _reported(host: HostReport) -> bool:
    return host.state in (model.REPORTED, model.FAILED)


def _concern_changes(name: str, concern: str, old: HostReport, new: HostReport, mode: str) -> Iterator[Dict[str, str]]:
    if old.errors.get(concern) != new.errors.get(concern):
        yield _change(name, concern, concern, old.errors.get(concern) or "ok", new.errors.get(concern) or "ok")
    before, after = _knobs(old, concern), _knobs(new, concern)
    for key in sorted({*before, *after}):
        earlier, current = before.get(key), after.get(key)
        if earlier is None or current is None or not _same(earlier, current):
            yield _change(name, concern, key, _words(earlier), _words(current), _owner(current, mode))
    lost, gained = _advice(old, concern), _advice(new, concern)
    for advice in sorted(lost.keys() - gained.keys()):
        yield _change(name, concern, f"{concern} advice", lost[advice], "–")
    for advice in sorted(gained.keys() - lost.keys()):
        yield _change(name, concern, f"{concern} advice", "–", gained[advice])


def _knobs(host: HostReport, concern: str) -> Dict[str, ReportedFinding]:
    """By what each is about."""
    findings = (finding for finding in host.findings if finding.concern == concern and finding.status != "advice")
    return {finding.key: finding for finding in findings}


def _advice(host: HostReport, concern: str) -> Dict[str, str]:
    """What tells one advice from another → its words."""
    # The sentences about allowances contain measured numbers, which differ in every run and are in `limits`.
    if concern == "allowances":
        return {}
    advice = [finding for finding in host.findings if finding.concern == concern and finding.status == "advice"]
    if concern == "tune":
        # The sentences of `auto` count processes, whose number differs from audit to audit.
        return {show(finding.wanted): show(finding.wanted) for finding in advice}
    if concern in ("profile", "sizing"):
        # Their sentences contain what was measured.
        return {finding.knob: finding.knob for finding in advice}
    return {
        f"{finding.knob} {finding.where}" if _counted(finding) else finding.reason: finding.reason for finding in advice
    }


def _same(earlier: ReportedFinding, current: ReportedFinding) -> bool:
    if {earlier.status, current.status} == {"changed", "ok"} and earlier.wanted is not None:
        # The kernel may read back another word than was written (`off` for `disabled`).
        return earlier.wanted == current.wanted
    if _counted(current):
        return earlier.status == current.status
    return _settled(earlier) == _settled(current)


def _counted(finding: ReportedFinding) -> bool:
    return finding.knob in _COUNTED.get(finding.concern, ())


def _settled(finding: ReportedFinding) -> Tuple[Any, str]:
    """Value and status as the next audit should find them: after a change that is `wanted`, not `now`."""
    return (finding.wanted, "ok") if finding.status == "changed" else (finding.now, finding.status)


def _words(finding: Optional[ReportedFinding]) -> str:
    if finding is None:
        return "–"
    value, status = _settled(finding)
    return f"{show(value)} ({BY_NAME[status].words})"


def _owner(finding: Optional[ReportedFinding], mode: str) -> str:
    if finding is None:
        return ""
    if finding.owner:
        return finding.owner
    return NEARMETAL if finding.status == "changed" and mode == "tune" else ""


def _change(host: str, concern: str, what: str, before: str, after: str, owner: str = "") -> Dict[str, str]:
    return {"host": host, "concern": concern, "what": what, "before": before, "after": after, "owner": owner}
