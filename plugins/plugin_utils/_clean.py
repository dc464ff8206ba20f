# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a host's report harmless: bounded, of known types, without control characters. PRIVATE to the collection.

An attacker may control a host, and an administrator reads its report in a terminal and in a browser.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any, List, Mapping, Optional

TEXT = 2000  # characters of one string: a reason is a sentence or two
NAME = 120  # characters of a concern, knob or place
DEPTH = 6  # a table of a device holds queues, a queue holds CPUs
HOST = 262144  # characters of one host in all: four times what the result contract allows

_ESCAPES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: colors, cursor
    "|\x1b\\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\\\)?"  # OSC: titles, links, clipboard
    "|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\\\)?"  # DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]"
)
_SPACE = {"\n", "\r", "\t", "\v", "\f", "\u2028", "\u2029", "\x85"}
# Control, format (bidi overrides, zero width), surrogates, private use, unassigned.
_DROPPED = {"Cc", "Cf", "Cs", "Co", "Cn"}


def text(value: Any, limit: int = TEXT) -> str:
    """A string of one line that no terminal, browser or parser mistakes for a command."""
    raw = value if isinstance(value, str) else str(value)
    # The text is cut before it is cleaned: 100 MB of escapes must not cost minutes.
    kept = _ESCAPES.sub("", raw[: limit * 4])
    if not (kept.isascii() and kept.isprintable()):
        kept = "".join(map(_character, kept))
    if len(kept) > limit or len(raw) > limit * 4:
        kept = kept[: limit - 1] + "…"
    return kept


def _character(character: str) -> str:
    if character in _SPACE:
        return " "
    return "" if unicodedata.category(character) in _DROPPED else character


class Budget:
    """How many characters of one host's report may still be kept; values beyond that are dropped and counted."""

    def __init__(self, characters: int = HOST) -> None:
        self.left = characters
        self.dropped = 0

    def text(self, value: Any, limit: int = TEXT) -> str:
        """A clean string that is charged to the budget."""
        clean = text(value, limit)
        return clean if self._take(len(clean)) else ""

    def value(self, value: Any, depth: int = DEPTH) -> Any:
        """A clean value of JSON: mappings and lists keep their shape, other types become text."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if -(2**63) <= value < 2**64 else "a number out of range"
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else "a number out of range"
        if depth and isinstance(value, Mapping):
            return {self.text(name, NAME): self.value(item, depth - 1) for name, item in value.items() if self._take(1)}
        if depth and isinstance(value, (list, tuple)):
            return [self.value(item, depth - 1) for item in value if self._take(1)]
        return self.text(value)

    def texts(self, value: Any, limit: int = TEXT) -> List[str]:
        """A list of clean strings; empty for anything but a list."""
        return [self.text(item, limit) for item in value if self._take(1)] if isinstance(value, (list, tuple)) else []

    def exhausted(self) -> bool:
        """Whether anything was dropped."""
        return self.dropped > 0

    def _take(self, amount: int) -> bool:
        if amount > self.left:
            self.dropped += 1
            return False
        self.left -= amount
        return True


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, or an empty mapping for any other."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any, most: int) -> List[Mapping[str, Any]]:
    """The mappings in a list; empty for anything but a list."""
    return [entry for entry in value[:most] if isinstance(entry, Mapping)] if isinstance(value, (list, tuple)) else []


def whole(value: Any, most: int = 2**53 - 1) -> Optional[int]:
    """A whole number that isn't negative; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None
