# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal: the original values, kept on the host until they are restored. PRIVATE to the collection.

It is written before the first change, and only what can be read again is written.
Its content is checked at every use: it names levers and typed values, never paths or commands.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from .._error import Damaged, NearmetalError
from .._facts import machine
from .._facts.state_files import BAKED
from .._host import store
from .._host.host import WritableHost
from .._levers.base import Key
from .._levers.registry import lever_of, place_of
from .._plan import Action, Value
from . import elements, lost, set_by_files
from .entry import MOST_VALUES, Entry
from .journal_file import Content, Unreadable, read, write

PATH = f"{store.DATA}/journal.json"
# The runtime entries of a host that an image is made of: for its own restore, and in no image.
ASIDE = "/run/nearmetal/journal.json"
# Entries that were taken back, and whose values stay until the next boot.
UNTIL_BOOT = "/run/nearmetal/until_boot.json"


class Journal:
    """The entries of one host, in the order in which they were made.

    When its file is damaged, `damage` says so: then it has no entries, and nothing can be written.
    """

    def __init__(self, host: WritableHost, instance: Optional[str]) -> None:
        self._host = host
        self._instance = instance
        self._entries: Dict[Key, Entry] = {}
        self._exchanged: List[Entry] = []
        self._unreadable: Sequence[Unreadable] = ()
        self._aside = Content()
        self._until_boot: List[Entry] = []  # as the file has them
        self._by_files: Set[Key] = set()
        self._earlier: Dict[Key, Entry] = {}  # the entries before `begin`
        self.damage = ""
        try:
            self._load()
            self._load_until_boot()
        except Damaged as error:
            self.damage = str(error)

    def entries(self, concern: Optional[str] = None) -> List[Entry]:
        """All entries, or those of one concern."""
        return [entry for entry in self._entries.values() if concern in (None, entry.concern)]

    def exchanged(self, concern: str) -> Tuple[Entry, ...]:
        """The entries of a concern at whose places are other devices now: nothing is to be taken back there.

        They are kept until they are forgotten, because the device may come back.
        """
        return tuple(entry for entry in self._exchanged if entry.concern == concern)

    def require_readable(self, concern: str) -> None:
        """Raise Damaged when an entry of the concern can't be read: without it nobody would know that original."""
        for entry in self._unreadable:
            if entry.concern == concern:
                raise Damaged(_unreadable(entry))

    def concerns(self) -> List[str]:
        """Every concern with an entry, in the order of their restore: the last one changed first.

        But what brings CPUs back comes before everything else, and what takes them away after it, so that all that
        other concerns have changed on these CPUs is there to be restored.
        """
        entries = reversed([*self._unreadable, *self._exchanged, *self._entries.values()])
        names = dict.fromkeys(entry.concern for entry in entries)
        return sorted(names, key=lambda name: sum(map(_hides, self.entries(name))))

    def begin(
        self, actions: Sequence[Action], neighbors: Sequence[Action] = (), already_set: Sequence[Action] = ()
    ) -> None:
        """Write the original and the intended value of each action to disk, before anything is changed.

        The same is done for `neighbors`, which are other places that the actions may change, and for places that are
        `already_set` to what a file of these actions sets, unless an earlier file has set them.
        """
        for place in (*actions, *neighbors):
            for damaged in self._unreadable:
                if damaged.is_at(*place.key):
                    raise Damaged(_unreadable(damaged))
        boot_id = self._host.boot_id()
        self._by_files = set_by_files.places(self._host, self._entries.values())
        self._earlier = self._entries
        entries = dict(self._entries)
        for place in neighbors:
            before = entries.get(place.key)
            entry = self._started(before, place, boot_id)
            set_values = entry.set_values or (entry.lever.remembered(place.before),)
            written = before is not None and self._was_written(before, place)
            entries[entry.key] = entry._replace(
                set_values=set_values,
                whole=False,
                disturbed_by=place.reason,
                attachment=place_of(self._host, place.key).attachment(),
                written=written,
            )
        for action in actions:
            entry = self._started(entries.get(action.key), action, boot_id)
            original = elements.with_new_elements(entry.place(self._host), entry.original, action.after)
            entry = entry._replace(concern=action.concern, knob=action.knob, original=original)
            entries[entry.key] = entry.adding(self._host, action)._replace(disturbed_by="", written=False)
        for place in already_set:
            if place.key not in {*entries, *self._by_files}:
                entry = self._started(None, place, boot_id)
                set_values = (entry.lever.remembered(place.before),)
                entries[entry.key] = entry._replace(set_values=set_values)
        self._save(entries)

    def untaken(self, actions: Sequence[Action]) -> List[str]:
        """Why nothing could take these actions back, which is known before anything is changed."""
        try:
            boot_id = self._host.boot_id() if actions else ""
            self._by_files = set_by_files.places(self._host, self._entries.values()) if actions else set()
            for action in actions:
                self._started(self._entries.get(action.key), action, boot_id)
        except NearmetalError as error:
            return [str(error)]
        return []

    def _started(self, entry: Optional[Entry], action: Action, boot_id: str) -> Entry:
        """The entry of the action's place, with the original that holds in this boot."""
        place = place_of(self._host, action.key)
        if entry is not None and not entry.void(boot_id):
            return entry._replace(device=entry.device or place.identity(), original=place.completed(entry.original))
        fresh = Entry(
            action.concern,
            action.knob,
            action.what,
            action.where,
            place.original(action.before),
            (),
            boot_id,
            device=place.identity(),
            machine=machine.observe(self._host) if place.scope == "runtime" else "",
        )
        set_values: Tuple[Value, ...] = ()
        held: Mapping[str, Value] = {}
        if entry is not None:
            # A killed restore has set originals, too: at them, a place has no value of nearmetal.
            held = elements.changed(place, entry.original, entry.holding(action.before))
            set_values = entry.set_values
        if action.key in self._by_files:
            held = place.elements(action.before)
        if held:
            # A file of nearmetal set them: their originals are what the boot would have set without it.
            set_values = set_values or (place.remembered(action.before),)
            choice = set_by_files.boot_value(place, entry)
            original = elements.with_kernel_choice(place, action.before, held, choice)
            writer = fresh if entry is None else entry
            return fresh._replace(concern=writer.concern, knob=writer.knob, original=original, set_values=set_values)
        try:
            place.check(action.where, fresh.original)
        except NearmetalError as error:
            raise NearmetalError(
                f"the present value is left as it is, because nearmetal couldn't restore it later ({error})"
            ) from None
        return fresh

    def settle(self, actions: Iterable[Action], neighbors: Iterable[Action] = ()) -> None:
        """Record that the actions hold, and forget places that have no value of nearmetal.

        An original that a file of nearmetal sets is kept: after the next boot nothing else tells that it was one.
        """
        entries = dict(self._entries)
        settled: List[Entry] = []
        for action in sorted(actions, key=lambda action: not lever_of(action.what).disturbing):
            entry = entries.pop(action.key, None)
            if entry is None:
                continue
            # This run has verified its writes: only those of an earlier run may have ended halfway.
            before_run = self._earlier.get(entry.key)
            whole = before_run is None or before_run.whole
            judged = entry._replace(whole=whole).judged(self._host)
            place, set_now = entry.place(self._host), entry.setting(action)
            held = elements.remaining(place, judged, set_now, entry.original, action.after)
            if before_run is not None and before_run.unread:  # what it changed beside its own
                names = elements.originals(place, entry.original, ())
                changed = elements.changed(place, entry.original, place.elements(action.before))
                held = {**self._hidden(entry, names, changed), **held}
            kept = self._settled(entry, held, action.before, entries)
            settled += () if kept else (entry,)
            entries.update(kept)
        named = set_by_files.named(self._host, entries.values()) if settled else ()
        for entry in settled:
            if entry.key in named:
                value = entry.lever.remembered(entry.original)
                entries[entry.key] = entry._replace(set_values=(value,), whole=True)
        for neighbor in neighbors:
            entry = entries.pop(neighbor.key, None)
            if entry is not None:
                entries.update(self._settled(*self._disturbed(entry, neighbor), neighbor.before, entries))
        self._save(entries)

    def verify(self, concern: str) -> None:
        """Record of a concern that nothing remains to be done at the places where an earlier run was interrupted."""
        entries = {
            entry.key: entry.verified(self._host) if entry.concern == concern else entry for entry in self.entries()
        }
        if entries != self._entries:
            self._save(entries)

    def _disturbed(self, entry: Entry, place: Action) -> Tuple[Entry, Mapping[str, Value]]:
        """The entry of a neighbor, and its elements that don't have their original value."""
        at = entry.place(self._host)
        judged = entry._replace(disturbed_by="").judged(self._host)
        present, before_run = at.present_elements(), at.elements(place.before)
        changed = {name: at.remembered(part) for name, part in present.items() if before_run.get(name, part) != part}
        changed = elements.changed(at, entry.original, changed)
        changed = {**self._hidden(entry, before_run, changed), **changed}
        return entry._replace(disturbed_by=entry.follows, written=False), {
            **judged.held,
            **judged.absent,
            **changed,
        }

    def _hidden(self, entry: Entry, names: Iterable[str], changed: Mapping[str, Value]) -> Dict[str, Value]:
        """Those of the elements that offline CPUs hide: most likely they changed as the others did."""
        hidden = elements.hidden_by_offline_cpus(entry.place(self._host), names)
        return dict.fromkeys(hidden, next(iter(changed.values()))) if changed else {}

    def _was_written(self, entry: Entry, place: Action) -> bool:
        """Whether a run wrote the place, and its value is in force; after a boot only if a file of nearmetal set it."""
        void = entry.void(self._host.boot_id())
        return not entry.follows and (not void or entry.key in self._by_files or bool(entry.holding(place.before)))

    def _settled(
        self, entry: Entry, held: Mapping[str, Value], before: Value, entries: Mapping[Key, Entry]
    ) -> Dict[Key, Entry]:
        """The entry with these elements, and with those that the restore of another place creates again."""
        place = entry.place(self._host)
        creators = [creator.what for creator in entries.values() if entry.key in creator.place(self._host).disturbs()]
        removed = elements.RemovedElements({}, {})
        if creators:
            removed = elements.removed_elements(place, entry.original, entry.last(before), before)
        if not held and not removed.originals:
            return {}
        if removed.originals:
            original = place.composed({**place.elements(entry.original), **removed.originals}, entry.original)
            entry = entry._replace(original=original, disturbed_by=entry.disturbed_by if held else creators[0])
        return {entry.key: entry._replace(set_values=(entry.value({**held, **removed.last}),), whole=True)}

    def forget(self, entries: Iterable[Entry]) -> None:
        """Remove these entries, whose places have no value of nearmetal any more, or keep one `until_boot` till then.

        An entry that has changed since it was read stays: a write of this run changed its place, too.
        """
        dropped = list(entries)
        unchanged = [entry for entry in dropped if not self._changed(entry)]
        forgotten = {entry.key for entry in unchanged if entry not in self._exchanged}
        kept = {entry.key: entry for entry in unchanged if entry.until_boot}
        self._exchanged = [entry for entry in self._exchanged if entry not in dropped]
        self._save({**{key: entry for key, entry in self._entries.items() if key not in forgotten}, **kept})

    def _changed(self, entry: Entry) -> bool:
        """Whether the entry of this place isn't the same any more."""
        present = self._entries.get(entry.key, entry)
        return present._replace(until_boot=entry.until_boot) != entry

    def reset(self, entries: List[Entry]) -> None:
        """Go back to an earlier state: a failed concern was rolled back."""
        self._save({entry.key: entry for entry in entries})

    def keep(self, entries: Iterable[Entry], done: Iterable[Action] = ()) -> None:
        """Keep the entries from before a run whose rollback failed: their places may hold nearmetal's values again.

        What the kernel made of a value, such as a rounded one, counts as set where `done` couldn't be undone.
        """
        kept = dict(self._entries)
        for entry in entries:
            present = kept.get(entry.key, entry)
            added = (value for value in present.set_values if value not in entry.set_values)
            kept[entry.key] = present._replace(set_values=(*entry.set_values, *added)[-MOST_VALUES:], whole=False)
        for action in done:
            if action.key in kept:
                entry = kept[action.what, action.where]
                kept[entry.key] = entry.with_made(self._host, action)
        self._save(kept)

    def _save(self, entries: Dict[Key, Entry]) -> None:
        """Write the entries to disk. Raises NearmetalError, with nothing changed, when they couldn't be read again.

        With the last entry of a place go the temporary files that a killed run left there, and the place's folder.
        """
        if self.damage:
            raise Damaged(self.damage)
        for key in self._entries.keys() - entries.keys():
            place = place_of(self._host, key)
            for path in place.temporary():
                if self._host.exists(path):
                    store.remove_file(self._host, path)
            folder = place.folder()
            if folder and self._host.exists(folder):
                store.remove_empty(self._host, folder)
        waiting = [entry for entry in entries.values() if entry.until_boot]
        # First with what is added, and last without what has gone: a killed run leaves an entry in both files.
        self._write_until_boot([*self._until_boot, *(entry for entry in waiting if entry not in self._until_boot)])
        kept = [entry for entry in self._exchanged if entry.key not in entries]
        kept += [entry for entry in entries.values() if not entry.until_boot]
        if kept or self._unreadable:
            write(self._host, PATH, Content(self._instance, kept, self._unreadable), folder_mode=0o700)
        else:
            store.remove_file(self._host, PATH)
            store.remove_empty(self._host, store.DATA)
        self._entries = entries
        self._reunited()
        self._write_until_boot(waiting)

    def _write_until_boot(self, entries: List[Entry]) -> None:
        if entries and entries != self._until_boot:
            write(self._host, UNTIL_BOOT, Content(self._host.boot_id(), entries), folder_mode=0o755)
        elif self._until_boot and not entries:
            store.remove_file(self._host, UNTIL_BOOT)
        self._until_boot = entries

    def _load_until_boot(self) -> None:
        """Add the entries that wait for the next boot, unless a run has written their places since."""
        content = read(self._host, UNTIL_BOOT)
        if content.entries and content.instance == self._host.boot_id():
            self._until_boot = [entry._replace(until_boot=True) for entry in content.entries]
            self._entries = {**{entry.key: entry for entry in self._until_boot}, **self._entries}

    def _reunited(self) -> None:
        """End the separation of runtime entries: one file has all entries again."""
        if self._aside.entries:
            store.remove_file(self._host, ASIDE)
            self._aside = Content()

    def _load(self) -> None:
        kept, self._aside = read(self._host, PATH), read(self._host, ASIDE)
        for entry in self._aside.unreadable:
            raise Damaged(_unreadable(entry, ASIDE))
        self._unreadable = kept.unreadable
        if not kept.entries and not self._aside.entries:
            if not self._host.exists(PATH):
                self._entries = {entry.key: entry for entry in lost.entries(self._host)}
            return
        boot_id = self._host.boot_id()
        # Entries of another instance are those of the host that this host's image was made of.
        own = self._is_own(kept, boot_id)
        entries = list(kept.entries) if own else kept.of("boot")
        self._instance = self._instance or (kept.instance if own else None)
        if self._is_own(self._aside, boot_id):
            self._instance = self._instance or self._aside.instance
            entries = [*self._aside.of("runtime"), *entries]
        if self._host.exists(BAKED):  # so its files are younger than this boot
            entries = [entry._replace(boot_id=entry.boot_id or boot_id) for entry in entries]
        self._exchanged = [entry for entry in entries if entry.boot_id == boot_id and entry.exchanged(self._host)]
        own_devices = [entry for entry in entries if entry not in self._exchanged]
        self._entries = {entry.key: entry.as_attached(self._host) for entry in own_devices}

    def _is_own(self, content: Content, boot_id: str) -> bool:
        """Whether the originals are those of this instance; without its id the boot id decides."""
        if content.instance == self._instance or None not in (content.instance, self._instance):
            return content.instance == self._instance
        return any(entry.boot_id == boot_id for entry in content.of("runtime"))


def _unreadable(entry: Unreadable, path: str = PATH) -> str:
    return (
        f"{path}: an original of {entry.concern} isn't what nearmetal wrote ({entry.reason}): nothing of"
        f" {entry.concern} was changed; look at it, and remove that entry, which gives its original up"
    )


def _hides(entry: Entry) -> int:
    """Whether the restore of a place hides elements of other tables (1) or brings them back (-1)."""
    lever = lever_of(entry.what)
    if entry.original is None:
        return 0
    before, after = {name for value in entry.set_values for name in lever.hidden(value)}, lever.hidden(entry.original)
    return bool(after - before) - bool(before - after)
