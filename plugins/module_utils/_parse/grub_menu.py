# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The menu of GRUB 0.97, which PV-GRUB reads from outside of the guest. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Tuple

from . import cmdline

# Debian's and Ubuntu's update-grub makes the entries of kernels again: out of kopt, and of defoptions without recovery.
OPTIONS = r"^# defoptions=([^\r\n]*)$"

_BLANKS = r"(?:[ \t]*=[ \t]*|[ \t]+)"  # GRUB takes = for a blank after a command
_KERNEL = rf"[ \t]*kernel{_BLANKS}(?:--\S+[ \t]+)*(?P<image>\S+)(?:[ \t]+(?P<arguments>[^\r\n]*))?[\r\n]*"
_INITRD = rf"[ \t]*initrd{_BLANKS}(?P<image>\S+)"
_TITLE = rf"[ \t]*title(?:{_BLANKS}(?P<words>[^\r\n]*))?"
_DEVICE = r"\([^)]*\)"  # (hd0) or (hd0,0) before the name of a file
_REPAIR = r"recovery|rescue|single.user"


class Entry(NamedTuple):
    """One way to boot Linux; `span` is the place of its arguments in the menu."""

    kernel: str
    span: Tuple[int, int]
    arguments: Tuple[str, ...]
    initrds: Tuple[str, ...]
    recovery: bool  # for repairs: it gets no arguments of nearmetal


def entries(text: str) -> Tuple[Entry, ...]:
    """The entries for Linux, in their order. Raises nothing."""
    menu_entries: List[Entry] = []
    start, repairs = 0, False
    current: Optional[int] = None  # where the title's entry is in `found`
    for line in text.splitlines(keepends=True):
        title, kernel, initrd = re.match(_TITLE, line), re.fullmatch(_KERNEL, line, re.DOTALL), re.match(_INITRD, line)
        if title:
            current, repairs = None, re.search(_REPAIR, title["words"] or "", re.IGNORECASE) is not None
        elif kernel and not _plain(kernel["image"]).rsplit("/", 1)[-1].startswith("memtest"):
            first, last = kernel.span("arguments") if kernel["arguments"] is not None else kernel.span("image")[1:] * 2
            arguments = cmdline.tokens(line[first:last])
            current = len(menu_entries)
            recovery = repairs or "single" in arguments
            menu_entries.append(Entry(_plain(kernel["image"]), (start + first, start + last), arguments, (), recovery))
        elif initrd and current is not None:
            entry = menu_entries[current]
            menu_entries[current] = entry._replace(initrds=(*entry.initrds, _plain(initrd["image"])))
        start += len(line)
    return tuple(menu_entries)


def _plain(path: str) -> str:
    """A file's name without the disk that GRUB is to read it from."""
    return re.sub(_DEVICE, "", path, count=1)
