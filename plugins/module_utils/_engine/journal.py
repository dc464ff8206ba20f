# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal: the original values, kept on the host until they are restored. PRIVATE to the collection.

It is written before the first change, and only what can be read again is written.
Its content is checked at every use: it names levers and typed values, never paths or commands. An entry whose lever or
place this version doesn't know is a newer one's: it stays as it is, and nothing is done with it.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.levers import LEVERS, lever
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.unit import BAKED
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import json_text
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Value
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION as NEARMETAL

PATH = f"{store.DATA}/journal.json"
# What a host that becomes an image had at run time: for its own way back, and in no image.
ASIDE = "/run/nearmetal/journal.json"
VERSION = 1

_MOST_OURS = 8  # of one place, after runs that were killed
_NEWER = re.compile(r"[a-z][a-z0-9_]{0,31}(\.[a-z][a-z0-9_]{0,31})?", re.ASCII)


class _OtherVersion(NearmetalError):
    """It has a format that only a newer nearmetal knows."""


# What reading something else than a journal of ours may raise.
_DAMAGE = (ValueError, KeyError, TypeError, NearmetalError)


@dataclass(frozen=True)
class Entry:
    """What one place was before nearmetal, and which values since then are ours."""

    concern: str
    knob: str
    what: str
    where: str
    original: Value  # None at runtime: not known, as only a boot brings it back
    ours: Tuple[Value, ...]  # the last one is wanted; more than one only after a run that was killed
    boot_id: str  # a runtime original of another boot is void

    @property
    def key(self) -> Tuple[str, str]:
        """The place: lever and where."""
        return (self.what, self.where)

    def void(self, boot_id: str) -> bool:
        """Whether a reboot has made the original meaningless."""
        return lever(self.what).scope == "runtime" and (self.boot_id != boot_id or self.original is None)

    def holds(self, now: Value) -> bool:
        """Whether the place, which reads `now`, has a value of ours."""
        return any(self._reads(now, value) for value in self.ours)

    def adding(self, intended: Value, now: Value) -> Entry:
        """With one more value of ours. Of runs that were killed the last ones are kept, and what is there `now`."""
        others = [value for value in self.ours if value != intended]
        others.sort(key=lambda value: self._reads(now, value))
        return replace(self, ours=(*others, intended)[-_MOST_OURS:])

    def _reads(self, now: Value, value: Value) -> bool:
        moved = lever(self.what)
        return moved.same(moved.remembered(now), value)


@dataclass(frozen=True)
class _Content:
    """What one file holds."""

    instance: Optional[str] = None  # whose originals these are
    entries: Sequence[Entry] = ()
    newer: Sequence[Dict[str, Any]] = ()  # entries of levers or places that this version doesn't know

    def of(self, scope: str) -> List[Entry]:
        """The entries that hold for a boot, or outlive it."""
        return [entry for entry in self.entries if lever(entry.what).scope == scope]


class Journal:
    """The entries of one host, in the order in which they were made."""

    def __init__(self, host: WritableHost, instance: Optional[str]) -> None:
        self._host = host
        self._instance = instance
        self._entries: Dict[Tuple[str, str], Entry] = {}
        self._newer: Sequence[Dict[str, Any]] = ()
        self._aside = _Content()
        self._at_boot: Set[Tuple[str, str]] = set()
        self._load()

    def entries(self, concern: Optional[str] = None) -> List[Entry]:
        """All entries, or those of one concern."""
        return [entry for entry in self._entries.values() if concern in (None, entry.concern)]

    def concerns(self) -> List[str]:
        """Every concern with an entry, the last one done first; those that only a newer nearmetal knows too."""
        names = [entry.concern for entry in self._entries.values()] + [raw["concern"] for raw in self._newer]
        return list(dict.fromkeys(reversed(names)))

    def beyond_us(self, concern: str) -> str:
        """Why this version can't take the concern back as a whole; empty when it can."""
        theirs = [raw for raw in self._newer if raw["concern"] == concern]
        unknown = sorted({raw["where"] if raw["what"] in LEVERS else raw["what"] for raw in theirs})
        if not unknown:
            return ""
        return (
            f"nearmetal {NEARMETAL} doesn't know {', '.join(unknown)}, which a newer nearmetal set here; {PATH} keeps"
            f" its originals: run `nearmetal restore {concern}` on the host, or restore with the newer one"
        )

    def begin(self, actions: Iterable[Action]) -> None:
        """Remember where each action starts and what it intends, on disk, before anything is changed."""
        boot_id = self._host.boot_id()
        self._at_boot = set_at_boot(self._host, self._entries.values())
        entries = dict(self._entries)
        for action in actions:
            entry = self._started(entries.get((action.what, action.where)), action, boot_id)
            entries[entry.key] = entry.adding(lever(action.what).remembered(action.after), action.before)
        self._save(entries)

    def _started(self, entry: Optional[Entry], action: Action, boot_id: str) -> Entry:
        """The entry of the action's place, with the original that holds in this boot."""
        moved = lever(action.what)
        if entry is not None and not entry.void(boot_id):
            return replace(entry, original=moved.whole(self._host, action.where, entry.original))
        original = moved.original(action.before)
        if entry.holds(action.before) if entry is not None else (action.what, action.where) in self._at_boot:
            # A file of ours set it at boot: this boot's original is what the kernel would choose, if that is known.
            ours = entry.ours if entry is not None else (moved.remembered(action.before),)
            original = moved.kernel_choice(self._host, action.where)
            return Entry(action.concern, action.knob, action.what, action.where, original, ours, boot_id)
        try:
            moved.check(action.where, original)
        except NearmetalError as error:
            raise NearmetalError(f"what is there couldn't be put back ({error}): left as it is") from None
        return Entry(action.concern, action.knob, action.what, action.where, original, (), boot_id)

    def settle(self, actions: Iterable[Action]) -> None:
        """The actions hold: keep only their last value; forget places that are back at their original."""
        boot_id = self._host.boot_id()
        entries = dict(self._entries)
        for action in actions:
            entry = entries.pop((action.what, action.where), None)
            if entry is not None and (entry.void(boot_id) or action.after != entry.original):
                entries[entry.key] = replace(entry, ours=(lever(action.what).remembered(action.after),))
            elif entry is not None:
                entries.update((left.key, left) for left in self._parked(entry, action))
        self._save(entries)

    def _parked(self, entry: Entry, action: Action) -> Iterable[Entry]:
        """What a way back couldn't reach: the part that went with our value."""
        moved = lever(entry.what)
        original = moved.parked(self._host, entry.where, entry.original)
        ours = (moved.parked(self._host, entry.where, value) for value in entry.ours if value != action.after)
        theirs = tuple(value for value in ours if value not in (None, original))
        return (replace(entry, original=original, ours=theirs),) if theirs else ()

    def forget(self, entries: Iterable[Entry]) -> None:
        """These places are no longer ours."""
        gone = {entry.key for entry in entries}
        self._save({key: entry for key, entry in self._entries.items() if key not in gone})

    def reset(self, entries: List[Entry]) -> None:
        """Go back to an earlier state: a failed concern was rolled back."""
        self._save({entry.key: entry for entry in entries})

    def set_aside(self) -> None:
        """The host becomes an image: from now on nothing on its disk tells of what it had at run time, or who it is."""
        if self._aside.entries:
            _write(self._host, ASIDE, self._aside, folder_mode=0o755)
        self._save(self._entries)

    def _save(self, entries: Dict[Tuple[str, str], Entry]) -> None:
        """Put the entries on disk; only what is there counts. NearmetalError when they couldn't be read again."""
        if entries or self._newer:
            content = _Content(self._instance, list(entries.values()), self._newer)
            _write(self._host, PATH, content, folder_mode=0o700)
        else:
            store.remove_file(self._host, PATH)
            store.remove_empty_data(self._host)
        self._entries = entries
        if self._aside.entries and not self._host.image:
            store.remove_file(self._host, ASIDE)  # it is all in one place again
            self._aside = _Content()

    def _load(self) -> None:
        kept = _read(self._host, PATH)
        self._newer = kept.newer
        entries = kept.of("boot")
        if self._host.image:
            self._aside = replace(kept, entries=kept.of("runtime"), newer=())
            entries = [replace(entry, boot_id="") for entry in entries]
        else:
            self._aside = _read(self._host, ASIDE)
            if kept.instance == self._instance:  # else an AMI was made of a tuned host: they are another machine's
                entries = list(kept.entries)
            if self._aside.instance == self._instance:
                entries = [*self._aside.of("runtime"), *entries]
            if self._host.exists(BAKED):  # so its files are younger than this boot
                entries = [replace(entry, boot_id=entry.boot_id or self._host.boot_id()) for entry in entries]
        self._entries = {entry.key: entry for entry in entries}


def set_at_boot(host: WritableHost, entries: Iterable[Entry]) -> Set[Tuple[str, str]]:
    """Lever and place of what still has a value that a file of ours, older than this boot, gave it at boot."""
    boot_id = host.boot_id()
    old = [entry for entry in entries if entry.boot_id != boot_id]
    return {place for entry in old for place in lever(entry.what).at_boot(host, entry.where)}


def _write(host: WritableHost, path: str, content: _Content, folder_mode: int) -> None:
    data = _rendered(content)
    try:
        readable = _rendered(_parsed(path, data)) == data and len(data) <= store.MAX_BYTES
    except _DAMAGE as error:
        raise NearmetalError(f"{path} couldn't be read again ({_reason(error)}): it is left as it is") from None
    if not readable:
        raise NearmetalError(f"{path} would become one that can't be read again: it is left as it is")
    store.replace_file(host, path, data, mode=0o600, folder_mode=folder_mode)


def _read(host: WritableHost, path: str) -> _Content:
    data = store.read_file(host, path)
    if data is None:
        return _Content()
    try:
        return _parsed(path, data)
    except _OtherVersion:
        raise
    except _DAMAGE as error:
        raise NearmetalError(
            f"{path} isn't a journal that nearmetal wrote ({_reason(error)}): nothing was changed;"
            " if a newer one tuned this host, use that one; else look at it, and move it away to start anew,"
            " which gives up the originals it holds"
        ) from None


def _rendered(content: _Content) -> bytes:
    entries = [*map(asdict, content.entries), *content.newer]
    whole = {"version": VERSION, "instance": content.instance, "entries": entries}
    return json.dumps(whole, indent=1, sort_keys=True).encode() + b"\n"


def _parsed(path: str, data: bytes) -> _Content:
    """What it holds; one of _DAMAGE when it isn't a journal of ours."""
    raw = json_text.parse(data.decode("utf-8"))
    version = raw["version"]
    if version != VERSION:
        told = f"{path} has version {version!r}, this nearmetal writes version {VERSION}: use the newer one"
        raise _OtherVersion(told)
    newer = [one for one in raw["entries"] if _is_newer(one)]
    return _Content(raw["instance"], [_entry(one) for one in raw["entries"] if one not in newer], newer)


def _is_newer(raw: Any) -> bool:
    """Whether an entry is one of ours in all but its lever or its place, whose name we don't know."""
    what, concern, where = raw["what"], raw["concern"], raw["where"]
    if not all(isinstance(name, str) for name in (what, concern, where)) or not _NEWER.fullmatch(concern):
        return False
    return lever(what).newer(where) if what in LEVERS else bool(_NEWER.fullmatch(what))


def _reason(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]


def _entry(raw: Any) -> Entry:
    texts = {name: raw[name] for name in ("concern", "knob", "what", "where", "boot_id")}
    if not all(isinstance(text, str) and len(text) <= 256 for text in texts.values()):
        raise NearmetalError("an entry whose names are no short texts")
    moved = lever(texts["what"])
    original, ours = raw["original"], raw["ours"]
    if not isinstance(ours, list) or not ours:
        raise NearmetalError("an entry without values of ours")
    unknown = original is None and moved.scope == "runtime"
    moved.check(texts["where"], ours[-1] if unknown else original)
    if moved.original(original) != original:
        raise NearmetalError(f"an original of {texts['where']} that nearmetal never keeps")
    return Entry(original=original, ours=tuple(ours), **texts)
