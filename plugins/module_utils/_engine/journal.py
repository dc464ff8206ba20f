# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal: the original values, kept on the host until they are restored. PRIVATE to the collection.

It is written before the first change. Its content is checked again at every
use: it names levers and typed values, never paths or commands. An entry whose lever or
place this version doesn't know is a newer one's: it stays as it is, and nothing is done with it.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Iterable, List, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.levers import LEVERS, lever
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Value
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION as NEARMETAL

PATH = f"{store.DATA}/journal.json"
VERSION = 1

_NEWER = re.compile(r"[a-z][a-z0-9_]{0,31}(\.[a-z][a-z0-9_]{0,31})?", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """What one place was before nearmetal, and which values since then are ours."""

    concern: str
    knob: str
    what: str
    where: str
    original: Value
    ours: Tuple[Value, ...]  # the last one is wanted; more than one only after a run that was killed
    boot_id: str  # a runtime original of another boot is void

    @property
    def key(self) -> Tuple[str, str]:
        """The place: lever and where."""
        return (self.what, self.where)

    def void(self, boot_id: str) -> bool:
        """Whether a reboot has made the original meaningless."""
        return lever(self.what).scope == "runtime" and self.boot_id != boot_id


class Journal:
    """The entries of one host, in the order in which they were made."""

    def __init__(self, host: WritableHost, instance: Optional[str]) -> None:
        self._host = host
        self._instance = instance
        self._entries: Dict[Tuple[str, str], Entry] = {}
        self._newer: List[Dict[str, Any]] = []  # entries of levers that this version doesn't know
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
        entries = dict(self._entries)
        for action in actions:
            moved = lever(action.what)
            entry = entries.get((action.what, action.where))
            if entry is None or entry.void(boot_id):
                original = moved.original(action.before)
                if entry is not None and moved.remembered(action.before) in entry.ours:
                    # A file of ours set it at boot: this boot's original is what the kernel would choose.
                    original = moved.kernel_choice(self._host, action.where)
                entry = Entry(action.concern, action.knob, action.what, action.where, original, (), boot_id)
            intended = moved.remembered(action.after)
            ours = (*tuple(value for value in entry.ours if value != intended), intended)
            entries[entry.key] = replace(entry, ours=ours)
        self._save(entries)

    def settle(self, actions: Iterable[Action]) -> None:
        """The actions hold: keep only their last value; forget places that are back at their original."""
        entries = dict(self._entries)
        for action in actions:
            entry = entries.pop((action.what, action.where), None)
            if entry is not None and action.after != entry.original:
                entries[entry.key] = replace(entry, ours=(lever(action.what).remembered(action.after),))
        self._save(entries)

    def forget(self, entries: Iterable[Entry]) -> None:
        """These places are no longer ours."""
        gone = {entry.key for entry in entries}
        self._save({key: entry for key, entry in self._entries.items() if key not in gone})

    def reset(self, entries: List[Entry]) -> None:
        """Go back to an earlier state: a failed concern was rolled back."""
        self._save({entry.key: entry for entry in entries})

    def _save(self, entries: Dict[Tuple[str, str], Entry]) -> None:
        """Put the entries on disk; only what is there counts."""
        if not entries and not self._newer:
            store.remove_file(self._host, PATH)
            store.remove_empty_data(self._host)
            self._entries = entries
            return
        content = {
            "version": VERSION,
            "instance": self._instance,
            "entries": [*(asdict(entry) for entry in entries.values()), *self._newer],
        }
        data = json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"
        store.replace_file(self._host, PATH, data, mode=0o600, folder_mode=0o700)
        self._entries = entries

    def _load(self) -> None:
        data = store.read_file(self._host, PATH)
        if data is None:
            return
        try:
            content = json.loads(data.decode("utf-8"))
            version = content["version"]
            if version == VERSION:
                newer = [raw for raw in content["entries"] if _is_newer(raw)]
                entries = [_entry(raw) for raw in content["entries"] if raw not in newer]
                instance = content["instance"]
        except (ValueError, KeyError, TypeError, RecursionError, NearmetalError) as error:
            raise NearmetalError(
                f"{PATH} isn't a journal that nearmetal wrote ({_reason(error)}): nothing was changed;"
                " if a newer one tuned this host, use that one; else look at it, and move it away to start anew,"
                " which gives up the originals it holds"
            ) from None
        if version != VERSION:
            raise NearmetalError(
                f"{PATH} has version {version!r}, this nearmetal writes version {VERSION}: use the newer one"
            )
        if instance != self._instance:
            # An AMI was made of a tuned host: the runtime originals are another machine's.
            entries = [entry for entry in entries if lever(entry.what).scope == "boot"]
        self._entries = {entry.key: entry for entry in entries}
        self._newer = newer


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
    moved.check(texts["where"], raw["original"])
    if moved.original(raw["original"]) != raw["original"]:
        raise NearmetalError(f"an original of {texts['where']} that nearmetal never keeps")
    ours = raw["ours"]
    if not isinstance(ours, list) or not ours or len(ours) > 8:
        raise NearmetalError("an entry without values of ours")
    return Entry(original=raw["original"], ours=tuple(ours), **texts)
