# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line of a file that holds kernel arguments; all that isn't nearmetal's stays. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Mapping, Optional, Tuple

from . import cmdline, kernel_arguments

# Patterns for the place of the arguments. What variables such as $kernelopts stand for is elsewhere.
ENTRY = r"^options[ \t]+(?![ \t])(.*)$"
ENVIRONMENT = r"^kernelopts=(.*)$"
KERNEL_CMDLINE = r"^(?![ \t]*#)(.*\S.*)$"


def span(place: str, text: str, first: bool = False) -> Optional[Tuple[int, int]]:
    """Start and end of the arguments; None when the file has no such line.

    Of several lines the last one counts, or with `first` the first one.
    """
    spans = [match.span(1) for match in re.finditer(place, text, re.MULTILINE)]
    return spans[0 if first else -1] if spans else None


def read(place: str, text: str) -> Optional[str]:
    """The arguments; None when the file has no such line."""
    place_of_arguments = span(place, text)
    return text[place_of_arguments[0] : place_of_arguments[1]] if place_of_arguments is not None else None


def append(line: str, tokens: Tuple[str, ...]) -> str:
    """The line with nearmetal's arguments at its end, or before a "--", because init gets what follows that."""
    present = cmdline.tokens(line)
    if "--" in present:
        return " ".join(kernel_arguments.merge(present, tokens))
    return " ".join((line, *tokens))


def foreign(line: str, nearmetal_texts: Mapping[str, Tuple[str, ...]], last: bool) -> str:
    """The line without nearmetal's arguments; at most one text per argument is removed.

    With `last` only a text that is in force can be nearmetal's, as when it isn't known whether it was ever written.
    """
    present = cmdline.tokens(line)
    removed: Tuple[str, ...] = ()
    for name in sorted(nearmetal_texts):
        texts = [kernel_arguments.checked_tokens(text) for text in nearmetal_texts[name]]
        candidates = [
            tokens
            for tokens in texts
            if (kernel_arguments.in_force(present, tokens) if last else set(tokens) <= set(present))
        ]
        removed += max(candidates, key=lambda tokens: (_last_place(present, tokens[-1]), len(tokens)), default=())
    return _without(line, present, removed)


def _last_place(present: Tuple[str, ...], token: str) -> int:
    return max((place for place, argument in enumerate(present) if argument == token), default=-1)


def _without(line: str, present: Tuple[str, ...], removed: Tuple[str, ...]) -> str:
    end = " ".join(("", *removed))
    if line.endswith(end):
        return line[: len(line) - len(end)]
    remaining = kernel_arguments.without(present, removed)
    return " ".join(remaining) if remaining != present else line
