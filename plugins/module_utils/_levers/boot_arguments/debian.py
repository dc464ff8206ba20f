# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian and Ubuntu: a drop-in in /etc/default/grub.d, and update-grub made safe. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional, Tuple

from ..._facts import boot
from ..._facts.native_files import MARK
from ..._host.host import WritableHost
from .generated import Generated, append


class Debian(Generated):
    """update-grub isn't used: as grub-mkconfig -o it overwrites the only good file before the new one is checked."""

    name = "debian"
    shell = boot.DROP_IN
    make = "grub-mkconfig"
    check = "grub-script-check"
    by_hand = "/etc/default/grub.d/local.cfg"

    def obstacle(self, host: WritableHost) -> str:
        text = host.text(boot.DROP_IN)
        if text is not None and not _as_written(text):
            return (
                f"{boot.DROP_IN} was changed by somebody: move the change to a file of its own, remove this file, and"
                " run again"
            )
        return super().obstacle(host)

    def defaults(self, host: WritableHost, tokens: Tuple[str, ...]) -> Tuple[str, Optional[str]]:
        return boot.DROP_IN, _text(tokens) if tokens else None


def _text(tokens: Tuple[str, ...]) -> str:
    return f"{MARK}: its kernel arguments. Take them back with state: restored, don't edit.\n{append(tokens)}"


def _as_written(text: str) -> bool:
    """Whether we would write exactly this file for the arguments in it."""
    last = text.splitlines()[-1] if text else ""
    tokens = tuple(last.partition(" ")[2].rstrip('"').split())
    return text == _text(tokens)
