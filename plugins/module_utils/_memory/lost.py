# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries for the files of nearmetal on a host whose journal somebody removed. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from typing import Iterator

from .._error import Damaged
from .._facts import native_files
from .._host.host import WritableHost
from .._levers.registry import place_of
from .entry import Entry

_UNIT = "unit"


def entries(host: WritableHost) -> Iterator[Entry]:
    """An entry for each file with the mark of nearmetal: there was none before it."""
    for path, text in native_files.observe(host).items():
        if native_files.marked(text):
            yield from _entry(host, native_files.concern(path) or _UNIT, "files", path)
    for what in ("unit.enabled", "unit.agent"):
        yield from _entry(host, _UNIT, what, "")


def _entry(host: WritableHost, concern: str, what: str, where: str) -> Iterator[Entry]:
    place = place_of(host, (what, where))
    with suppress(Damaged):  # somebody else's, or a link
        present = place.remembered(place.read())
        if present is not None:
            knob = "agent" if concern == _UNIT else "persist"
            yield Entry(concern, knob, what, where, original=None, set_values=(present,), boot_id="")
