# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of the journal: how its entries are read, checked and written. PRIVATE to the collection.

An entry that can't be read stays in the file as it is, and stops its own concern alone.
"""

from __future__ import annotations

import json
import re
from typing import Any, List, NamedTuple, Optional, Sequence

from .._error import Damaged, NearmetalError
from .._host import store
from .._host.host import WritableHost
from .._levers.registry import lever_of
from .._parse import json_text
from .._parse.json_text import DAMAGE, reason
from .._version import VERSION as NEARMETAL
from .._version import numbers
from .._words import shown
from .entry import Entry, data_of, entry_of

VERSION = 1
_CONCERN = r"[a-z][a-z0-9_]{0,31}"


class _Newer(NearmetalError):
    """The journal is one that only a newer nearmetal can read."""


class Unreadable(NamedTuple):
    """An entry in a form that nearmetal never writes."""

    concern: str
    reason: str
    raw: Any  # its data, a mapping, which is kept

    def is_at(self, what: str, where: str) -> bool:
        """Whether the entry names this place."""
        return bool(self.raw.get("what") == what and self.raw.get("where") == where)


class Content(NamedTuple):
    """What one file holds."""

    instance: Optional[str] = None  # the id of the instance whose originals these are
    entries: Sequence[Entry] = ()
    unreadable: Sequence[Unreadable] = ()

    def of(self, scope: str) -> List[Entry]:
        """The entries of this scope: runtime or boot."""
        return [entry for entry in self.entries if lever_of(entry.what).scope == scope]


def write(host: WritableHost, path: str, content: Content, folder_mode: int) -> None:
    data = _rendered(content)
    try:
        parsed = _parsed(path, data)
        for entry in parsed.unreadable:
            if entry not in content.unreadable:
                raise NearmetalError(entry.reason)
        readable = _rendered(parsed) == data and len(data) <= store.MAX_BYTES
    except DAMAGE as error:
        raise NearmetalError(f"{path} couldn't be read again ({reason(error)}): it is left as it was") from None
    if not readable:
        raise NearmetalError(f"{path} couldn't be read again after this change: it is left as it was")
    store.replace_file(host, path, data, mode=0o600, folder_mode=folder_mode)


def read(host: WritableHost, path: str) -> Content:
    """What the file holds. Raises Damaged, or _Newer."""
    try:
        data = store.read_file(host, path)
    except NearmetalError as error:
        raise Damaged(str(error)) from None
    if data is None:
        return Content()
    try:
        return _parsed(path, data)
    except _Newer:
        raise
    except DAMAGE as error:
        raise Damaged(
            f"{path} isn't a journal that nearmetal wrote ({reason(error)}): nothing was changed; look at it, and"
            " move it away to start over, which gives up the originals it holds"
        ) from None


def _rendered(content: Content) -> bytes:
    entries = [data_of(entry) for entry in content.entries] + [entry.raw for entry in content.unreadable]
    whole = {"version": VERSION, "nearmetal": NEARMETAL, "instance": content.instance, "entries": entries}
    return json.dumps(whole, indent=1, sort_keys=True).encode() + b"\n"


def _parsed(path: str, data: bytes) -> Content:
    """The content of a journal's bytes. Raises one of DAMAGE when it isn't a journal of nearmetal, or _Newer."""
    raw = json_text.parse(data.decode("utf-8"))
    version, writer = raw["version"], raw.get("nearmetal")
    if version != VERSION:
        raise _Newer(
            f"{path} has version {shown(version)}, this nearmetal writes version {VERSION}: nothing was changed;"
            " use the newer nearmetal"
        )
    is_newer = (numbers(writer) or ()) > (numbers(NEARMETAL) or ())
    try:
        return _checked(raw["instance"], raw["entries"], is_newer)
    except DAMAGE as error:
        if not is_newer:
            raise
        raise _Newer(
            f"{path} was written by nearmetal {writer}, this is nearmetal {NEARMETAL} ({reason(error)}):"
            f" nothing was changed; use nearmetal {writer} or a newer one"
        ) from None


def _checked(instance: Optional[str], raw_entries: Sequence[Any], is_newer: bool) -> Content:
    """The content, with each entry that can't be read beside the others, unless it isn't known whose it is."""
    entries, unreadable = [], []
    for raw in raw_entries:
        try:
            entries.append(entry_of(raw))
        except DAMAGE as error:
            concern = raw.get("concern") if isinstance(raw, dict) else None
            if is_newer or not (isinstance(concern, str) and re.fullmatch(_CONCERN, concern, re.ASCII)):
                raise
            unreadable.append(Unreadable(concern, reason(error), raw))
    return Content(instance, entries, unreadable)
