# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A generated grub.cfg, and the boot entries in it. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Tuple

from . import cmdline

# grub-mkconfig names the script that made each part; nearmetal's arguments are in that for Linux, not in 40_custom.
_BEGIN = re.compile(r"### BEGIN /etc/grub\.d/(\S+) ###")
_END = re.compile(r"### END /etc/grub\.d/\S+ ###")
_LINUX = re.compile(r"linux(16|efi)?")
_INITRD = re.compile(r"initrd(16|efi)?")
_ID = re.compile(r"""\$menuentry_id_option\s+['"]([^'"]*)['"]""")


class Entry(NamedTuple):
    """One way to boot Linux."""

    kernel: str
    arguments: Tuple[str, ...]
    initrds: Tuple[str, ...]
    recovery: bool  # for repairs: it gets no arguments of nearmetal


def entries(text: str) -> Tuple[Entry, ...]:
    """The entries that the script for Linux made, in their order. Raises nothing."""
    menu_entries: List[Tuple[str, Tuple[str, ...], List[str], bool]] = []
    inside = recovery = False
    for line in text.splitlines():
        words = line.strip()
        begin = _BEGIN.fullmatch(words)
        if begin or _END.fullmatch(words):
            inside = begin is not None and begin.group(1).startswith("10_linux")
        if not inside:
            continue
        command, rest = [*words.split(None, 1), "", ""][:2]
        if command == "menuentry":
            recovery = _recovery(words)
        elif _LINUX.fullmatch(command):
            kernel, *arguments = cmdline.tokens(rest) or ("",)
            menu_entries.append((kernel, tuple(arguments), [], recovery))
        elif _INITRD.fullmatch(command) and menu_entries:
            menu_entries[-1][2].extend(cmdline.tokens(rest))
    return tuple(
        Entry(kernel, arguments, tuple(initrds), recovery) for kernel, arguments, initrds, recovery in menu_entries
    )


def release(kernel: str) -> str:
    """The release in a kernel's file name: /boot/vmlinuz-6.1.0-28-amd64 is 6.1.0-28-amd64."""
    name = kernel.rsplit("/", 1)[-1]
    _prefix, dash, rest = name.partition("-")
    return rest if dash else name


def is_stub(text: str) -> bool:
    """Whether this grub.cfg only loads another one, as those on EFI partitions do, and must not be overwritten."""
    return "configfile" in text and "menuentry" not in text and "blscfg" not in text


def _recovery(words: str) -> bool:
    """Titles are translated, so the id decides where there is one."""
    named: Optional["re.Match[str]"] = _ID.search(words)
    return "recovery" in (named.group(1) if named else words)
