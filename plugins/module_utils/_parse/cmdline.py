# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's command line as tokens. PRIVATE to the collection."""

from __future__ import annotations

from itertools import takewhile

LONGEST = 65536  # bytes of /proc/cmdline that are read: far above every kernel's COMMAND_LINE_SIZE


def tokens(text: str) -> tuple[str, ...]:
    """The arguments in order, duplicates kept, each verbatim with its quotes.

    Blanks within double quotes belong to the argument (kernel lib/cmdline.c, next_arg);
    a quote that is never closed reaches to the end. Raises nothing.
    """
    if '"' not in text:
        return tuple(text.split())
    words: list[str] = []
    current: list[str] = []
    quoted = False
    for character in text:
        if character == '"':
            quoted = not quoted
        if character.isspace() and not quoted:
            if current:
                words.append("".join(current))
                current = []
        else:
            current.append(character)
    # The newline at the end of /proc/cmdline is not part of an argument whose quote stayed open.
    last = "".join(current).rstrip("\n")
    if last:
        words.append(last)
    return tuple(words)


def split(token: str) -> tuple[str, str | None]:
    """Name and value of one token, without the quotes; the value is None when there is no "="."""
    name, equals, value = token.partition("=")
    if name.startswith('"'):
        name = name[1:]
        if not equals:
            return name[:-1] if name.endswith('"') else name, None
        return name, value[:-1] if value.endswith('"') else value
    if not equals:
        return name, None
    if value.startswith('"'):
        value = value[1:]
        if value.endswith('"'):
            value = value[:-1]
    return name, value


def values(arguments: tuple[str, ...], name: str) -> tuple[str | None, ...]:
    """The value of every argument of this name, in order.

    As for the kernel, "-" and "_" are equal in names. What follows a token "--" is
    for init, not for the kernel.
    """
    wanted = name.replace("-", "_")
    pairs = map(split, takewhile(lambda token: token != "--", arguments))
    return tuple(value for argument, value in pairs if argument.replace("-", "_") == wanted)


def last(arguments: tuple[str, ...], name: str) -> str | None:
    """The value that counts of the arguments of this name; None without one, or without a value."""
    return (None, *values(arguments, name))[-1]
