# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One owner per knob: what somebody else is told to set isn't set by us. Pure. PRIVATE to the collection.

Asked by the engine of every plan, so that no concern has to think of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.owners import OwnersFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Value, Wanted

REFERENCE = "docs/ownership.md"

_CLOCK = "sysfs./sys/devices/system/clocksource/clocksource0/current_clocksource"
# What an action changes → the settings of tuned that change the same (tuned-profiles(7)); {} is its place.
_TUNED: Mapping[str, Sequence[str]] = {
    "clock.current": (_CLOCK, "cmdline.clocksource"),
    "smt.control": ("sysfs./sys/devices/system/cpu/smt/control", "cmdline.nosmt"),
    "smt.offline": ("cmdline.nosmt", "cmdline.maxcpus"),
    "power.governors": ("cpu.governor",),
    "power.preferences": ("cpu.energy_performance_preference", "cpu.energy_perf_bias"),
    "power.idle_disabled": ("cpu.force_latency",),
    "power.turbo": ("cpu.no_turbo",),
    "block.scheduler": ("disk.elevator",),
    "block.read_ahead_kb": ("disk.readahead",),
    "network.queues": ("net.channels",),
    "network.rings": ("net.ring",),
    "network.coalesce": ("net.coalesce",),
    "network.offloads": ("net.features",),
    "sysctl": ("sysctl.{}",),
    "boot.arguments": ("cmdline.{}",),
}
# What kubelet counts, checks or sets itself, and what its network plug-ins set.
_KUBELET = ("smt.", "hugepages.")
_KUBELET_SYSCTLS = (
    "kernel.panic",
    "net.bridge.",
    "net.ipv4.conf.",
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
    "vm.overcommit_memory",
    "vm.nr_hugepages",
)


class Owner(NamedTuple):
    """Somebody who sets a knob, and a sentence that says so."""

    name: str
    says: str


def guarded(owners: OwnersFacts, plan: Plan, wanted: Wanted) -> Plan:
    """The plan without what somebody else owns, each such knob refused by its owner's name.

    With `owner_conflict: take_over` the plan stays, and the owner is named as advice.
    """
    if owners.immutable is not None:
        return _nothing(owners.immutable, plan)
    owned: Dict[str, Tuple[Action, Owner]] = {}
    for action in plan.actions:
        owner = _owner(owners, action) if action.after is not None else None
        if owner is not None:
            owned.setdefault(action.knob, (action, owner))
    if not owned:
        return plan
    if wanted.get("owner_conflict") == "take_over":
        told = tuple(
            _finding(action, "advice", f"{owner.says}, and will set it again: change it there", owner.name)
            for action, owner in owned.values()
        )
        return Plan(plan.actions, plan.findings + told, plan.replan)
    actions = tuple(action for action in plan.actions if action.knob not in owned and action.what != "files")
    findings = tuple(
        finding
        for finding in plan.findings
        if finding.status == "advice" or (finding.knob not in owned and not _unpersisted(finding, plan))
    )
    advice = "change it there, or set owner_conflict: take_over"
    told = tuple(_finding(action, "refused", f"{owner.says}; {advice}", owner.name) for action, owner in owned.values())
    return Plan(actions, told + findings, plan.replan)


def _nothing(immutable: str, plan: Plan) -> Plan:
    """A system that its image owns as a whole."""
    reason = f"this system is immutable ({immutable}): change its image, or its own settings"
    changed = {action.knob: action for action in plan.actions if action.after is not None}
    told = tuple(_finding(action, "refused", reason, immutable) for action in changed.values())
    rest = tuple(
        replace(finding, status="refused", reason=reason, owner=immutable)
        if finding.status == "would_change"
        else finding
        for finding in plan.findings
        if finding.knob not in changed
    )
    return Plan((), told + rest)


def _unpersisted(finding: Finding, plan: Plan) -> bool:
    """Whether the finding tells of a file that isn't written now: one file holds all values of a concern."""
    return any(action.what == "files" and action.where == finding.where for action in plan.actions)


def _owner(owners: OwnersFacts, action: Action) -> Optional[Owner]:
    """Who owns what the action changes; None for nobody."""
    if owners.kubelet and (action.what.startswith(_KUBELET) or _is_kubelets_sysctl(action)):
        return Owner("kubelet", "kubelet owns it on this Kubernetes node: set it in the node's own configuration")
    for setting in _TUNED.get(action.what, ()):
        name = setting.format(action.where)
        value = owners.tuned.get(name)
        if value is not None and not _same(value, action.after):
            return Owner("tuned", f"tuned sets {name} = {value} (profile {owners.tuned_profile})")
    if action.what == "sysctl" and action.where in owners.sysctl:
        path, value = owners.sysctl[action.where]
        if value.split() != str(action.after).split():
            return Owner(path, f"{path} sets {action.where} = {value} and is read after our file")
    if action.what == "network.mtu" and action.where in owners.mtu:
        path, value = owners.mtu[action.where]
        if value != str(action.after):
            return Owner(_writer(path), f"{path} gives the interface an MTU of {value} whenever it starts")
    return None


def _writer(path: str) -> str:
    """Who wrote a file of network settings, as far as its name tells; else the file."""
    name = path.rpartition("/")[2]
    known = {"80-ec2.network": "amazon-ec2-net-utils", "cloud-init": "cloud-init", "netplan": "netplan"}
    return next((owner for part, owner in known.items() if part in name), path)


def _same(theirs: str, ours: Value) -> bool:
    """Whether both want one value; a table of ours has it for each CPU or device.

    tuned's `>2048` is satisfied by anything from there on, `<2048` by anything up to there.
    """
    values = set(map(str, ours.values())) if isinstance(ours, Mapping) else {str(ours)}
    bound = theirs[1:].strip()
    if theirs[:1] in "<>" and all(value.isdecimal() for value in (bound, *values)):
        return all(int(value) >= int(bound) if theirs[0] == ">" else int(value) <= int(bound) for value in values)
    return values == {theirs}


def _is_kubelets_sysctl(action: Action) -> bool:
    return action.what == "sysctl" and action.where.startswith(_KUBELET_SYSCTLS)


def _finding(action: Action, status: str, reason: str, owner: str) -> Finding:
    return Finding(
        concern=action.concern,
        knob=action.knob,
        status=status,
        reason=reason,
        now=action.before,
        wanted=action.after,
        reference=REFERENCE,
        where=action.where,
        owner=owner,
    )
