# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text in columns of a terminal. PRIVATE to the collection."""

from __future__ import annotations

import unicodedata
from typing import Callable, Iterator, List

Paint = Callable[[str, str], str]  # text, color by Ansible's name


def plain(text: str, _color: str) -> str:
    """The Paint of a log, or of a terminal without color."""
    return text


def width(text: str) -> int:
    """The columns that a terminal gives this text."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, columns: int) -> str:
    """The text in at most so many columns, cut in its middle by an ellipsis."""
    if width(text) <= columns:
        return text
    if columns < 2:
        return "…"[:columns]
    tail = (columns - 1) // 2
    head = columns - 1 - tail
    kept, right = "", ""
    for character in text:
        if width(kept + character) > head:
            break
        kept += character
    for character in reversed(text):
        if width(character + right) > tail:
            break
        right = character + right
    return f"{kept}…{right}"


def pad(text: str, columns: int) -> str:
    """The text clipped or filled to exactly so many columns."""
    clipped = clip(text, columns)
    return clipped + " " * (columns - width(clipped))


def wrap(text: str, columns: int) -> List[str]:
    """Lines of at most so many columns; a word that is longer is broken."""
    columns = max(columns, 8)
    lines, line = [], ""
    for word in (part for whole in text.split() for part in _parts(whole, columns)):
        if line and width(line) + 1 + width(word) > columns:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line or not lines else lines


def led(lead: str, text: str, columns: int) -> List[str]:
    """The text behind a lead, its further lines indented as far."""
    first, *more = wrap(text, columns - len(lead))
    return [lead + first, *(" " * len(lead) + line for line in more)]


def _parts(word: str, columns: int) -> Iterator[str]:
    part = ""
    for character in word:
        if width(part + character) > columns:
            yield part
            part = ""
        part += character
    yield part
