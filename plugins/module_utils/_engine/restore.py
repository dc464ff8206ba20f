# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning a restore from the journal. PRIVATE to the collection."""

from __future__ import annotations

from typing import AbstractSet, Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple, TypeVar

from .._host.host import WritableHost
from .._levers.base import ALONE, Beside, Key, Lever
from .._levers.registry import lever_of, place_of
from .._memory.elements import Judged
from .._memory.entry import Entry
from .._memory.set_by_files import boot_value, set_at_boot, set_now
from .._plan import Action, Finding, Plan, Value
from . import left_behind
from .left_behind import knob_name

_Step = TypeVar("_Step", Action, Entry)


class RestorePlan(NamedTuple):
    """The plan that takes entries back, and the entries that need no action to be forgotten.

    Those of them that are `until_boot` are kept until the next boot, which alone gives their values back.
    """

    plan: Plan
    forget: Tuple[Entry, ...]


def restore_order(steps: Sequence[_Step]) -> List[_Step]:
    """The steps in the order of a restore: the last first, but those that disturb others before them."""
    backwards = steps[::-1]
    return sorted(backwards, key=lambda step: not lever_of(step.what).disturbing)


def plan_restore(
    host: WritableHost,
    entries: Sequence[Entry],
    reason: str,
    cpus: AbstractSet[int] = frozenset(),
    beside: Beside = ALONE,
    settable: bool = True,
) -> RestorePlan:
    """The plan that brings each place back to its original, the last change first; `reason` is of its actions.

    What somebody else has set since then is left alone and reported, element by element. A runtime original of an
    earlier boot is void: what this boot would have set without nearmetal takes its place, where that is known. An
    original that the place can't take now gives way to the kernel's own choice, and the journal keeps it.
    `cpus` are offline, and an earlier step of the run brings them online. `beside` is what the run does elsewhere.
    Without `settable` the host refused what takes a void original's place, and the next boot brings it.
    """
    actions: List[Action] = []
    findings: List[Finding] = []
    forget: List[Entry] = []
    boot_id = host.boot_id() if entries else ""
    after = dict(beside.after)
    renewed: Set[Key] = set()
    at_boot = set_at_boot(host, entries)  # nearmetal's files set these values, even if a run has set others since
    hidden = {key for what, _where in at_boot for key in lever_of(what).hides}
    for entry in restore_order(entries):
        place = entry.place(host)
        if place.detached():
            forget.append(entry)
            continue
        void = entry.void(boot_id)
        if void and entry.key in hidden:  # what the file hid at boot comes back with the value that hides it
            forget.append(entry)
            continue
        now = place.read()
        set_values = entry.set_values
        if void and entry.key in at_boot:
            set_values = (*set_values, place.remembered(now))
        original = entry.original
        if void:
            original = boot_value(place, entry) if settable else None
            if now is not None and now == entry.original and original in (None, now):
                forget.append(entry)  # as it was in an earlier boot: nothing is left to say
                continue
        in_force = entry._replace(set_values=set_values, original=original)
        judged = in_force.judged(host)
        fitted = place.fitting(original, beside._replace(after=after))
        fits = _fitting(place, judged, original, fitted)
        restorable = judged.restorable
        judged = judged._replace(restorable={**fits.same, **fits.chosen})
        if entry.boot_id == boot_id or not void:
            findings += left_behind.set_by_others(place, entry, judged)
        if fits.left and not void:
            sentence = left_behind.kept_back(fits.left, restorable, "it stays as it is")
            findings.append(left_behind.advice(entry, sentence))
        if not void:
            findings += left_behind.out_of_reach(entry, judged, cpus)
        in_force = in_force._replace(original=fitted)
        goal = _goal(place, in_force, judged, not void and entry.key in renewed, cpus)
        if goal:
            renewed.update(place.disturbs())
            action = Action(
                concern=entry.concern,
                knob=entry.knob,
                what=entry.what,
                where=entry.where,
                before=(
                    {name: now[name] for name in goal if name in now}
                    if place.partial and isinstance(now, Mapping)
                    else now
                ),
                after=place.composed(goal, now),
                scope=place.scope,
                disruptive=place.disruptive,
                reason=left_behind.kept_back(fits.chosen, restorable, "it gets what the kernel chooses")
                if fits.chosen
                else reason,
                reference="journal",
            )
            actions.append(action)
            after[entry.key] = action.after
            findings.append(left_behind.given_back(action))
            findings += left_behind.followers(place, entry, now, action.after, entries) if void else ()
            pending = place.pending(action.after)
            if pending:
                findings.append(left_behind.given_back(action)._replace(status=place.waits_for, reason=pending))
        elif void and judged.held:
            findings.append(left_behind.by_reboot(place, entry, now))
            findings += left_behind.followers(place, entry, now, entry.original, entries)
            forget.append(entry._replace(until_boot=True))
        elif void or (fits.complete and not judged.absent):
            forget.append(entry)
    return RestorePlan(Plan(tuple(actions), tuple(findings)), tuple(forget))


def waits_for_boot(host: WritableHost, entries: Sequence[Entry]) -> Tuple[Finding, ...]:
    """The findings of a concern that was taken back but for values that the next boot gives back; else none."""
    taken_back = all(entry.until_boot for entry in entries)
    return plan_restore(host, entries, "", settable=False).plan.findings if taken_back else ()


def entries_by_files(host: WritableHost, entries: Sequence[Entry]) -> Tuple[Entry, ...]:
    """Entries for places that nearmetal's files have set, and no run of nearmetal.

    These are places of devices that came after nearmetal's last run, and those set at the boot of a host
    that was started from an image. Their original is the kernel's own choice.
    """
    known = {entry.key for entry in entries}
    boot_id = host.boot_id() if entries else ""
    new_entries: Dict[Key, Entry] = {}
    for entry in entries:
        at_boot = set_at_boot(host, (entry,))
        for key in dict.fromkeys((*set_now(host, entry), *sorted(at_boot))):
            place, knob = place_of(host, key), knob_name(entry.concern, *key)
            original, present = boot_value(place), place.remembered(place.read())
            if key not in known and (original is not None or key in at_boot):
                new_entries[key] = Entry(entry.concern, knob, *key, original, (present,), boot_id)
    return tuple(new_entries.values())


def _goal(place: Lever, entry: Entry, judged: Judged, renewed: bool, cpus: AbstractSet[int]) -> Mapping[str, Value]:
    """The elements to restore, and absent ones that a step of the same run may create again, such as queues."""
    initial = place.elements(entry.original) if place.partial else {}
    absent = set(initial) - set(place.present_elements()) if renewed else set()
    if not judged.restorable and not absent and not any(place.cpu_of(name) in cpus for name in judged.absent):
        return {}
    return {
        **judged.restorable,
        **{name: part for name, part in initial.items() if name in judged.absent or name in absent},
    }


class _Fitting(NamedTuple):
    """What comes back of an original that the place can't take now: its elements in each of these tables."""

    same: Mapping[str, Value] = {}  # element → its original
    chosen: Mapping[str, Value] = {}  # element → what the kernel chooses in its place, where it isn't there already
    left: Mapping[str, Value] = {}  # element → its original, where the place stays as it is
    complete: bool = True  # whether no original is kept for later


def _fitting(place: Lever, judged: Judged, original: Value, fitted: Value) -> _Fitting:
    if fitted == original:
        return _Fitting(judged.restorable)
    parts = place.elements(fitted) if fitted is not None else {}
    same = {name: part for name, part in judged.restorable.items() if parts.get(name) == part}
    kept = {name: part for name, part in judged.restorable.items() if name not in same}
    chosen = {name: parts[name] for name in kept if parts.get(name, judged.held[name]) != judged.held[name]}
    left = {name: part for name, part in kept.items() if name not in parts}
    return _Fitting(same, chosen, left, not kept)
