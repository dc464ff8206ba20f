# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying a plan: journal it, write it, verify it, or roll it back. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from typing import AbstractSet, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from .._error import Declined, NearmetalError
from .._host.host import WritableHost
from .._levers.base import Key, Lever
from .._levers.registry import lever_of, place_of
from .._memory import set_by_files
from .._memory.entry import Entry
from .._memory.journal import Journal
from .._plan import Action, Value
from .._words import LONGEST_VALUE, in_words
from .left_behind import knob_name
from .restore import plan_restore, restore_order


def obstacles(host: WritableHost, actions: Sequence[Action]) -> List[str]:
    """Why these actions can't be done, known before anything is changed."""
    sentences = []
    for action in actions:
        place = place_of(host, action.key)
        place.check(action.where, action.after)
        sentence = place.obstacle()
        if sentence:
            sentences.append(f"{action.concern}.{action.knob}: {sentence}")
    return sentences


def apply(
    host: WritableHost,
    journal: Journal,
    actions: Sequence[Action],
    remaining: Callable[[], Sequence[Action]],
    remember: Callable[[], object] = lambda: None,
) -> List[Action]:
    """Do the actions of one concern as a whole: afterwards all of them hold, or none was done.

    `remaining` observes the host again and returns the actions that are still to be done. `remember` stores what
    else the run keeps on the host, and belongs to the whole. Returns the actions that were done, after the changes
    that they caused elsewhere. Raises NearmetalError, with everything taken back, when a write fails or the
    kernel didn't take a value.
    """
    earlier = journal.entries()
    actions = _due(host, earlier, _completed(host, actions))
    done: List[Action] = []
    written = {action.key for action in actions}
    places = _neighbors(host, actions)
    # What followed a value that a file of nearmetal set at boot has no original of its own: it follows again.
    by_files = set_by_files.set_at_boot(host, earlier) if actions else set()
    known = {entry.key: entry for entry in earlier if entry.key not in by_files}
    causes = [action for action in actions if not _set_at_boot(host, action, known, by_files)]
    neighbors = [place for place in _neighbors(host, causes) if place.key not in written]
    try:
        if actions:
            journal.begin(actions, neighbors, _already_set(host, actions))
        for group in _groups(actions):
            done += _completed(host, group)  # an earlier action may have made elements, such as queues
            _write(host, group, earlier)
        if actions:
            _require_held(host, done, remaining())
            journal.settle(actions, neighbors)
            settle_neighbors(host, journal)
        remember()
    except NearmetalError as error:
        trouble = roll_back(host, [*_disturbed(host, places, written), *done])
        if trouble:
            with suppress(NearmetalError):  # `begin` has written them already
                journal.keep(earlier, done)
            raise NearmetalError(
                f"{error}; and undoing it failed: {trouble}; the journal keeps the originals"
            ) from None
        with suppress(NearmetalError):  # an entry too many does no harm: its place has its original value again
            journal.reset(earlier)
        sentence = f"{error}; what this concern had changed was taken back"
        if isinstance(error, Declined):
            raise Declined(sentence, error.places, error.answer) from None
        raise NearmetalError(sentence) from None
    return [*_disturbed(host, places, written), *done]


def _write(host: WritableHost, group: Sequence[Action], entries: Sequence[Entry]) -> None:
    """Write a group. Some drivers answer an error after they have done it: on the way back what is there counts."""
    originals = {entry.key: entry.original for entry in entries}
    try:
        place_of(host, group[0].key).write_all({action.where: action.after for action in group})
    except NearmetalError:
        for action in group:
            if action.after != originals.get(action.key) or place_of(host, action.key).read() != action.after:
                raise


def _set_at_boot(
    host: WritableHost,
    action: Action,
    entries: Mapping[Key, Entry],
    by_files: AbstractSet[Key],
) -> bool:
    """Whether the place has had a value of nearmetal since the boot, so that its original is of an earlier one."""
    entry = entries.get(action.key)
    if entry is None:
        return action.key in by_files
    return entry.void(host.boot_id()) and bool(entry.holding(entry.place(host).read()))


def _completed(host: WritableHost, actions: Sequence[Action]) -> List[Action]:
    """The actions, each with the elements in `before` that its place has by now."""
    return [action._replace(before=place_of(host, action.key).completed(action.before)) for action in actions]


def _due(host: WritableHost, entries: Sequence[Entry], actions: Sequence[Action]) -> List[Action]:
    """Leaves out actions whose place another concern of this run has already restored.

    The restore of rings, for example, brings back the interrupts too, and settles their entries. What an action of the
    same concern is going to change is written again.
    """
    kept = {entry.key for entry in entries}
    places = [place_of(host, action.key) for action in actions]
    kept.update(key for place in places for key in place.disturbs())
    return [
        action
        for action, place in zip(actions, places)
        if action.key in kept or not place.same(place.read(), action.after)
    ]


def _neighbors(host: WritableHost, actions: Sequence[Action]) -> List[Action]:
    """The other places that these actions may change, with their present values; `reason` is the lever's name."""
    neighbors: Dict[Key, Action] = {}
    for action in actions:
        for key in place_of(host, action.key).disturbs():
            neighbor = _unchanged(host, action, key)
            with suppress(NearmetalError):
                lever_of(neighbor.what).check(neighbor.where, neighbor.before)
                neighbors.setdefault(key, neighbor)
    return list(neighbors.values())


def _already_set(host: WritableHost, actions: Sequence[Action]) -> List[Action]:
    """The places that have the value already that a file of these actions is going to set at boot or on new devices.

    Once the file is there, nothing else tells that they had it before.
    """
    return [
        _unchanged(host, action, key)
        for action in actions
        for key in set_by_files.would_set(host, action.key, str(action.after or ""))
    ]


def _unchanged(host: WritableHost, action: Action, key: Key) -> Action:
    """The present value of a place that an action may concern, as an action that changes nothing."""
    now = place_of(host, key).read()
    return Action(action.concern, knob_name(action.concern, *key), key[0], now, now, action.what, "journal", key[1])


def _disturbed(host: WritableHost, neighbors: Sequence[Action], written: AbstractSet[Key]) -> List[Action]:
    """The changes of these places; of a place that was `written`, only the elements that it lost."""
    disturbed = []
    for neighbor in neighbors:
        place = place_of(host, neighbor.key)
        now = place.read()
        present = place.elements(now)
        earlier = place.elements(neighbor.before) if place.partial else {}
        lost = {name: None for name in earlier if name not in present}
        changed = {} if neighbor.key in written or now == neighbor.before else present
        if now is not None and (changed or lost):
            disturbed.append(neighbor._replace(after=place.composed({**changed, **lost}, now)))
    return disturbed


def settle_neighbors(host: WritableHost, journal: Journal) -> None:
    """Restore each place that had changed only because of a write that is restored by now."""
    present = {entry.what for entry in journal.entries()}
    entries = [entry for entry in journal.entries() if entry.follows and entry.follows not in present]
    if entries:
        restore = plan_restore(host, entries, "changed by the restore of another value")
        apply(host, journal, restore.plan.actions, tuple)
        journal.forget(restore.forget)


def roll_back(host: WritableHost, done: Sequence[Action]) -> str:
    """Take actions back, the last one first, and of a table only the elements that an action changed.

    Returns what couldn't be taken back, as a sentence; empty when everything was.
    """
    created = any(lever_of(action.what).creates for action in done)
    # Before the elements go, such as the interrupts of queues: with the next number of queues they come back as set.
    early = _take_back(host, done[::-1]) if created else []
    late = _take_back(host, restore_order(done))
    trouble = [*(failure for failure in early if _lasts(host, failure)), *late]
    sentences = list(dict.fromkeys(failure.sentence for failure in trouble))
    return "; ".join(sentences[:2]) + (f"; and {len(sentences) - 2} more" if len(sentences) > 2 else "")


class _Failure(NamedTuple):
    """Elements of a place that couldn't be taken back."""

    action: Action
    elements: Tuple[str, ...]
    sentence: str


def _lasts(host: WritableHost, failure: _Failure) -> bool:
    """Whether an element still differs from before, or is absent and would come back with the value that was set."""
    action, place = failure.action, place_of(host, failure.action.key)
    present = place.present_elements()
    before = place.elements(action.before, place.elements(action.after))
    return any(
        name not in present or _differs(place, present, name, before[name])
        for name in failure.elements
        if name in before
    )


def _take_back(host: WritableHost, actions: Sequence[Action]) -> List[_Failure]:
    """Take actions back in this order; returns what couldn't be taken back."""
    trouble = []
    for group in _groups(actions):
        try:
            values = {action.where: value for action, value in _not_restored(host, group)}
            place_of(host, group[0].key).write_all(values)
        except NearmetalError:
            trouble += _restore_each_element(host, group)
        for action, value in _not_restored(host, group):
            place = place_of(host, action.key)
            names = tuple(place.elements(value, place.present_elements()))
            trouble.append(_Failure(action, names, f"{action.what} {action.where} doesn't take {_shown(value)}"))
    return trouble


def _restore_each_element(host: WritableHost, group: Sequence[Action]) -> List[_Failure]:
    """Restore the remaining elements one at a time, so that a failure stops no other; returns the failures."""
    trouble = []
    for action, value in _not_restored(host, group):
        place = place_of(host, action.key)
        for name, part in place.elements(value, place.present_elements()).items():
            try:
                place.write(place.composed({name: part}, place.read()))
            except NearmetalError as error:
                trouble.append(_Failure(action, (name,), str(error)))
    return trouble


def _not_restored(host: WritableHost, group: Sequence[Action]) -> List[Tuple[Action, Value]]:
    """The actions of one lever whose place isn't yet as it was before them, each with the value that restores it."""
    not_restored = []
    for action in group:
        place = place_of(host, action.key)
        present = place.present_elements()
        before = place.elements(action.before, place.elements(action.after))
        after = place.elements(action.after, before)
        changed = {
            name: part
            for name, part in before.items()
            if name in after and after[name] != part and _differs(place, present, name, part)
        }
        if changed:
            not_restored.append((action, place.composed(changed, place.read())))
    return not_restored


def _differs(place: Lever, present: Mapping[str, Value], name: str, part: Value) -> bool:
    """Whether an element isn't, or isn't known to be, as it was before an action."""
    if name not in present:
        return place.may_return(name)
    return not place.same_element(place.remembered(present[name]), place.remembered(part))


def _groups(actions: Sequence[Action]) -> List[List[Action]]:
    """The actions in groups, each written in one go: successive actions of a batch lever, every other one alone."""
    groups: List[List[Action]] = []
    for action in actions:
        if lever_of(action.what).batch and groups and groups[-1][0].what == action.what:
            groups[-1].append(action)
        else:
            groups.append([action])
    return groups


def _require_held(host: WritableHost, done: Sequence[Action], remaining: Sequence[Action]) -> None:
    """Raise NearmetalError unless each place has its value, and none of the actions remains to be done."""
    to_do = {action.key for action in remaining}
    for action in done:
        place = place_of(host, action.key)
        now = place.read()
        if not place.applied(now, action.before, action.after) or action.key in to_do:
            name = f"{action.what} {action.where}".strip()
            raise NearmetalError(
                f"{action.concern}.{action.knob}: the kernel did not take {_shown(action.after)} for {name}: it has"
                f" {_shown(now)}"
            )


def _shown(value: Value) -> str:
    return in_words(value, "nothing", LONGEST_VALUE)
