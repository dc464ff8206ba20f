# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a value reads in a line, and what of it may be in a message. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Iterable, List, Mapping, Sequence

LONGEST_VALUE = 300  # characters that a message shows of a value
LONGEST_SENTENCE = 1500  # characters of one sentence, whatever values are in it
LINE = "\n• "  # begins each line of a message that has several
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
    """A whole message as it is shown: printable, no word longer than LONGEST_VALUE, nothing endless.

    It is one line, unless it is of `several` mistakes; of twelve and more ten have a line.
    """
    first, *rest = (
        _LONG_WORD.sub(lambda word: clipped(word[0], LONGEST_VALUE), printable(line)) for line in text.split(LINE)
    )
    rest = [*rest[:10], f"and {len(rest) - 10} more"] if rest[11:] else rest
    return LINE.join(clipped(line, LONGEST_SENTENCE) for line in (first, *rest))


def several(sentences: Iterable[str]) -> str:
    """The mistakes that these sentences name, in one message: each once, and each in a line if there are several."""
    first, *rest = dict.fromkeys(sentences) or ("",)
    return LINE.join((f"{1 + len(rest)} mistakes:", first, *rest)) if rest else first


def lines_of(text: str) -> List[str]:
    """The lines of a message of `several` mistakes, also where it was made one line."""
    first, *rest = text.replace("\n", " ").split(f" {LINE[1:]}")
    return [first, *(f"{LINE[1:]}{line}" for line in rest)]


def _leaves(value: Any) -> List[Any]:
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
