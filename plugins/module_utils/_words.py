# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a value of a knob reads in a line. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, List, Mapping


def in_words(value: Any, nothing: str, limit: int) -> str:
    """At most `limit` characters; `nothing` for what is absent.

    A table reads by its values, in its own order: `performance × 8` when they are equal,
    `0, 2, 4, 6` when not, `64 values` when there is no room for them.
    """
    if value is None or value == "":
        return nothing
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (Mapping, list, tuple)):
        return clipped(str(value), limit)
    entries = _leaves(value)
    if not entries:
        return nothing
    shown = [in_words(entry, nothing, limit) for entry in entries]
    text = ", ".join(shown)
    if len(shown) > 1 and len(set(shown)) == 1:
        text = f"{shown[0]} × {len(shown)}"
    return text if len(text) <= limit else clipped(f"{len(shown)} values", limit)


def clipped(text: str, limit: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _leaves(value: Any) -> List[Any]:
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
