# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that may come from anybody: neither its depth nor its numbers can hurt the decoder. PRIVATE to the collection.

At its recursion limit Python 3.8 may end the process silently, when it collects garbage with finalizers there. So the
decoder never gets that far.
"""

from __future__ import annotations

import json
from typing import Any, Callable

from .._error import NearmetalError

# What it may raise to read a text as JSON, and its value as something that nearmetal wrote.
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, NearmetalError)
_DEEPEST = 64  # levels; nothing that nearmetal or EC2 writes has ten
_LONGEST_NUMBER = 40  # digits; the cost of reading a number grows with the square of its length
# Brackets of lists and tables, and quotes: each value in them takes many times the memory of its text.
_MOST_BRACKETS, _MOST_QUOTES = 100_000, 1_000_000

_OTHERS = bytes(set(range(256)) - set(b'"[]{}'))


def parse(text: str) -> Any:
    """The value of the text. Raises ValueError when it isn't JSON, or is too deep or too large."""
    brackets = text.count("[") + text.count("{")
    if brackets > _MOST_BRACKETS or text.count('"') > _MOST_QUOTES:
        raise ValueError("more lists, mappings and texts than nearmetal reads")
    if brackets > _DEEPEST:
        _check_depth(text)
    return json.loads(text, parse_int=_short(int), parse_float=_short(float), parse_constant=_refuse)


def reason(error: Exception) -> str:
    """What is wrong with a text, after one of DAMAGE; one line."""
    return f"no {error}" if isinstance(error, KeyError) else (str(error).splitlines() or ["nothing in it"])[0][:200]


def _check_depth(text: str) -> None:
    """Raise ValueError for what is nested too deep.

    Everything that doesn't change the depth is removed first, which is fast, as are two quotes side by side.
    """
    data = text.encode("utf-8", "surrogatepass").replace(b"\\\\", b"").replace(b'\\"', b"")
    depth, quoted = 0, False
    for byte in data.translate(None, _OTHERS).replace(b'""', b""):
        if byte in b'"':
            quoted = not quoted
        elif not quoted:
            depth += 1 if byte in b"[{" else -1
        if depth > _DEEPEST:
            raise ValueError(f"nested deeper than {_DEEPEST} levels")


def _short(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def number(text: str) -> Any:
        if len(text) > _LONGEST_NUMBER:
            raise ValueError(f"a number of more than {_LONGEST_NUMBER} digits")
        return kind(text)

    return number


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
