# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/interrupts: counters per online CPU, and who requested each interrupt. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Tuple

from .._number import is_number

_COLUMN = re.compile(r"CPU([0-9]{1,5})", re.ASCII)
_LABEL = re.compile(r"\s*([^\s:]{1,32}):", re.ASCII)
# Counters are 10 digits wide. Some kernels leave no space between counters that fill their column.
_WIDTH = 10
# The text before the names: "PCI-MSI 81920-edge", "xen-dyn-event", "ITS-MSI 1 Edge", "IPI-mux 0 Level".
_HANDLER = re.compile(r"(?:.*-)?(?:edge|fasteoi|level|event|msi-x|msi|virq|ipi|Edge|Level)|[0-9]+", re.ASCII)


class Interrupt(NamedTuple):
    """One line. `label` is a number for a device's interrupt, a word (LOC, RES) for the others."""

    label: str
    counters: Tuple[int, ...]  # per column; fewer for lines such as ERR, which count for the whole machine
    description: str  # chip, its number and the names, with single spaces; empty when the kernel has none

    @property
    def number(self) -> int:
        """The interrupt's number; -1 for the architecture's own lines."""
        return int(self.label) if is_number(self.label) else -1

    @property
    def names(self) -> Tuple[str, ...]:
        """Who requested the interrupt, from a list with commas; empty for a vector that nobody uses any more."""
        words = self.description.split()
        if len(words) < 2 or _HANDLER.fullmatch(words[-1]):
            return ()
        devices = [words[-1]]
        for word in words[-2::-1]:
            if not word.endswith(","):
                break
            devices.append(word[:-1])
        return tuple(reversed(devices))


class Interrupts(NamedTuple):
    """The whole file. CPUs that are offline have no column."""

    cpus: Tuple[int, ...]
    lines: Tuple[Interrupt, ...]


def parse(text: str) -> Interrupts:
    """The file's columns and lines; lines of another form are left out. Raises nothing."""
    head, _newline, body = text.partition("\n")
    cpus = tuple(int(number) for number in _COLUMN.findall(head))
    lines = []
    for line in body.splitlines():
        match = _LABEL.match(line)
        if match is not None:
            counters, description = _counters(line[match.end() :], len(cpus))
            lines.append(Interrupt(match.group(1), counters, description))
    return Interrupts(cpus, tuple(lines))


def _counters(text: str, columns: int) -> Tuple[Tuple[int, ...], str]:
    """The leading numbers, at most one per column, and what follows them, with single spaces."""
    words = text.split()
    counters: List[int] = []
    used = 0
    for word in words:
        # A digit outside ASCII, as in a hostile file, is no counter.
        if len(counters) >= columns or not (word.isdigit() and word.isascii()) or len(word) > columns * _WIDTH:
            break
        if len(word) > _WIDTH:
            first = len(word) % _WIDTH or _WIDTH
            parts = [word[:first], *(word[start : start + _WIDTH] for start in range(first, len(word), _WIDTH))]
            counters += map(int, parts)
        else:
            counters.append(int(word))
        used += 1
    return tuple(counters), " ".join(words[used:])
