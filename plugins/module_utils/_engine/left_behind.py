# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a restore says about each place: what goes back, what is left alone and why. PRIVATE to the collection."""

from __future__ import annotations

from typing import AbstractSet, Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from .._concerns.registry import CONCERNS
from .._host.host import WritableHost
from .._levers.base import Lever
from .._levers.registry import lever_of, place_of
from .._memory.elements import Judged
from .._memory.entry import Entry
from .._memory.set_by_files import why_unsure
from .._plan import Action, Finding, Value
from .._words import LONGEST_VALUE, in_words, span

_MOST_NAMES, _MOST_SENTENCES = 12, 16


def knob_name(concern: str, what: str, where: str) -> str:
    """The concern's name for the knob at a place; taken from the place for a concern of another version."""
    knobs = CONCERNS[concern].knobs if concern in CONCERNS else ()
    names = (knob.name for knob in knobs if knob.lever == what and knob.place in ("", where))
    return next(names, (where or what).rpartition(".")[2])


def _about(entry: Entry, status: str, reason: str, **values: Any) -> Finding:
    return Finding(entry.concern, entry.knob, status, reason, reference="journal", where=entry.where, **values)


def advice(entry: Entry, reason: str, **values: Any) -> Finding:
    """The finding that the place of an entry is left as it is."""
    return _about(entry, "advice", reason, **values)


def given_back(action: Action) -> Finding:
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


def other_devices(host: WritableHost, entries: Iterable[Entry], what_follows: str) -> Tuple[Finding, ...]:
    """A finding for each place where another device is now."""
    sentence = "{} is not the device that nearmetal tuned at this place: {}".format
    return tuple(advice(entry, sentence(entry.place(host).device_name(), what_follows)) for entry in entries)


def kept_back(names: Iterable[str], originals: Mapping[str, Value], outcome: str) -> str:
    """Why these elements don't get their originals."""
    texts = {name: str(originals[name]) for name in names}
    values = ", ".join(sorted({*texts.values()}))
    it = "it was" if list(texts) == [""] else f"{span(list(texts), _MOST_NAMES)} had"
    return (
        f"before nearmetal {it} {values}, which the host can't take as it is now: {outcome}; the journal keeps {values}"
    )


def set_by_others(place: Lever, entry: Entry, judged: Judged) -> Iterator[Finding]:
    """Findings for elements that somebody else set; one sentence for all elements with the same change."""
    groups: Dict[str, List[str]] = {}
    for name, (now, original) in judged.foreign.items():
        unknown = original is None and place.scope == "runtime"
        earlier = "only a boot shows what it was before nearmetal" if unknown else f"before nearmetal it was {original}"
        how = _unverified(entry, name)
        change = f"{how}: left alone; {earlier}" if how else f"after nearmetal did: left alone; {earlier}"
        if how and name == "" and not unknown:
            change += _by_command(place, original, "to set that")
        groups.setdefault(f"to {now}{', ' if how else ' '}{change}", []).append(name)
    changes = list(groups.items())
    if len(changes) > _MOST_SENTENCES:
        summarized = [name for _change, names in changes[_MOST_SENTENCES:] for name in names]
        changes[_MOST_SENTENCES:] = [("to other values after nearmetal did: left alone", summarized)]
    for change, names in changes:
        present, originals = ({name: judged.foreign[name][side] for name in names} for side in (0, 1))
        reason = " ".join(filter(None, ("somebody set", span(names, _MOST_NAMES) or "it", change)))
        if names == [""]:
            yield advice(entry, reason, now=str(present[""]), wanted=originals[""])
        else:
            yield advice(entry, reason, now=present, wanted=originals)


def _by_command(place: Lever, value: Value, how: str) -> str:
    """The end of a sentence: the command that sets a value, if there is one alone."""
    from .by_hand import commands as commands_of  # it loads every lever, and few restores need it

    commands = commands_of(place, value)
    return f"; {how}: {commands[0]}" if len(commands) == 1 else ""


def _unverified(entry: Entry, name: str) -> str:
    """How an element may have its value by a run that was interrupted before it read back what it had written."""
    intended = entry.lever.elements(entry.set_values[-1], [name]).get(name)
    if entry.whole or entry.disturbed_by or intended == entry.lever.elements(entry.original, [name]).get(name):
        return ""
    return (
        f"or the kernel made it from {intended}, which a run of nearmetal wrote and could not verify, because the run"
        " was interrupted"
    )


def out_of_reach(entry: Entry, judged: Judged, cpus: AbstractSet[int]) -> Iterator[Finding]:
    """The finding for elements that can't be read now, unless these CPUs bring them back."""
    lever = lever_of(entry.what)
    absent = [name for name in judged.absent if lever.cpu_of(name) not in cpus]
    if absent:
        initial = entry.lever.elements(entry.original, absent)
        places = span(absent, _MOST_NAMES) or f"{entry.what} {entry.where}".strip()
        yield advice(
            entry,
            f"{places} can't be read now, for example because CPUs are offline or a device is absent;"
            " the journal keeps the original: run restore again later",
            wanted={name: part for name, part in initial.items() if name in absent},
        )


def followers(place: Lever, entry: Entry, now: Value, after: Value, entries: Sequence[Entry]) -> Iterator[Finding]:
    """A finding for each place that the kernel has set by itself because of the value `now`, set at boot."""
    known = {entry.key for entry in entries}
    for key in place.disturbs() if place.moves(now, after) else ():
        follower = place_of(place.host, key).read()
        if key not in known and follower is not None:
            reason = f"the kernel chose {follower} by {entry.concern}.{entry.knob}, and chooses anew when it changes"
            yield advice(entry, reason, now=follower)._replace(knob=knob_name(entry.concern, *key), where=key[1])


def by_reboot(place: Lever, entry: Entry, now: Value) -> Finding:
    """The finding that only the next boot gives a value back, with the command that sets what it was before."""
    before, instead = "nothing on this host says what it was before nearmetal", ""
    if entry.original is not None:
        original = in_words(entry.original, "absent", LONGEST_VALUE)
        why = why_unsure(place, entry) or "which the host doesn't take now"
        before = f"before nearmetal, in an earlier boot, it was {original}, {why}"
        instead = _by_command(place, entry.original, "to set that now")
    reason = f"{before}; the next boot brings back what the host has without nearmetal{instead}"
    return _about(entry, "needs_reboot", reason, now=now, wanted=entry.original)
