# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An entry of the journal: the original of one place, and the values that nearmetal set. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, NamedTuple, Tuple

from .._error import NearmetalError
from .._host.host import WritableHost
from .._levers.base import Lever, TableValues
from .._levers.registry import lever_of, place_of
from .._plan import Action, Value
from . import elements

MOST_VALUES = 8  # values of one place, after runs that were killed
_SET_VALUES = "ours"  # the name of `set_values` in the journal's file, as all versions write it
_DEVICE = re.compile(r"[ -~]{0,256}", re.ASCII)


class Entry(NamedTuple):
    """The value of one place before nearmetal, and the values that nearmetal has set since then."""

    concern: str
    knob: str
    what: str
    where: str
    original: Value  # None at runtime: not known, as only a boot brings it back
    set_values: Tuple[Value, ...]  # the last value is wanted; there are more only after a run that was killed
    boot_id: str  # a runtime original of another boot is void
    whole: bool = False  # a run has verified that its values hold
    disturbed_by: str = ""  # the lever whose write changed this place, too; "" where a run wrote the place
    device: str = ""  # the identity of the device at the place; "" without a device, or where the kernel has none
    attachment: str = ""  # with `disturbed_by`: the kernel's number for the device then
    written: bool = False  # a run wrote the place before the one that `disturbed_by` is about, which was interrupted
    machine: str = ""  # with a runtime original: the kernel and the size of the host then, as `_facts/machine` says it
    until_boot: bool = False  # taken back, but for a value that only the next boot gives back

    @property
    def key(self) -> Tuple[str, str]:
        """The place: the lever's name, and where."""
        return (self.what, self.where)

    @property
    def follows(self) -> str:
        """The lever whose way back is this place's, too; "" where a run wrote the place itself."""
        return "" if self.written else self.disturbed_by

    @property
    def lever(self) -> Lever:
        """The lever of the place, by which its values are compared."""
        return lever_of(self.what)

    def place(self, host: WritableHost) -> Lever:
        """The place on this host."""
        return place_of(host, self.key)

    def void(self, boot_id: str) -> bool:
        """Whether a reboot has made the original meaningless."""
        return lever_of(self.what).scope == "runtime" and (self.boot_id != boot_id or self.original is None)

    def judged(self, host: WritableHost) -> elements.Judged:
        """Who has set the elements of the place."""
        place = self.place(host)
        return elements.judge(place, self.original, self._values_at(place.read()), self.whole)

    @property
    def unread(self) -> bool:
        """Whether a run that changed the place by another one ended before it could read the result."""
        return bool(self.disturbed_by) and not self.whole

    def _values_at(self, now: Value) -> Tuple[Value, ...]:
        """The values that nearmetal has set when the place reads `now`."""
        if self.unread:
            return (*self.set_values, self.lever.remembered(now))
        return self.set_values

    def holding(self, now: Value) -> Mapping[str, Value]:
        """The elements that have a value of nearmetal when the place reads `now`."""
        present = self.lever.elements(now)
        tables = [self.lever.elements(value, present) for value in self._values_at(now)]
        return {
            name: part
            for name, part in present.items()
            if any(
                name in value and self.lever.same_element(self.lever.remembered(part), value[name]) for value in tables
            )
        }

    def verified(self, host: WritableHost) -> "Entry":
        """The entry after a run that found its last value in force; unchanged where another one is.

        Of a table it is unchanged, too: an element that the last value lacks may be set by an earlier one.
        """
        last = self.set_values[-1:]
        if self.whole or self.disturbed_by or last in ((), (None,)) or isinstance(self.lever, TableValues):
            return self
        now = self.lever.remembered(self.place(host).read())
        return self._replace(set_values=last, whole=True) if self.lever.same_element(now, last[0]) else self

    def last(self, now: Value) -> Mapping[str, Value]:
        """nearmetal's last value per element, without those that somebody else has set by `now`."""
        held, present = self.holding(now), self.lever.elements(now)
        last = {name: part for value in self.set_values for name, part in self.lever.elements(value).items()}
        return {name: held.get(name, part) for name, part in last.items() if name in held or name not in present}

    def setting(self, action: Action) -> Dict[str, Value]:
        """The elements that an action sets or keeps; one that somebody else set to the wanted value stays foreign."""
        before = self.lever.elements(action.before)
        after = self.lever.elements(self.lever.remembered(action.after), before)
        held = self.holding(action.before)
        changed = {name: part for name, part in after.items() if name not in before or before[name] != part}
        kept = {name: part for name, part in after.items() if name in held or action.before == action.after}
        return {**kept, **changed}

    def adding(self, host: WritableHost, action: Action) -> Entry:
        """The entry with the action's value as one more; after many killed runs only the last values stay."""
        set_now = self.setting(action)
        intended = self.value(set_now) if set_now else self.lever.remembered(action.after)
        earlier = [value for value in self.set_values if value != intended]
        if len(earlier) >= MOST_VALUES:
            judged = self.judged(host)
            left = {**judged.held, **judged.absent}
            earlier = [*([self.value(left)] if left else []), *earlier[2 - MOST_VALUES :]]
        return self._replace(set_values=(*earlier, intended), whole=False)

    def with_made(self, host: WritableHost, action: Action) -> Entry:
        """The entry with what the kernel made of an action's value among those set; the intended one stays the last."""
        present = self.place(host).present_elements()
        before, after = (self.lever.elements(value, present) for value in (action.before, action.after))
        made = {
            name: self.lever.remembered(part)
            for name, part in present.items()
            if name in after and part not in (before.get(name), after[name])
        }
        try:
            lever_of(self.what).check(self.where, self.value({**after, **made}))
        except NearmetalError:  # no value that the journal could recognize
            return self
        return (
            self._replace(set_values=(*self.set_values[:-1], self.value(made), self.set_values[-1])[-MOST_VALUES:])
            if made
            else self
        )

    def value(self, parts: Mapping[str, Value]) -> Value:
        """The value that has these elements."""
        return self.lever.composed(parts, self.original)

    def as_attached(self, host: WritableHost) -> "Entry":
        """The entry for the device as it is attached now: an interrupted run has not changed one that came back since.

        Its values are those of its driver, or somebody has set them.
        """
        place = self.place(host)
        now = place.attachment() if self.unread else ""
        if now in ("", self.attachment) or not self.attachment:
            return self
        if self.written:
            return self._replace(whole=True)
        present = place.read()
        values: Tuple[Value, ...] = (self.lever.remembered(present),)
        return self._replace(original=self.lever.original(present), set_values=values, whole=True)

    def exchanged(self, host: WritableHost) -> bool:
        """Whether the place has another device now."""
        return self.place(host).exchanged(self.device)


def data_of(entry: Entry) -> Dict[str, Any]:
    """The entry as the journal's file has it."""
    data = entry._asdict()
    data[_SET_VALUES] = data.pop("set_values")
    del data["until_boot"]  # such entries have a file of their own
    return data


def entry_of(raw: Any) -> Entry:
    """The entry of a journal's data, checked. Raises NearmetalError, KeyError or TypeError for other data."""
    texts = {name: raw[name] for name in ("concern", "knob", "what", "where", "boot_id")}
    if not all(isinstance(text, str) and len(text) <= 256 for text in texts.values()):
        raise NearmetalError("an entry whose names aren't short texts")
    lever = lever_of(texts["what"])
    original, set_values = raw["original"], raw[_SET_VALUES]
    if not isinstance(set_values, list) or not set_values:
        raise NearmetalError("an entry without values that nearmetal set")
    unknown = original is None and lever.scope == "runtime"
    lever.check(texts["where"], set_values[-1] if unknown else original)
    for value in set_values if isinstance(lever, TableValues) else ():
        lever.check(texts["where"], value)
    if lever.original(original) != original:
        raise NearmetalError(f"an original of {texts['where']} that nearmetal never keeps")
    disturbed_by = raw.get("disturbed_by", "")
    if not isinstance(disturbed_by, str):
        raise NearmetalError("an entry whose names aren't short texts")
    if disturbed_by:
        lever_of(disturbed_by)
    # Older versions wrote none of these.
    device, number, machine = (raw.get(name, "") for name in ("device", "attachment", "machine"))
    if not all(isinstance(text, str) and _DEVICE.fullmatch(text) for text in (device, number, machine)):
        raise NearmetalError("a device or machine whose identity isn't a text")
    whole, written = raw.get("whole", True) is True, raw.get("written") is True
    state: Dict[str, Any] = {"whole": whole, "written": written, "disturbed_by": disturbed_by, "machine": machine}
    return Entry(original=original, set_values=tuple(set_values), device=device, attachment=number, **state, **texts)
