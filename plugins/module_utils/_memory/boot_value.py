# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot of the host would have set without nearmetal. PRIVATE to the collection."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Optional

from .._error import NearmetalError
from .._facts import boot_lines, machine, memory, smt, sysctl
from .._levers.base import Lever
from .._levers.values import TableValues
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
