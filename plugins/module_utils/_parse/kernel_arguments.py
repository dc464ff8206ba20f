# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Merging nearmetal's kernel arguments with those that are there already. Pure. PRIVATE to the collection.

Foreign arguments are kept verbatim: their order, duplicates and quotes. nearmetal's
come last, because for most arguments the kernel takes the last value.
"""

from __future__ import annotations

import re
from typing import FrozenSet, Iterable, List, NamedTuple, Optional, Tuple

from .._error import NearmetalError
from . import cmdline

# nearmetal's tokens are written to files that a shell reads, so none of their characters may be special to a shell.
TOKEN = r"[A-Za-z0-9_.,:=+/@-]+"
NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"

# COMMAND_LINE_SIZE is 2048 on x86 and arm64, with the NUL; the kernel silently truncates a longer line.
LONGEST = 2047


class Claim(NamedTuple):
    """What one concern wants: `text` is one argument, or several whose order matters, separated by spaces."""

    by: str  # concern.knob, for the operator
    text: str


def checked_tokens(text: str) -> Tuple[str, ...]:
    """The tokens of a text of nearmetal.

    Raises NearmetalError when one of them can't be written to a file that a shell reads.
    """
    tokens = tuple(text.split(" "))
    for token in tokens:
        if not re.fullmatch(TOKEN, token, re.ASCII) or token.startswith(("=", "--")):
            raise NearmetalError(
                f"nearmetal can't set the kernel argument {token[:80]!r}:"
                " only letters, digits and _ . , : = + / @ - are allowed in it"
            )
    return tokens


def names(tokens: Iterable[str]) -> FrozenSet[str]:
    """The arguments' names, "-" and "_" being equal as for the kernel."""
    return frozenset(_name(token) for token in tokens)


def same_names(arguments: Tuple[str, ...], wanted: Tuple[str, ...]) -> Tuple[str, ...]:
    """The arguments that have the names of `wanted`, in their order; what follows "--" is for init."""
    wanted_names = names(wanted)
    return tuple(token for token in _for_kernel(arguments) if _name(token) in wanted_names)


def in_force(arguments: Tuple[str, ...], wanted: Tuple[str, ...]) -> bool:
    """Whether `wanted` comes last among the arguments of its names, so that the kernel takes it."""
    present = tuple(_plain(token) for token in same_names(arguments, wanted))
    return present[-len(wanted) :] == tuple(_plain(token) for token in wanted)


def merge(foreign: Tuple[str, ...], added: Tuple[str, ...]) -> Tuple[str, ...]:
    """All foreign arguments verbatim, then nearmetal's, before a "--", because init gets what follows that."""
    head = _for_kernel(foreign)
    return head + added + foreign[len(head) :]


def without(arguments: Tuple[str, ...], added: Tuple[str, ...]) -> Tuple[str, ...]:
    """The arguments without the last occurrence of each token of nearmetal: an earlier one is somebody else's."""
    remaining = list(arguments)
    for token in reversed(added):
        for place in reversed(range(len(remaining))):
            if remaining[place] == token:
                del remaining[place]
                break
    return tuple(remaining)


def agree(claims: Iterable[Claim]) -> Tuple[str, ...]:
    """The tokens of all concerns, one after the other.

    Raises NearmetalError when two want different values of one argument; it names both.
    """
    taken: List[Tuple[Claim, Tuple[str, ...]]] = []
    for claim in claims:
        tokens = checked_tokens(claim.text)
        for earlier, taken_tokens in taken:
            if names(tokens) & names(taken_tokens) and tokens != taken_tokens:
                raise NearmetalError(
                    f"{earlier.by} wants the kernel argument {earlier.text} and {claim.by} wants {claim.text}:"
                    " only one of them can be set; leave one of these options out"
                )
        if all(tokens != taken_tokens for _earlier, taken_tokens in taken):
            taken.append((claim, tokens))
    return tuple(token for _claim, tokens in taken for token in tokens)


def too_long(image: Optional[str], arguments: Tuple[str, ...], longest: int = LONGEST) -> int:
    """How many bytes of the line the kernel would cut off; 0 when it fits. GRUB puts BOOT_IMAGE= before it."""
    line = " ".join(((f"BOOT_IMAGE={image}",) if image else ()) + arguments)
    return max(0, len(line.encode()) - longest)


def _for_kernel(arguments: Tuple[str, ...]) -> Tuple[str, ...]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _name(token: str) -> str:
    return cmdline.split(token)[0].replace("-", "_")


def _plain(token: str) -> Tuple[str, Optional[str]]:
    _written, value = cmdline.split(token)
    return _name(token), value
