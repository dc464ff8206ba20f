# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning the way back from the journal. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.journal import Entry, set_at_boot
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.levers import lever, way_back
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan


@dataclass(frozen=True)
class WayBack:
    """The plan that takes entries back, and the entries that need no action to be forgotten."""

    plan: Plan
    forget: Tuple[Entry, ...]


def plan_restore(host: WritableHost, entries: Sequence[Entry], reason: str) -> WayBack:
    """What brings each place back to its original, the last change first.

    A value that somebody else set since is left alone and reported. A runtime
    original of an earlier boot is void: the kernel's own choice takes its place.
    """
    actions: List[Action] = []
    findings: List[Finding] = []
    forget: List[Entry] = []
    boot_id = host.boot_id()
    for entry in way_back(entries):
        moved = lever(entry.what)
        if moved.gone(host, entry.where):
            forget.append(entry)
            continue
        now = moved.read(host, entry.where)
        if entry.void(boot_id):
            target = moved.kernel_choice(host, entry.where)
        elif entry.original is not None and moved.parked(host, entry.where, entry.original) == entry.original:
            findings.append(_out_of_reach(entry))
            continue
        else:
            target = moved.whole(host, entry.where, entry.original)
        if not entry.holds(now):
            if not entry.void(boot_id) and now != target:
                findings.append(_left_alone(entry, now))
            forget.append(entry)
        elif entry.void(boot_id) and target is None:
            findings.append(_by_reboot(entry, now))
            forget.append(entry)
        elif now == target:
            forget.append(entry)
        else:
            action = Action(
                concern=entry.concern,
                knob=entry.knob,
                what=entry.what,
                where=entry.where,
                before=now,
                after=target,
                scope=moved.scope,
                reason=reason,
                reference="journal",
            )
            actions.append(action)
            findings.append(_back(action))
            pending = moved.pending(host, entry.where, target)
            if pending:
                findings.append(replace(_back(action), status=moved.waits_for, reason=pending))
    return WayBack(Plan(tuple(actions), tuple(findings)), tuple(forget))


def set_elsewhere(host: WritableHost, entries: Sequence[Entry]) -> Tuple[Entry, ...]:
    """What our files set although no run of ours did, as if the journal knew of it.

    That is on devices that came after our last run, whose original is the kernel's own
    choice: nobody else had them before. And at the boot of a host that was started from
    an image.
    """
    known = {entry.key for entry in entries}
    boot_id = host.boot_id()
    found: Dict[Tuple[str, str], Entry] = {}
    for entry in entries:
        for what, where in lever(entry.what).also(host, entry.where):
            moved = lever(what)
            original = moved.kernel_choice(host, where)
            if (what, where) not in known and original is not None:
                ours = moved.remembered(moved.read(host, where))
                knob = what.rpartition(".")[2]
                found[what, where] = Entry(entry.concern, knob, what, where, original, (ours,), boot_id)
        for what, where in set_at_boot(host, (entry,)) - known:
            moved = lever(what)
            ours = moved.remembered(moved.read(host, where))
            knob = (where or what).rpartition(".")[2]
            original = moved.kernel_choice(host, where)
            found[what, where] = Entry(entry.concern, knob, what, where, original, (ours,), boot_id)
    return tuple(found.values())


def _back(action: Action) -> Finding:
    return Finding(
        concern=action.concern,
        knob=action.knob,
        status="would_change",
        where=action.where,
        now=action.before,
        wanted=action.after,
        reason=action.reason,
        reference=action.reference,
    )


def _left_alone(entry: Entry, now: object) -> Finding:
    return Finding(
        concern=entry.concern,
        knob=entry.knob,
        status="advice",
        where=entry.where,
        now=str(now),
        wanted=entry.original,
        reason=f"somebody set {now} after nearmetal did: left alone; before nearmetal it was {entry.original}",
        reference="journal",
    )


def _out_of_reach(entry: Entry) -> Finding:
    places = ", ".join(entry.original) if isinstance(entry.original, Mapping) else entry.where
    return Finding(
        concern=entry.concern,
        knob=entry.knob,
        status="advice",
        where=entry.where,
        wanted=entry.original,
        reason=f"{places}: all CPUs are offline; the journal keeps what was there: restore again when they are online",
        reference="journal",
    )


def _by_reboot(entry: Entry, now: object) -> Finding:
    return Finding(
        concern=entry.concern,
        knob=entry.knob,
        status="needs_reboot",
        where=entry.where,
        now=str(now),
        reason="the original belongs to an earlier boot; the next boot brings back what the host has without nearmetal",
        reference="journal",
    )
