# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""nearmetal's arguments in the shell files from which a program makes grub.cfg. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from .._error import NearmetalError
from .._parse import shell_defaults
from .native_files import MARK

# Debian and Ubuntu: it sorts after 50-cloudimg-settings.cfg of cloud images, which sets the variable, too.
DROP_IN = "/etc/default/grub.d/99-nearmetal.cfg"
# Amazon Linux 2 and SLES have no such folder: a block of nearmetal at the end of the file, so that it counts.
DEFAULTS = "/etc/default/grub"
VARIABLE = "GRUB_CMDLINE_LINUX_DEFAULT"


class Shell(NamedTuple):
    """The shell file of a provider, and its programs."""

    path: str
    maker: str  # the program that prints a grub.cfg
    checker: str  # the program that checks one
    by_hand: str  # the shell file to which a person adds an argument


SHELL = {
    "debian": Shell(DROP_IN, "grub-mkconfig", "grub-script-check", "/etc/default/grub.d/local.cfg"),
    "mkconfig": Shell(DEFAULTS, "grub2-mkconfig", "grub2-script-check", DEFAULTS),
}
_BLOCK_BEGIN = "# BEGIN nearmetal.ec2: its kernel arguments. Take them back with state: restored, don't edit."
_BLOCK_JOINED = " The line above had no end: it ends with this block only."
_BLOCK_END = "# END nearmetal.ec2"


def append(tokens: Tuple[str, ...]) -> str:
    """The shell line that appends nearmetal's arguments to those that others have set."""
    return f'{VARIABLE}="${VARIABLE} {" ".join(tokens)}"\n'


def appended(text: Optional[str]) -> Tuple[str, ...]:
    """The arguments that a file or block of nearmetal appends to the variable."""
    begin = f'{VARIABLE}="${VARIABLE} '
    lines = [line for line in (text or "").splitlines() if line.startswith(begin) and line.endswith('"')]
    return tuple(token for line in lines for token in line[len(begin) : -1].split())


def configured(provider: str, text: Optional[str]) -> Tuple[str, ...]:
    """The arguments that the shell file gives to kernels that are installed later."""
    return appended(_block(text or "") if provider == "mkconfig" else text)


def obstacle(provider: str, text: Optional[str], recorded: bool) -> str:
    """Why nearmetal's text in the shell file can't be written; empty when it can.

    What somebody added at the end must not keep arguments that are `recorded` from being taken back.
    """
    if provider == "debian":
        changed = text is not None and text != _drop_in(appended(text))
        move = "move the change to a file of its own, remove this file, and run again"
        return f"{DROP_IN} was changed by somebody: {move}" if changed else ""
    try:
        block = _block(text or "")
    except NearmetalError as error:
        return str(error)
    if block is not None and block != _made_block(appended(block), joined=block.startswith("\n")):
        return (
            f"the block of nearmetal in {DEFAULTS} was changed by somebody: move the change below the block,"
            " and run again"
        )
    end = "" if recorded else shell_defaults.unfinished(text or "")
    return f"{DEFAULTS}, {end}, so nothing can be added at its end: fix that line and run again" if end else ""


def with_arguments(provider: str, text: Optional[str], tokens: Tuple[str, ...]) -> Optional[str]:
    """The shell file's text with these arguments of nearmetal alone; None where it is to be removed.

    Raises NearmetalError when somebody removed what nearmetal adds to.
    """
    if provider == "debian":
        return _drop_in(tokens) if tokens else None
    if text is None:
        raise NearmetalError(f"{DEFAULTS} is missing, so grub2-mkconfig has nothing to read: put it back")
    block = _block(text) or ""
    head, _found, tail = text.partition(block) if block else (text, "", "")
    # The line end that came with the block stays when somebody has added lines below the block.
    text = head + ("\n" if tail and block.startswith("\n") else "") + tail
    return text + _made_block(tokens, joined=bool(text) and not text.endswith("\n")) if tokens else text


def _drop_in(tokens: Tuple[str, ...]) -> str:
    return f"{MARK}: its kernel arguments. Take them back with state: restored, don't edit.\n{append(tokens)}"


def _block(text: str) -> Optional[str]:
    """The block of nearmetal in /etc/default/grub, with the line end that it brought; None when there is none.

    Raises NearmetalError when it has a beginning and no end.
    """
    begin = text.find(_BLOCK_BEGIN)
    if begin < 0:
        return None
    end = text.find(_BLOCK_END + "\n", begin)
    if end < 0:
        raise NearmetalError(f"{DEFAULTS}: the block of nearmetal has no end any more; put back {_BLOCK_END!r}")
    joined = begin > 0 and text.startswith(_BLOCK_BEGIN + _BLOCK_JOINED, begin)
    return text[begin - 1 if joined else begin : end + len(_BLOCK_END) + 1]


def _made_block(tokens: Tuple[str, ...], joined: bool) -> str:
    begin = f"\n{_BLOCK_BEGIN}{_BLOCK_JOINED}" if joined else _BLOCK_BEGIN
    return f"{begin}\n{append(tokens)}{_BLOCK_END}\n"
