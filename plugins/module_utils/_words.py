# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a value reads in a line, and what of it may be in a message. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Sequence

from ._mistakes import LINE, parts_of

LONGEST_VALUE = 300  # characters that a message shows of a value
LONGEST_SENTENCE = 1500  # characters of one sentence, whatever values are in it
_STATUSES = {"needs_reboot": "needs a reboot", "needs_restart": "needs a restart"}

_LONG_WORD = re.compile(r"\S{%d,}" % (LONGEST_VALUE + 1))


def status_words(status: str, count: int = 1) -> str:
    """A status of a finding as an operator reads it; the verb agrees with `count`."""
    words = _STATUSES.get(status, status.replace("_", " "))
    return words if count == 1 else re.sub("^needs ", "need ", words)


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
    texts = [in_words(entry, nothing, limit) for entry in entries]
    text = ", ".join(texts)
    if len(texts) > 1 and len(set(texts)) == 1:
        text = f"{texts[0]} × {len(texts)}"
    return text if len(text) <= limit else clipped(f"{len(texts)} values", limit)


def counted(number: int, noun: str) -> str:
    """`1 queue`, `8 queues`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def span(names: Sequence[str], most: int = 3) -> str:
    """The names, of many the first ones and how many more."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def clipped(text: str, limit: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def folded(text: str, width: int) -> List[str]:
    """The words of a text in lines of at most so many characters; a word that is longer is cut."""
    lines: List[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(clipped(word, width))
    return lines


def printable(text: str) -> str:
    """The text in one line, without what a terminal would obey: control and format characters, and surrogates."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else "" for char in text)


def shown(value: Any) -> str:
    """A value that somebody gave, as a message shows it: at most LONGEST_VALUE characters, and true as in YAML."""
    if value is None or isinstance(value, bool):
        return in_words(value, "null", LONGEST_VALUE)
    try:
        return clipped(printable(repr(value)), LONGEST_VALUE)
    except (RecursionError, ValueError):  # nested too deep, or a number of thousands of digits
        return f"a {type(value).__name__} that is too large to show"


def choices(names: Sequence[str], given: Any = "", limit: int = LONGEST_VALUE) -> str:
    """Names to choose from, of many those for which there is room; the one most like what was given stands first.

    The question at the end is whether that one is meant.
    """
    nearest: List[str] = []
    if given and isinstance(given, str):
        from difflib import get_close_matches  # few runs need it

        nearest = get_close_matches(given, names, 1)
    ordered = [*nearest, *(name for name in names if name not in nearest)]
    text = ", ".join(ordered)
    while len(text) > limit and len(ordered) > 1:
        ordered.pop()
        text = f"{', '.join(ordered)} and {len(names) - len(ordered)} more"
    return text + "".join(f"; is {name} meant?" for name in nearest)


def plain(text: str) -> str:
    """The same for a name, without quotes around it."""
    return clipped(printable(text), LONGEST_VALUE)


def sentence(text: str) -> str:
    """A whole message as it is shown: one printable line, no word longer than LONGEST_VALUE, nothing endless.

    Of `several` mistakes it names as many as there is room for, and of twelve and more at most ten.
    """
    first, *rest = parts_of(_LONG_WORD.sub(lambda word: clipped(word[0], LONGEST_VALUE), printable(text)))
    most = len(rest) if len(rest) < 12 else 10
    while most > 1 and len(LINE.join((first, *rest[:most]))) > LONGEST_SENTENCE - 30:
        most -= 1
    more = [f"and {len(rest) - most} more"] if rest[most:] else []
    return clipped(LINE.join((first, *rest[:most], *more)), LONGEST_SENTENCE)


def lines_of(text: str) -> List[str]:
    """The lines of a message of `several` mistakes, for a terminal."""
    first, *rest = parts_of(text)
    return [first, *(f"{LINE[1:]}{line}" for line in rest)]


def _leaves(value: Any) -> List[Any]:
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
