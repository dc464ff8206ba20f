# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/default/grub, a shell script: where a variable's value can be edited, and why not. PRIVATE to the collection.

Only a quoted text, alone in its line and outside of conditions, is edited; any other shell code is left alone.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple, Optional, Tuple

LONGEST = 65536  # characters of a file that is looked at

_QUOTED = r'"(?P<double>(?:[^"\\\n]|\\.)*(?:""(?:[^"\\\n]|\\.)*)*)"|\'(?P<single>[^\'\n]*)\''
_OPENING = frozenset(("if", "case", "for", "while", "until", "select", "{"))
_CLOSING = frozenset(("fi", "esac", "done", "}"))
# A comment, the start of a here-document, a quoted text, the end of a command, a word, or white space.
_PIECE = re.compile(
    r"(?P<comment>(?<![^\s;&|])#[^\n]*)|(?P<here><<)|(?P<quote>\"(?:[^\"\\]|\\.)*\"?|'[^']*'?|\\.|`[^`]*`?)"
    r"|(?P<end>[\n;&|]+)|(?P<word>[^\s\"'\\;&|#`<]+|[#<\\])|(?P<blank>[^\S\n]+)",
    re.DOTALL,
)
_CLOSED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|`[^`]*`|\\.", re.DOTALL)


class Place(NamedTuple):
    """The span of a variable's value between its quotes, and the obstacle to editing it; empty when there is none."""

    span: Optional[Tuple[int, int]] = None
    obstacle: str = ""


class _Line(NamedTuple):
    """A line as the shell reads it, up to a line end that isn't quoted or escaped."""

    number: int
    start: int
    text: str
    code: str  # the text without comments
    inside: bool  # in a condition, a loop or a function
    here_document: bool  # it begins a here-document


def find(text: str, name: str) -> Place:
    """The last assignment of the variable that can be edited, and the obstacle to editing it."""
    if len(text) > LONGEST:
        return Place(None, f"the file is longer than {LONGEST >> 10} KiB")
    assigned = re.compile(rf"[ \t]*(?:export[ \t]+)?{name}=(?:{_QUOTED})[ \t]*(?:[ \t]#[^\n]*)?")
    mentioned = re.compile(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])")
    place = Place()
    for line in _lines(text):
        if line.here_document:
            return Place(place.span, f"line {line.number} begins a here-document")
        if not mentioned.search(line.code):
            continue
        match = assigned.fullmatch(line.text)
        if match is not None and not line.inside:
            start, end = match.span("double" if match["double"] is not None else "single")
            place = Place((line.start + start, line.start + end))
        else:
            place = Place(place.span, f"line {line.number}: {name} {_form(line, name)}")
    return place


def unfinished(text: str) -> str:
    """Why a line added at the file's end wouldn't be read as a line of its own; empty when it would."""
    if len(text) > LONGEST:
        return f"the file is longer than {LONGEST >> 10} KiB"
    for line in _lines(text):
        first = line.code.split(None, 1)[:1]
        if line.here_document:
            return ""
        if line.text.endswith("\r"):
            return f"line {line.number} ends in CR LF"
        if first and first[0] in ("return", "exit") and not line.inside:
            return f"line {line.number} ends the file early"
        if line.start + len(line.text) == len(text) and _open(line.text):
            return f"line {line.number} isn't complete: it ends in a backslash or in an open quote"
    return ""


def _form(line: _Line, name: str) -> str:
    if "\r" in line.text:
        return "is in a line that ends in CR LF"
    if "\n" in line.text:
        return "goes over several lines"
    if line.inside:
        return "is in a condition, a loop or a function"
    if re.search(rf"(?<![A-Za-z0-9_$]){name}\+=", line.code):
        return "is extended by +="
    if not re.match(rf"[ \t]*(?:export[ \t]+)?{name}=", line.code):
        return "is used for something else"
    return "isn't one quoted text, alone in its line"


def _lines(text: str) -> Iterator[_Line]:
    number, start, depth, here_document = 1, 0, 0, False
    code = []
    command = True  # whether the next word may be a keyword of the shell
    for match in _PIECE.finditer(text):  # which matches every character
        place, kind, piece = match.end(), match.lastgroup, match[0]
        code.append("" if kind == "comment" else piece)
        here_document = here_document or kind == "here"
        if kind == "word":
            first = piece.rstrip("()")
            depth = max(0, depth + (piece in _OPENING) - (piece in _CLOSING)) if command or piece in "{}" else depth
            command = first in ("then", "else", "do", *_OPENING) or piece.endswith(")")
        elif kind == "quote":
            command = False
        elif kind == "end":
            command = True
            if piece.endswith("\n") or "\n" in piece:
                yield _Line(number, start, text[start:place].rstrip("\n"), "".join(code), depth > 0, here_document)
                number += text.count("\n", start, place)
                start, code, here_document = place, [], False
    if start < len(text):
        yield _Line(number, start, text[start:], "".join(code), depth > 0, here_document)


def _open(line: str) -> bool:
    """Whether the line ends within a quote or in a backslash."""
    last = None
    for match in _PIECE.finditer(line):
        last = match
    if last is None or last.lastgroup not in ("quote", "word"):
        return False
    return last[0] in ("\\", "\\\n") or (last.lastgroup == "quote" and not _CLOSED.fullmatch(last[0]))
