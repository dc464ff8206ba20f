# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot loaders whose files hold the arguments of each kernel: lines are edited in place. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from contextlib import suppress
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..._error import NearmetalError
from ..._facts import boot
from ..._facts.boot_judge import judge
from ..._host import store
from ..._host.host import WritableHost
from ..._parse import boot_entry, boot_line, kernel_arguments
from ..._parse.boot_record import Record, flat
from . import swap
from .provider import Provider, UndoFailed

Texts = Dict[str, str]  # file → its content
_BOOT = ("/boot/", "/efi/")  # the folders whose files a boot loader reads


class Place(NamedTuple):
    """Where a file holds arguments; `line` is the text in the span."""

    name: str  # as the record calls it
    path: str
    span: Tuple[int, int]
    line: str


class Edited(Provider):
    """Changes only nearmetal's part of each line: checks all entries before it writes anything, then renames files.

    Files below /boot or /efi, which the boot loader reads, are kept beside the new ones.
    """

    name = ""
    longest = kernel_arguments.LONGEST

    def obstacle(self, host: WritableHost) -> str:
        try:
            list(self.places(host))
        except NearmetalError as error:
            return str(error)
        return ""

    @abstractmethod
    def places(self, host: WritableHost) -> Iterator[Place]:
        """Every place, in the order of its file; without entries for rescue and recovery, which we never change."""

    @abstractmethod
    def named(self, host: WritableHost) -> Iterable[Tuple[str, str]]:
        """Folder and expression for the names of the files that this provider edits."""

    def device(self, host: WritableHost) -> str:
        """What the boot loader puts before a kernel's name on the command line."""
        return ""

    def fit(self, path: str, old: str, new: str) -> str:
        """The new text of a file in the form that the boot loader demands."""
        return new

    def copies(self, host: WritableHost) -> Iterator[str]:
        """Old and temporary files beside the boot loader's, also of entries that were removed with their kernel."""
        for folder, name in self.named(host):
            copies = re.compile(rf"\.?{name}\.nearmetal-(old|new)(\.new)?|\.{name}\.new")
            for file in host.names(folder):
                if copies.fullmatch(file):
                    yield f"{folder}/{file}"

    def variables(self, host: WritableHost, texts: Texts) -> Mapping[str, str]:
        """What lines name by a variable such as $kernelopts, once files have these texts."""
        return {}

    def foreign(self, host: WritableHost, known: Record, arguments: Mapping[str, str]) -> Dict[str, Tuple[str, ...]]:
        variables = self.variables(host, self._texts(host, known._replace(arguments={}))[1])
        lines = {place.name: _foreign(place, known) for place in self.places(host)}
        return {
            text: tuple(name for name, line in lines.items() if _in_force(line, text, variables))
            for text in arguments.values()
        }

    def stays(self, host: WritableHost, text: str, record: Record) -> bool:
        booted = [place.name for place in self.places(host) if place.path.startswith(_BOOT)]
        return all(name in record.foreign.get(text, ()) for name in booted)

    def rehearse(self, host: WritableHost, record: Record) -> None:
        new = self._texts(host, record)[1]
        judge(host, boot.read_entries(host, self.name, new), record.arguments, self.device(host), self.longest)

    def _texts(self, host: WritableHost, record: Record) -> Tuple[Texts, Texts]:
        """The files that change, as they are and as they become; those that others name by variables come first."""
        by_path: Dict[str, List[Place]] = {}
        for place in self.places(host):
            by_path.setdefault(place.path, []).append(place)
        old: Texts = {}
        new: Texts = {}
        for path, places in by_path.items():
            text = changed = text_of(host, path)
            variables = self.variables(host, new)
            for place in reversed(places):  # from the end, so that the spans before it stay right
                changed = changed[: place.span[0]] + _line(place, record, variables) + changed[place.span[1] :]
            if changed != text:
                old[path], new[path] = text, self.fit(path, text, changed)
        return old, new

    def realise(self, host: WritableHost, record: Record) -> None:
        self.rehearse(host, record)
        _write(host, *self._texts(host, record))
        if not record.arguments:
            for path in self.copies(host):
                store.remove_file(host, path)


def text_of(host: WritableHost, path: str) -> str:
    """A file's text, every byte of it kept; empty when there is none."""
    return (store.read_file(host, path) or b"").decode("utf-8", "surrogateescape")


def _line(place: Place, record: Record, variables: Mapping[str, str]) -> str:
    """The line with those arguments of nearmetal that neither itself nor its variables have."""
    foreign = _foreign(place, record)
    arguments = record.arguments.items()
    lacking = {name: argument for name, argument in arguments if not _in_force(foreign, argument, variables)}
    return boot_line.append(foreign, flat(lacking)) if lacking else foreign


def _foreign(place: Place, record: Record) -> str:
    """The arguments of a line that nearmetal didn't add: those from before it, and what others added."""
    nearmetal_texts = {
        name: tuple(text for text in texts if place.name not in record.foreign.get(text, ()))
        for name, texts in record.texts().items()
    }
    return boot_line.foreign(place.line, nearmetal_texts, last=record.before is not None)


def _in_force(line: str, text: str, variables: Mapping[str, str]) -> bool:
    arguments = boot_entry.arguments((line,), variables)
    return kernel_arguments.in_force(arguments, kernel_arguments.checked_tokens(text))


def _write(host: WritableHost, old: Texts, new: Texts) -> None:
    """Write new files first, which needs space, then rename them. Old files of GRUB are kept beside the new ones."""
    grubs = [path for path in new if path.startswith(_BOOT)]
    try:
        for path in grubs:
            _put(host, f"{path}.nearmetal-new", new[path], host.mode(path))
        for path in new:
            if path in grubs:
                swap.publish(host, path, f"{path}.nearmetal-new", keep_old=True)
            else:
                _put(host, path, new[path], host.mode(path))
    except NearmetalError as error:
        for path in grubs:
            with suppress(NearmetalError):  # a later run removes it
                store.remove_file(host, f"{path}.nearmetal-new")
        # A file that can't be read stays: the old file beside it may be of an earlier run.
        for path in [path for path, same in reversed(list(_unchanged(host, old))) if same is False]:
            with suppress(NearmetalError):
                if path in grubs:
                    swap.take_back(host, path)
                else:
                    _put(host, path, old[path], host.mode(path))
        changed = [path for path, same in _unchanged(host, old) if not same]
        if changed:
            raise UndoFailed(f"{error}; and {', '.join(changed)} could not be restored") from None
        raise


def _unchanged(host: WritableHost, old: Texts) -> Iterator[Tuple[str, Optional[bool]]]:
    for path, text in old.items():
        yield path, swap.is_unchanged(host, path, text.encode("utf-8", "surrogateescape"))


def _put(host: WritableHost, path: str, text: str, mode: int) -> None:
    store.replace_file(host, path, text.encode("utf-8", "surrogateescape"), mode, 0o755)


def pattern(path: str) -> Tuple[str, str]:
    """Folder and expression for the name of one file."""
    folder, name = os.path.split(path)
    return folder, re.escape(name)
