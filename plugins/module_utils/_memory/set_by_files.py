# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files set without a run: nearmetal's own, and what a boot of the host would set without nearmetal. PRIVATE."""

from __future__ import annotations

import re
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Iterable, Iterator, Optional, Set

from .._error import Damaged, NearmetalError
from .._facts import boot_lines, machine, memory, smt, sys_files, sysctl
from .._host.host import WritableHost
from .._levers.base import Key, Lever, TableValues
from .._levers.registry import LEVERS, place_of
from .._plan import Value
from .entry import Entry


def boot_value(place: Lever, earlier: Optional[Entry] = None) -> Value:
    """What files of others set there at boot, else the kernel's own choice, else the original of an earlier boot.

    `earlier` has that original, which counts if the machine is as it was then. None where the value can't be known.
    """
    value = _set_by_others(place)
    if value is None:
        value = place.choice()
    if value is None and earlier is not None and earlier.original is not None and not why_unsure(place, earlier):
        return earlier.original
    return value


def why_unsure(place: Lever, earlier: Entry) -> str:
    """Why this boot may not have begun with the original of an earlier one, as an end of "it was …"; else empty."""
    if earlier.what == "sysctl" and earlier.where in sysctl.SIZED:
        return "which the kernel computes at each boot"
    if not machine.alike(earlier.machine, machine.observe(place.host)):
        return "but with another kernel or size of this host" if earlier.machine else "with a kernel that isn't known"
    if place.on_device:
        return "and a rule of somebody else may set another for its device"
    if isinstance(place, TableValues) and not _covers(place, earlier):
        return "but some of its CPUs were offline, or are"
    return ""


def _covers(place: Lever, earlier: Entry) -> bool:
    """Whether the original has all elements of the place, those of offline CPUs too."""
    names = {*place.present_elements(), *place.elements(earlier.set_values[-1])}
    known = place.elements(earlier.original, names)
    of_cpus = any(place.cpu_of(name) is not None for name in known)
    return known.keys() >= names and not (of_cpus and smt.offline(place.host))


def _set_by_others(place: Lever) -> Value:
    """The value of a line in somebody else's file, if lever and kernel take it."""
    host = place.host
    value: Value = None
    if place.what == "sysctl":
        values = [line.value for line in boot_lines.sysctl_lines(host) if line.name == place.where]
        alike = bool(values) and sysctl.is_alike(values[-1], str(place.read()))
        value = " ".join(values[-1].split()) if alike else None
    elif place.what == "memory.dirty":
        for line in boot_lines.sysctl_lines(host):
            value = memory.limit_of(place.where, line.name, line.value) or value
    elif place.files and not isinstance(place, TableValues):
        files = [file for path in place.files for file in place.files_at(path) if host.exists(file)]
        words = (line.value for line in boot_lines.tmpfiles_lines(host) if fnmatchcase((files or [""])[0], line.name))
        word = next(words, None)
        value = place.meaning(word) if word is not None else None
    try:
        if value is not None:
            place.check(place.where, value)
    except NearmetalError:
        return None
    return value


# Lines of _planning/native.py.
_PARAMETER = r"^([a-z0-9_.-]{1,100}) = ([ -~]{1,100})$"
_WRITE = r"^w! (/sys/[A-Za-z0-9_./*-]{1,200}) - - - - ([ -~]{1,100})$"
# A line of _concerns/block_storage/__init__.py that sets something.
_RULE = re.compile(
    r'^ENV\{\.NEARMETAL_KIND\}=="([a-z_]{1,16})", .*ATTR\{queue/([a-z_]{1,16})\}="([a-z0-9_-]{1,32})"$',
    re.ASCII | re.MULTILINE,
)


def places(host: WritableHost, entries: Iterable[Entry]) -> Set[Key]:
    """The places that have the value that a file gave them, at boot or when their device was attached."""
    kept = tuple(entries)
    found = {key for entry in kept for key in set_now(host, entry)} | set_at_boot(host, kept)
    return found | {key for setter in found for key in place_of(host, setter).kernel_chosen()}


def set_now(host: WritableHost, entry: Entry) -> Iterable[Key]:
    """The places that hold what a udev rule of the entry's file sets on each new device."""
    return _held(host, entry) if entry.where.endswith(".rules") else ()


def set_at_boot(host: WritableHost, entries: Iterable[Entry]) -> Set[Key]:
    """The places that still have the value that a file, older than this boot, gave them at boot."""
    kept = tuple(entries)
    boot_id = host.boot_id() if kept else ""
    return {key for entry in kept if entry.boot_id != boot_id for key in _held(host, entry)}


def named(host: WritableHost, entries: Iterable[Entry]) -> Set[Key]:
    """The places that have the value that a file is going to give them at boot."""
    return {key for entry in entries for key in _held(host, entry)}


def _held(host: WritableHost, entry: Entry) -> Iterable[Key]:
    """The places that hold what the entry's file sets; none when it can't be read, which its own concern reports."""
    if entry.what == "files":
        with suppress(Damaged):
            return tuple(would_set(host, entry.key, str(entry.place(host).read() or "")))
    return ()


def would_set(host: WritableHost, key: Key, text: str) -> Iterable[Key]:
    """The places that hold what a file with this text would set, at boot or when a device is attached."""
    what, path = key
    if what == "files" and path.endswith(".conf"):
        return _set_by_lines(host, text)
    return _set_by_rules(host, text) if what == "files" and path.endswith(".rules") else ()


def _set_by_lines(host: WritableHost, text: str) -> Iterator[Key]:
    """The places that hold what a file of sysctl.d or tmpfiles.d with this text sets."""
    for key, value in re.findall(_PARAMETER, text, re.ASCII | re.MULTILINE):
        if key in sysctl.KEYS and (host.text(sysctl.path(key), 4096) or "").split() == value.split():
            yield "sysctl", key
        limit = key[len("vm.") :].rpartition("_")[0]
        if limit in sysctl.DIRTY and (memory.dirty(host, limit) or "").rstrip("%") == value:
            yield "memory.dirty", limit
    for path, word in re.findall(_WRITE, text, re.ASCII | re.MULTILINE):
        lever = next((lever for lever in LEVERS.values() if path in lever.files), None)
        files = lever.at(host, "").files_at(path) if lever is not None else []
        lines = [line for line in map(host.line, files) if line is not None]
        if lever is not None and lines and all(sys_files.chosen(line) == word for line in lines):
            yield lever.what, ""


def _set_by_rules(host: WritableHost, text: str) -> Iterator[Key]:
    """The queue files that hold what udev rules with this text set there."""
    from .._facts import block, disk  # late: few plans are about disks
    from .._parse import block_queue

    settings = [(match[1], match[2], match[3]) for match in _RULE.finditer(text)]
    for where, name in disk.names(host).items():
        layer, kind = disk.layer(host, name), disk.kind_and_driver(host, name)[0]
        for rule_kind, attribute, value in settings:
            fits = layer == disk.DISK or (layer == disk.HEAD and attribute == "read_ahead_kb")
            if fits and rule_kind == kind and block_queue.holds(attribute, block.read(host, name, attribute), value):
                yield f"block.{attribute}", where
