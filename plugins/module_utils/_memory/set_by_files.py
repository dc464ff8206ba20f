# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The places that hold a value because a file of nearmetal sets it, without a run that wrote it. PRIVATE."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Iterable, Iterator, Set

from .._error import Damaged
from .._facts import memory, sys_files, sysctl
from .._host.host import WritableHost
from .._levers.base import Key
from .._levers.registry import LEVERS, place_of
from .entry import Entry

# Lines of _planning/native.py.
_PARAMETER = r"^([a-z0-9_.-]{1,100}) = ([ -~]{1,100})$"
_WRITE = r"^w! (/sys/[A-Za-z0-9_./*-]{1,200}) - - - - ([ -~]{1,100})$"
# A line of _concerns/block_storage/rules.py that sets something.
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
