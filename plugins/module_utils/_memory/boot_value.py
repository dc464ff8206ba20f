# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files of nearmetal set at boot, and what the boot would have set without them. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Iterable, Optional, Set, Tuple

from .._error import Damaged, NearmetalError
from .._facts import boot_lines, machine, memory, smt, sysctl
from .._host.host import WritableHost
from .._levers.base import Lever
from .._levers.capabilities import Disturbing, NamedByPath, OnDevice, SetsOthers, Table, kernel_choice, present_elements
from .._levers.registry import lever_of
from .._plan import Value
from .entry import Entry


def boot_value(host: WritableHost, what: str, where: str, earlier: Optional[Entry] = None) -> Value:
    """What files of others set there at boot, else the kernel's own choice, else the original of an earlier boot.

    `earlier` has that original, which counts if the machine is as it was then. None where the value can't be known.
    """
    lever = lever_of(what)
    value = _set_by_others(host, lever, where)
    if value is None:
        value = kernel_choice(lever, host, where)
    if value is None and earlier is not None and earlier.original is not None and not why_unsure(host, earlier):
        return earlier.original
    return value


def why_unsure(host: WritableHost, earlier: Entry) -> str:
    """Why this boot may not have begun with the original of an earlier one, as an end of "it was …"; else empty."""
    lever = lever_of(earlier.what)
    if earlier.what == "sysctl" and earlier.where in sysctl.SIZED:
        return "which the kernel computes at each boot"
    if not machine.alike(earlier.machine, machine.observe(host)):
        return "but with another kernel or size of this host" if earlier.machine else "with a kernel that isn't known"
    if isinstance(lever, OnDevice):
        return "and a rule of somebody else may set another for its device"
    if isinstance(lever, Table) and not _covers(host, lever, earlier):
        return "but some of its CPUs were offline, or are"
    return ""


def _covers(host: WritableHost, lever: Table, earlier: Entry) -> bool:
    """Whether the original has all elements of the place, those of offline CPUs too."""
    names = {*present_elements(lever, host, earlier.where), *lever.values.elements(earlier.set_values[-1])}
    known = lever.values.elements(earlier.original, names)
    of_cpus = any(lever.cpu_of(name) is not None for name in known)
    return known.keys() >= names and not (of_cpus and smt.offline(host))


def _set_by_others(host: WritableHost, lever: Lever, where: str) -> Value:
    """The value of a line in somebody else's file, if lever and kernel take it."""
    value: Value = None
    if lever.what == "sysctl":
        values = [line.value for line in boot_lines.sysctl_lines(host) if line.name == where]
        alike = bool(values) and sysctl.is_alike(values[-1], str(lever.read(host, where)))
        value = " ".join(values[-1].split()) if alike else None
    elif lever.what == "memory.dirty":
        for line in boot_lines.sysctl_lines(host):
            value = memory.limit_of(where, line.name, line.value) or value
    elif isinstance(lever, NamedByPath) and not isinstance(lever, Table):
        files = [file for path in lever.paths for file in lever.files(host, path) if host.exists(file)]
        words = (line.value for line in boot_lines.tmpfiles_lines(host) if fnmatchcase((files or [""])[0], line.name))
        word = next(words, None)
        value = lever.meaning(host, word) if word is not None else None
    try:
        if value is not None:
            lever.check(where, value)
    except NearmetalError:
        return None
    return value


def set_at_boot(host: WritableHost, entries: Iterable[Entry]) -> Set[Tuple[str, str]]:
    """The places that still have the value that a file of nearmetal, older than this boot, gave them at boot."""
    kept = tuple(entries)
    boot_id = host.boot_id() if kept else ""
    old = [entry for entry in kept if entry.boot_id != boot_id]
    levers = [(lever_of(entry.what), entry.where) for entry in old]
    return {place for lever, at in levers if isinstance(lever, SetsOthers) for place in lever.set_at_boot(host, at)}


def set_by_files(host: WritableHost, entries: Iterable[Entry]) -> Set[Tuple[str, str]]:
    """The places that have the value that a file of nearmetal gave them, at boot or when their device was attached."""
    levers = [(lever_of(entry.what), entry.where) for entry in entries]
    places = {place for lever, at in levers if isinstance(lever, SetsOthers) for place in lever.sets(host, at)}
    places |= set_at_boot(host, entries)
    setters = [(lever_of(what), where) for what, where in places]
    return places | {
        place for lever, at in setters if isinstance(lever, Disturbing) for place in lever.kernel_chosen(host, at)
    }


def named_by_files(host: WritableHost, entries: Iterable[Entry]) -> Set[Tuple[str, str]]:
    """The places that have the value that a file of nearmetal is going to give them at boot."""
    places: Set[Tuple[str, str]] = set()
    for entry in entries:
        lever = lever_of(entry.what)
        if isinstance(lever, SetsOthers):
            with suppress(Damaged):  # its own concern reports that
                places.update(lever.would_set(host, entry.where, str(lever.read(host, entry.where) or "")))
    return places
