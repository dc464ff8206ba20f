# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning a restore from the journal. PRIVATE to the collection."""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple, TypeVar

from .._concerns.registry import CONCERNS
from .._host.host import WritableHost
from .._levers.base import ALONE, Beside, Key, Lever
from .._levers.registry import lever_of, place_of
from .._memory.boot_value import boot_value, why_unsure
from .._memory.elements import Judged
from .._memory.entry import Entry
from .._memory.set_by_files import set_at_boot, set_now
from .._plan import Action, Finding, Plan, Value
from .._words import LONGEST_VALUE, in_words

_MOST_NAMES, _MOST_SENTENCES = 12, 16
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
            set_values = (*set_values, place.values.remembered(now))
        original = entry.original
        if void:
            original = boot_value(place, entry) if settable else None
            if now is not None and now == entry.original and original in (None, now):
                forget.append(entry)  # as it was in an earlier boot: nothing is left to say
                continue
        in_force = entry._replace(set_values=set_values, original=original)
        judged = in_force.judged(host, original)
        fitted = place.fitting(original, beside._replace(after=after))
        fits = _fitting(place, judged, original, fitted)
        restorable = judged.restorable
        judged = judged._replace(restorable={**fits.same, **fits.chosen})
        if entry.boot_id == boot_id or not void:
            findings += _left_alone(host, entry, judged)
        if fits.left and not void:
            sentence = _kept_back(fits.left, restorable, "it stays as it is")
            findings.append(
                Finding(entry.concern, entry.knob, "advice", sentence, reference="journal", where=entry.where)
            )
        if not void:
            findings += _out_of_reach(entry, judged, cpus)
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
                    if place.values.partial and isinstance(now, Mapping)
                    else now
                ),
                after=place.values.composed(goal, now),
                scope=place.scope,
                disruptive=place.disruptive,
                reason=_kept_back(fits.chosen, restorable, "it gets what the kernel chooses")
                if fits.chosen
                else reason,
                reference="journal",
            )
            actions.append(action)
            after[entry.key] = action.after
            findings.append(_finding(action))
            findings += _followers(host, entry, now, action.after, entries) if void else ()
            pending = place.pending(action.after)
            if pending:
                findings.append(_finding(action)._replace(status=place.waits_for, reason=pending))
        elif void and judged.held:
            findings.append(_by_reboot(host, entry, now))
            findings += _followers(host, entry, now, entry.original, entries)
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
            original, present = boot_value(place), place.values.remembered(place.read())
            if key not in known and (original is not None or key in at_boot):
                new_entries[key] = Entry(entry.concern, knob, *key, original, (present,), boot_id)
    return tuple(new_entries.values())


def knob_name(concern: str, what: str, where: str) -> str:
    """The concern's name for the knob at a place; taken from the place for a concern of another version."""
    knobs = CONCERNS[concern].knobs if concern in CONCERNS else ()
    names = (knob.name for knob in knobs if knob.lever == what and knob.place in ("", where))
    return next(names, (where or what).rpartition(".")[2])


def other_devices(host: WritableHost, entries: Iterable[Entry], what_follows: str) -> Tuple[Finding, ...]:
    """A finding for each place where another device is now."""
    return tuple(
        Finding(
            concern=entry.concern,
            knob=entry.knob,
            status="advice",
            where=entry.where,
            reason=f"{entry.place(host).device_name()} is not the device that nearmetal tuned at"
            f" this place: {what_follows}",
            reference="journal",
        )
        for entry in entries
    )


def _finding(action: Action) -> Finding:
    """The finding of a restoring action; of a file its path says enough, without its text."""
    file = action.what == "files"
    return Finding(
        concern=action.concern,
        knob=action.knob,
        status="would_change",
        where=action.where,
        now="written" if file and action.before is not None else action.before,
        wanted="as before" if file and action.after is not None else action.after,
        reason=action.reason,
        reference=action.reference,
    )


def _goal(place: Lever, entry: Entry, judged: Judged, renewed: bool, cpus: AbstractSet[int]) -> Mapping[str, Value]:
    """The elements to restore, and absent ones that a step of the same run may create again, such as queues."""
    initial = place.values.elements(entry.original) if place.values.partial else {}
    absent = set(initial) - set(place.elements()) if renewed else set()
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
    parts = place.values.elements(fitted) if fitted is not None else {}
    same = {name: part for name, part in judged.restorable.items() if parts.get(name) == part}
    kept = {name: part for name, part in judged.restorable.items() if name not in same}
    chosen = {name: parts[name] for name in kept if parts.get(name, judged.held[name]) != judged.held[name]}
    left = {name: part for name, part in kept.items() if name not in parts}
    return _Fitting(same, chosen, left, not kept)


def _kept_back(names: Iterable[str], originals: Mapping[str, Value], outcome: str) -> str:
    """Why these elements don't get their originals."""
    texts = {name: str(originals[name]) for name in names}
    values = ", ".join(sorted({*texts.values()}))
    it = "it was" if list(texts) == [""] else f"{_listed(list(texts))} had"
    return (
        f"before nearmetal {it} {values}, which the host can't take as it is now: {outcome}; the journal keeps {values}"
    )


def _left_alone(host: WritableHost, entry: Entry, judged: Judged) -> Iterator[Finding]:
    """Findings for elements that somebody else set; one sentence for all elements with the same change."""
    groups: Dict[str, List[str]] = {}
    for name, (now, original) in judged.foreign.items():
        unknown = original is None and lever_of(entry.what).scope == "runtime"
        earlier = "only a boot shows what it was before nearmetal" if unknown else f"before nearmetal it was {original}"
        how = _unverified(entry, name)
        change = f"{how}: left alone; {earlier}" if how else f"after nearmetal did: left alone; {earlier}"
        if how and name == "" and not unknown:
            commands = entry.place(host).commands(original)
            change += f"; to set that: {commands[0]}" if len(commands) == 1 else ""
        groups.setdefault(f"to {now}{', ' if how else ' '}{change}", []).append(name)
    changes = list(groups.items())
    if len(changes) > _MOST_SENTENCES:
        summarized = [name for _change, names in changes[_MOST_SENTENCES:] for name in names]
        changes[_MOST_SENTENCES:] = [("to other values after nearmetal did: left alone", summarized)]
    for change, names in changes:
        table = names != [""]
        yield Finding(
            concern=entry.concern,
            knob=entry.knob,
            status="advice",
            where=entry.where,
            now={name: judged.foreign[name][0] for name in names} if table else str(judged.foreign[""][0]),
            wanted={name: judged.foreign[name][1] for name in names} if table else judged.foreign[""][1],
            reason=" ".join(filter(None, ("somebody set", _listed(names), change))),
            reference="journal",
        )


def _unverified(entry: Entry, name: str) -> str:
    """How an element may have its value by a run that was interrupted before it read back what it had written."""
    intended = entry.values.elements(entry.set_values[-1], [name]).get(name)
    if entry.whole or entry.disturbed_by or intended == entry.values.elements(entry.original, [name]).get(name):
        return ""
    return (
        f"or the kernel made it from {intended}, which a run of nearmetal wrote and could not verify, because the run"
        " was interrupted"
    )


def _out_of_reach(entry: Entry, judged: Judged, cpus: AbstractSet[int]) -> Iterator[Finding]:
    lever = lever_of(entry.what)
    absent = [name for name in judged.absent if lever.cpu_of(name) not in cpus]
    if not absent:
        return
    initial = entry.values.elements(entry.original, absent)
    places = _listed(absent) or f"{entry.what} {entry.where}".strip()
    yield Finding(
        concern=entry.concern,
        knob=entry.knob,
        status="advice",
        where=entry.where,
        wanted={name: part for name, part in initial.items() if name in absent},
        reason=f"{places} can't be read now, for example because CPUs are offline or a device is absent;"
        " the journal keeps the original: run restore again later",
        reference="journal",
    )


def _listed(names: Sequence[str]) -> str:
    """The names of elements, of many only the first; empty for a place that is no table."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _followers(
    host: WritableHost, entry: Entry, now: Value, after: Value, entries: Sequence[Entry]
) -> Iterator[Finding]:
    """A finding for each place that the kernel has set by itself because of the value `now`, set at boot."""
    place, known = entry.place(host), {entry.key for entry in entries}
    for key in place.disturbs() if place.moves(now, after) else ():
        follower = place_of(host, key).read()
        if key not in known and follower is not None:
            yield Finding(
                concern=entry.concern,
                knob=knob_name(entry.concern, *key),
                status="advice",
                where=key[1],
                now=follower,
                reason=f"the kernel chose {follower} by {entry.concern}.{entry.knob}, and chooses anew when it changes",
                reference="journal",
            )


def _by_reboot(host: WritableHost, entry: Entry, now: Value) -> Finding:
    """The finding that only the next boot gives a value back, with the command that sets what it was before."""
    before, instead = "nothing on this host says what it was before nearmetal", ""
    if entry.original is not None:
        original = in_words(entry.original, "absent", LONGEST_VALUE)
        why = why_unsure(host, entry) or "which the host doesn't take now"
        before = f"before nearmetal, in an earlier boot, it was {original}, {why}"
        commands = entry.place(host).commands(entry.original)
        instead = f"; to set that now: {commands[0]}" if len(commands) == 1 else ""
    return Finding(
        concern=entry.concern,
        knob=entry.knob,
        status="needs_reboot",
        where=entry.where,
        now=now,
        wanted=entry.original,
        reason=f"{before}; the next boot brings back what the host has without nearmetal{instead}",
        reference="journal",
    )
