# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface to a kind of boot loader, and the checks of its new entries. PRIVATE to the collection."""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from typing import Dict, Iterable, List, Mapping, Sequence, Tuple

from ..._error import NearmetalError
from ..._facts.boot import BootEntry
from ..._host.host import WritableHost
from ..._parse import cmdline, kernel_arguments
from ..._parse.boot_record import Record

_BY = {"UUID": "by-uuid", "PARTUUID": "by-partuuid", "LABEL": "by-label", "PARTLABEL": "by-partlabel"}


class UndoFailed(NearmetalError):
    """The change failed, and so did undoing it: files of the boot loader may hold the new arguments."""


class Provider(ABC):
    """Writes arguments to the files of one kind of boot loader."""

    @abstractmethod
    def obstacle(self, host: WritableHost) -> str:
        """Why no arguments can be written, known before anything is changed; empty when they can."""

    @abstractmethod
    def realise(self, host: WritableHost, record: Record) -> None:
        """Make `record.arguments` nearmetal's only arguments on every kernel's command line.

        Raises NearmetalError with the files as they were, or UndoFailed.
        """

    @abstractmethod
    def copies(self, host: WritableHost) -> Iterable[str]:
        """Files of nearmetal beside those of the boot loader, to remove with the last of nearmetal's arguments."""

    def commands(self, host: WritableHost, before: str, after: str) -> List[str]:
        """Shell commands that put one argument's text in place of what nearmetal added; empty where it did and ends."""
        return []

    def foreign(self, host: WritableHost, known: Record, arguments: Mapping[str, str]) -> Dict[str, Tuple[str, ...]]:
        """Text of each argument → the files where somebody else has it; empty where nearmetal has a file of its own."""
        return {}

    def stays(self, host: WritableHost, text: str, record: Record) -> bool:
        """Whether every kernel keeps this text when nearmetal removes its own, because somebody else has set it."""
        return False


def judge(
    host: WritableHost,
    entries: Sequence[BootEntry],
    arguments: Mapping[str, str],
    device: str = "",
    longest: int = kernel_arguments.LONGEST,
    config: str = "",
) -> None:
    """Demand that each entry can boot and has nearmetal's arguments; `device` is what GRUB puts before a kernel's name.

    `config` is the text of the file that has the entries, for the cause of a refusal.
    Raises NearmetalError that names the entry.
    """
    if not entries:
        raise NearmetalError("the boot loader's new configuration has no entry for Linux: the old one stays")
    for entry in entries:
        for path in (entry.kernel, *entry.initrds):
            if not _boot_file(host, path):
                raise NearmetalError(
                    f"the boot entry of {entry.name} names {path}, which doesn't exist: the boot configuration stays"
                    " as it was"
                )
        _require_root(host, entry)
        excess = kernel_arguments.too_long(device + entry.kernel, entry.arguments, longest)
        if excess:
            raise NearmetalError(
                f"the command line of {entry.name} would be {excess} bytes too long, and the kernel would truncate it"
                " silently: remove arguments of your own first"
            )
        for text in arguments.values():
            tokens = kernel_arguments.checked_tokens(text)
            if not kernel_arguments.in_force(entry.arguments, tokens):
                raise NearmetalError(f"the boot entry of {entry.name} {_cause(entry, text, tokens, config)}")


def _cause(entry: BootEntry, text: str, tokens: Tuple[str, ...], config: str) -> str:
    """Why an argument isn't in force in an entry, and what to do."""
    after = entry.arguments[entry.arguments.index("--") :] if "--" in entry.arguments else ()
    if set(tokens) <= set(after):
        return (
            f"has {text} after a --, and the kernel passes what follows a -- to init: remove the -- and what follows"
            " it from the files in which the boot loader's arguments are set, such as /etc/default/grub"
        )
    words = [line.split() for line in config.splitlines()]
    if any(set(tokens) <= set(line) and not line[0].startswith(("linux", "module")) for line in words):
        return (
            f"has {text} on a line of its own, which GRUB takes for a command: one of the variables"
            " GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT goes over several lines; write it on one line"
        )
    present = " ".join(kernel_arguments.same_names(entry.arguments, tokens)) or "nothing"
    return (
        f"has {present} instead of {text}: another file of the boot loader overrides it; look for a file that sorts"
        " after nearmetal's"
    )


def _boot_file(host: WritableHost, path: str) -> bool:
    """Paths are as the boot loader sees them: from the root of the file system with its files, or of a subvolume."""
    places = (path, f"/boot{path}", f"/boot/{posixpath.basename(path)}", f"/efi{path}", f"/boot/efi{path}")
    return any(host.exists(place) for place in places)


def _require_root(host: WritableHost, entry: BootEntry) -> None:
    roots = cmdline.values(entry.arguments, "root")
    if not roots or not roots[-1]:
        raise NearmetalError(
            f"the boot entry of {entry.name} names no root file system: the boot configuration stays as it was"
        )
    kind, equals, name = roots[-1].partition("=")
    folder = f"/dev/disk/{_BY.get(kind, '')}"
    disks = host.names(folder) if equals and kind in _BY else []
    if disks and _as_udev_writes(name).lower() not in (disk.lower() for disk in disks):
        raise NearmetalError(
            f"the boot entry of {entry.name} has root={roots[-1]}, which no disk has: the boot configuration stays as"
            " it was"
        )


def _as_udev_writes(name: str) -> str:
    """A name as in /dev/disk, where udev escapes what a file name or a shell could trip over: / is \\x2f."""
    plain = "#+-.:=@_"
    return "".join(
        letter if letter.isalnum() or letter in plain or ord(letter) > 127 else f"\\x{ord(letter):02x}"
        for letter in name
    )
