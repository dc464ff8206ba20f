# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How values of levers are compared and divided into elements. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, Iterable, Mapping

from .._plan import Value


class Values:
    """How values of one kind are compared and divided into elements; only a table has several. Pure."""

    partial = False  # a value may name only some elements of its place, and leaves the others as they are

    def same(self, present: Value, value: Value) -> bool:
        """Whether a place that reads `present` holds `value`."""
        return present == value

    def same_element(self, present: Value, value: Value) -> bool:
        """Whether an element that reads `present` holds `value`."""
        return self.same(present, value)

    def applied(self, present: Value, before: Value, after: Value) -> bool:
        """Whether the change from `before` to `after` is in effect at a place that reads `present`."""
        return self.same(present, after)

    def partial_write(self, present: Value, original: Value, value: Value) -> bool:
        """Whether an interrupted write of `value` may have left `present`."""
        return False

    def original(self, before: Value) -> Value:
        """What restore brings back, given the value before nearmetal's first change."""
        return before

    def remembered(self, value: Value) -> Value:
        """What the journal keeps of a value that nearmetal wrote, enough to recognize it again."""
        return value

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        """Element → value; a set also has those of the elements `names` that aren't in it."""
        return {"": value}

    def composed(self, elements: Mapping[str, Value], value: Value) -> Value:
        """The value that has these elements; a set has its other elements from `value`."""
        return elements.get("", value)


class TableValues(Values):
    """A value per element, in a mapping."""

    partial = True

    def same(self, present: Value, value: Value) -> bool:
        """Whether the elements that the place still has hold `value`: queues and CPUs may have left since."""
        if not isinstance(present, Mapping):
            return present == value
        return all(present.get(name, part) == part for name, part in self.elements(value).items())

    def same_element(self, present: Value, value: Value) -> bool:
        return present == value

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        return dict(value) if isinstance(value, Mapping) else {}

    def composed(self, elements: Mapping[str, Value], value: Value) -> Value:
        return dict(elements)


class SetValues(TableValues):
    """A set of elements: a value decides about every element, in the set or not."""

    partial = False

    def same(self, present: Value, value: Value) -> bool:
        return present == value

    def applied(self, present: Value, before: Value, after: Value) -> bool:
        """Only the elements that changed count: another write of the run may move the others, as smt/control does."""
        names = {**self.elements(before), **self.elements(after)}
        earlier, goal = self.elements(before, names), self.elements(after, names)
        changed = [name for name in names if earlier[name] != goal[name]]
        now = self.elements(present, changed)
        return all(now[name] == goal[name] for name in changed)


class NearmetalValues(Values):
    """Values of what only nearmetal makes, such as its files: without a journal entry it is a leftover, no original."""

    def original(self, before: Value) -> Value:
        return None
