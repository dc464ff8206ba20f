# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging a place element by element: set by nearmetal, original, or set by somebody else. PRIVATE to the collection.

A run may end inside a table, and somebody may set one element of it, so the elements of a
table may differ in this. A place that is no table has one element.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from .._levers.base import Lever
from .._plan import Value


class Judged(NamedTuple):
    """Who has set the elements of a place. An element that has its original value is in none of the tables."""

    held: Mapping[str, Value]  # element → the value that nearmetal set and it holds
    restorable: Mapping[str, Value]  # element of `held` → its original
    absent: Mapping[str, Value]  # element that can't be read now → the last value that nearmetal set
    # Element that somebody set → its present value, and its original; None at runtime: only a boot shows it.
    foreign: Mapping[str, Tuple[Value, Value]]


def judge(place: Lever, original: Value, set_values: Sequence[Value], whole: bool) -> Judged:
    """Read the place and judge it. `set_values` are what runs wrote or intended, the last one last.

    Unless they are known to be `whole`, a run may have ended inside the write of an element.
    """
    present = place.present_elements()
    names = dict.fromkeys(name for value in (original, *set_values) for name in place.elements(value))
    names.update(dict.fromkeys(present))
    initial = originals(place, original, names)
    written: Dict[str, List[Value]] = {}
    for value in reversed(set_values):
        for name, part in place.elements(value, names).items():
            written.setdefault(name, []).append(part)
    held: Dict[str, Value] = {}
    restorable: Dict[str, Value] = {}
    absent: Dict[str, Value] = {}
    foreign: Dict[str, Tuple[Value, Value]] = {}
    for name in names:
        parts = written.get(name, [])
        if name not in present:
            changed = [part for part in parts if name not in initial or part != initial[name]]
            if changed and place.may_return(name):
                absent[name] = changed[0]
        elif name not in initial or present[name] != initial[name]:
            now = place.remembered(present[name])
            matches = [part for part in parts if place.same_element(now, part)]
            if not matches and not whole and name in initial:
                matches = [part for part in parts if place.partial_write(now, initial[name], part)]
            if matches:
                held[name] = matches[0]
                if name in initial:
                    restorable[name] = initial[name]
            elif name in initial:
                foreign[name] = (present[name], initial[name])
            elif parts and original is None:
                foreign[name] = (present[name], None)
    return Judged(held, restorable, absent, foreign)


class RemovedElements(NamedTuple):
    """Elements that another change of nearmetal removed, such as queues, and that its restore creates again."""

    last: Mapping[str, Value]  # element → the last value that nearmetal set
    originals: Mapping[str, Value]  # element → the value to restore, where the kernel wouldn't choose it by itself


def removed_elements(place: Lever, original: Value, last: Mapping[str, Value], before: Value) -> RemovedElements:
    """Find them. `last` has nearmetal's last value per element; `before` is the place as it was before the run.

    What somebody had set since nearmetal's first change is to be restored, not the original.
    """
    present, earlier = place.present_elements(), place.elements(before)
    choice = list(place.elements(place.choice()).values())
    held: Dict[str, Value] = {}
    to_restore: Dict[str, Value] = {}
    for name, part in originals(place, original, ()).items() if place.partial else ():
        if name in present or place.may_return(name):
            continue
        if name in last and last[name] != part:
            held[name] = last[name]
            to_restore[name] = part
        elif earlier.get(name, part) not in choice:
            to_restore[name] = earlier.get(name, part)
    return RemovedElements(held, to_restore)


def hidden_by_offline_cpus(place: Lever, names: Iterable[str]) -> List[str]:
    """The elements that can't be read because their CPUs are offline."""
    bound = [name for name in names if place.cpu_of(name) is not None]
    present = place.present_elements() if bound else {}
    return [name for name in bound if name not in present and place.may_return(name)]


def changed(place: Lever, original: Value, parts: Mapping[str, Value]) -> Dict[str, Value]:
    """The elements among the parts that don't have their original value."""
    initial = originals(place, original, parts)
    return {name: part for name, part in parts.items() if name not in initial or part != initial[name]}


def originals(place: Lever, original: Value, names: Iterable[str]) -> Mapping[str, Value]:
    """Element → its value before nearmetal; empty when only a boot brings it back."""
    return {} if original is None and place.scope == "runtime" else place.elements(original, names)


def with_new_elements(place: Lever, original: Value, after: Value) -> Value:
    """The original, with the kernel's own choice for elements that the run creates, such as queues."""
    initial = originals(place, original, ())
    growing = place.partial and bool(initial)
    new = [name for name in place.elements(after) if growing and name not in initial]
    choice = list(place.elements(place.choice()).values()) if new else []
    if not choice or any(part != choice[0] for part in choice):
        return original
    return place.composed({**initial, **dict.fromkeys(new, choice[0])}, original)


def remaining(
    place: Lever, judged: Judged, set_now: Mapping[str, Value], original: Value, after: Value
) -> Dict[str, Value]:
    """nearmetal's elements after an action that set or kept `set_now`, and is to bring its place to `after`."""
    held = {**judged.held, **set_now, **judged.absent}
    goal = place.elements(after, held)
    initial = originals(place, original, held)
    restored = {name for name in goal if name in initial and goal[name] == initial[name] and name not in judged.absent}
    return {name: part for name, part in held.items() if name not in restored}


def with_kernel_choice(place: Lever, before: Value, held: Mapping[str, Value], choice: Value) -> Value:
    """The value before nearmetal's change, with the kernel's choice for elements that nearmetal's file set at boot."""
    if choice is None and len(held) == len(place.elements(before)):
        return None
    chosen = {name: part for name, part in place.elements(choice, held).items() if name in held}
    foreign = {name: part for name, part in place.elements(before).items() if name not in held}
    return place.composed({**foreign, **chosen}, before)
