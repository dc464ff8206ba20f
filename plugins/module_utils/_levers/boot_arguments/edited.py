# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot loaders whose files hold the arguments of each kernel: lines are edited in place. PRIVATE to the collection."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from ..._error import NearmetalError
from ..._facts import boot, boot_places
from ..._facts.boot_judge import judge
from ..._facts.boot_places import Place
from ..._host import store
from ..._host.host import WritableHost
from ..._parse import boot_entry, boot_line, boot_record, kernel_arguments
from ..._parse.boot_record import Record, flat
from . import swap
from .swap import UndoFailed

Texts = Dict[str, str]  # file → its content
_BOOT = ("/boot/", "/efi/")  # the folders whose files a boot loader reads


class Edited:
    """Changes only nearmetal's part of each line: checks all entries before it writes anything, then renames files.

    Files below /boot or /efi, which the boot loader reads, are kept beside the new ones. On hosts with entries of the
    Boot Loader Specification it writes the lines that grubby would write, but doesn't run grubby: it keeps one value
    per argument, removes an argument from every entry, whoever set it, makes /etc/kernel/cmdline out of any entry, and
    syncs nothing. grub.cfg, which is a stub on EFI partitions, is never written.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def obstacle(self, host: WritableHost) -> str:
        for path in boot_places.folders(host, self.name):
            if not host.writable(path):
                return f"{path} is read-only, so kernel arguments can't be set"
        try:
            self._places(host)
            # What somebody wrote around nearmetal's arguments must not keep them from being taken back.
            recorded = host.exists(boot_record.PATH)
            return "" if recorded else boot_places.obstacle(self.name, partial(_text, host))
        except NearmetalError as error:
            return str(error)

    def _places(self, host: WritableHost) -> List[Place]:
        return list(boot_places.places(host, self.name, partial(_text, host)))

    def copies(self, host: WritableHost) -> Iterator[str]:
        """Old and temporary files beside the boot loader's, also of entries that were removed with their kernel."""
        for folder, name in boot_places.names(host, self.name):
            copies = re.compile(rf"\.?{name}\.nearmetal-(old|new)(\.new)?|\.{name}\.new")
            for file in host.names(folder):
                if copies.fullmatch(file):
                    yield f"{folder}/{file}"

    def foreign(self, host: WritableHost, known: Record, arguments: Mapping[str, str]) -> Dict[str, Tuple[str, ...]]:
        """Text of each argument → the places where somebody else has it."""
        variables = boot_places.variables(host, self.name, self._texts(host, known._replace(arguments={}))[1])
        lines = {place.name: _foreign(place, known) for place in self._places(host)}
        return {
            text: tuple(name for name, line in lines.items() if _in_force(line, text, variables))
            for text in arguments.values()
        }

    def stays(self, host: WritableHost, text: str, record: Record) -> bool:
        """Whether every kernel keeps this text when nearmetal removes its own, because somebody else has set it."""
        booted = [place.name for place in self._places(host) if place.path.startswith(_BOOT)]
        return all(name in record.foreign.get(text, ()) for name in booted)

    def rehearse(self, host: WritableHost, record: Record) -> None:
        """Judge what `realise` would make, and change nothing. Raises NearmetalError as it would."""
        new = self._texts(host, record)[1]
        judge(host, self.name, boot.read_entries(host, self.name, new), record.arguments)

    def _texts(self, host: WritableHost, record: Record) -> Tuple[Texts, Texts]:
        """The files that change, as they are and as they become; those that others name by variables come first."""
        by_path: Dict[str, List[Place]] = {}
        for place in self._places(host):
            by_path.setdefault(place.path, []).append(place)
        old: Texts = {}
        new: Texts = {}
        for path, places in by_path.items():
            text = changed = _text(host, path)
            variables = boot_places.variables(host, self.name, new)
            for place in reversed(places):  # from the end, so that the spans before it stay right
                changed = changed[: place.span[0]] + _line(place, record, variables) + changed[place.span[1] :]
            if changed != text:
                old[path], new[path] = text, _fit(path, text, changed)
        return old, new

    def realise(self, host: WritableHost, record: Record) -> None:
        """Make `record.arguments` nearmetal's only arguments on every kernel's command line.

        Raises NearmetalError with the files as they were, or UndoFailed.
        """
        self.rehearse(host, record)
        _write(host, *self._texts(host, record))
        if not record.arguments:
            for path in self.copies(host):
                store.remove_file(host, path)


def _text(host: WritableHost, path: str) -> str:
    return swap.text_of(host, path) or ""


def _fit(path: str, old: str, new: str) -> str:
    """The new text; of GRUB's environment block at the old one's size, which never changes: # fills it up."""
    if not path.endswith("/grubenv"):
        return new
    bare = new.rstrip("#")
    if len(bare.encode("utf-8", "surrogateescape")) > len(old.encode("utf-8", "surrogateescape")):
        raise NearmetalError(
            f"{path} has no room left for nearmetal's arguments: remove some of your own from kernelopts"
        )
    return bare + "#" * (len(old) - len(bare))


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
            swap.put(host, f"{path}.nearmetal-new", new[path], host.mode(path))
        for path in new:
            if path in grubs:
                swap.publish(host, path, f"{path}.nearmetal-new", keep_old=True)
            else:
                swap.put(host, path, new[path], host.mode(path))
    except NearmetalError as error:
        for path in grubs:
            with suppress(NearmetalError):  # a later run removes it
                store.remove_file(host, f"{path}.nearmetal-new")
        # A file that can't be read stays: the old file beside it may be of an earlier run.
        for path in [path for path, same in reversed(list(_unchanged(host, old))) if same is False]:
            with suppress(NearmetalError):
                if path in grubs:
                    swap.rename_back(host, path, f"{path}.nearmetal-old")
                else:
                    swap.put(host, path, old[path], host.mode(path))
        changed = [path for path, same in _unchanged(host, old) if not same]
        if changed:
            raise UndoFailed(f"{error}; and {', '.join(changed)} could not be restored") from None
        raise


def _unchanged(host: WritableHost, old: Texts) -> Iterator[Tuple[str, Optional[bool]]]:
    for path, text in old.items():
        yield path, swap.is_unchanged(host, path, text)
