# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where files of a boot loader hold the arguments of each kernel. PRIVATE to the collection."""

from __future__ import annotations

import posixpath
import re
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from .._parse import boot_line, grub_menu, shell_defaults
from . import boot
from .boot_shell import DEFAULTS
from .host import Host

_VARIABLE = "GRUB_CMDLINE_LINUX"  # of /etc/default/grub, for kernels whose entries grub2-mkconfig writes


class Place(NamedTuple):
    """Where a file holds arguments; `line` is the text in the span."""

    name: str  # as the record of nearmetal calls it
    path: str
    span: Tuple[int, int]
    line: str


def places(host: Host, provider: str, read: Callable[[str], str]) -> Iterator[Place]:
    """Every place, in the order of its file; `read` returns a file's text.

    Without entries for rescue and recovery, which nearmetal never changes. Without /etc/kernel/cmdline, kernel-install
    gives a new kernel the running kernel's arguments, so it is never created: one with nearmetal's alone would lack
    root=.
    """
    if provider == "menu":
        yield from _menu_places(boot.config_path(host, provider), read)
        return
    folder = _entries(host, provider)
    found = [(f"{folder}/{name}", boot_line.ENTRY) for name in boot.entry_names(host, folder)]
    found.append((boot.KERNEL_CMDLINE, boot_line.KERNEL_CMDLINE))
    if provider == "bls":
        found.insert(0, (boot.environment_path(host), boot_line.ENVIRONMENT))
    # GRUB takes the first line of options of an entry, and systemd-boot all of them.
    spans = [
        (path, boot_line.span(form, read(path), provider == "bls" and form == boot_line.ENTRY)) for path, form in found
    ]
    if provider == "bls":
        spans.append((DEFAULTS, shell_defaults.find(read(DEFAULTS), _VARIABLE).span))
    for path, span in spans:
        if span is not None:
            yield Place(path, path, span, read(path)[slice(*span)])


def _menu_places(path: str, read: Callable[[str], str]) -> Iterator[Place]:
    """The kernel lines of a menu, and the options from which Debian's and Ubuntu's update-grub makes the next entries.

    The kernels of other distributions get the arguments of the default entry when they are installed (grubby).
    """
    text = read(path)
    counts: Dict[str, int] = {}
    options = boot_line.span(grub_menu.OPTIONS, text)
    spans = [("defoptions", options)] if options is not None else []
    spans += [(entry.kernel, entry.span) for entry in grub_menu.entries(text) if not entry.recovery]
    for name, span in sorted(spans, key=lambda named_span: named_span[1]):
        counts[name] = counts.get(name, 0) + 1
        yield Place(f"{path} {name} {counts[name]}", path, span, text[slice(*span)])


def _entries(host: Host, provider: str) -> str:
    """The folder with a file for each kernel."""
    return boot.entries_folder(host) if provider == "systemd_boot" else boot.ENTRIES


def obstacle(provider: str, read: Callable[[str], str]) -> str:
    """Why a file that holds arguments can't be edited; empty when all of them can."""
    blocked = shell_defaults.find(read(DEFAULTS), _VARIABLE).obstacle if provider == "bls" else ""
    if not blocked:
        return ""
    return (
        f"{DEFAULTS}, {blocked}, which nearmetal doesn't edit:"
        f' write {_VARIABLE}="…" on a line of its own, as the last line that names it, and run again'
    )


def folders(host: Host, provider: str) -> Tuple[str, ...]:
    """The folders that must take new files."""
    if provider == "menu":
        return (posixpath.dirname(boot.config_path(host, provider)),)
    return (_entries(host, provider), "/etc")


def names(host: Host, provider: str) -> List[Tuple[str, str]]:
    """Folder, and expression for the names of the files that may hold arguments."""
    if provider == "menu":
        return [_named(boot.config_path(host, provider))]
    paths = (boot.environment_path(host), DEFAULTS) if provider == "bls" else ()
    return [(_entries(host, provider), r".*\.conf"), *map(_named, (boot.KERNEL_CMDLINE, *paths))]


def _named(path: str) -> Tuple[str, str]:
    folder, name = posixpath.split(path)
    return folder, re.escape(name)


def variables(host: Host, provider: str, texts: Mapping[str, str]) -> Mapping[str, str]:
    """What lines name by a variable such as $kernelopts, once files have these texts."""
    return boot.entry_variables(host, texts) if provider == "bls" else {}
