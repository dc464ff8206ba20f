# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Amazon Linux 2 and SLES: a block of nearmetal in /etc/default/grub, and grub2-mkconfig. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional, Tuple

from ..._error import NearmetalError
from ..._facts import boot
from ..._host import store
from ..._host.host import WritableHost
from ..._parse import boot_record, shell_defaults
from .generated import Generated, append


class Mkconfig(Generated):
    """Their grub2-mkconfig reads one shell file and no folder; nearmetal's block is at its end, so that it counts."""

    name = "mkconfig"
    shell = boot.DEFAULTS
    make = "grub2-mkconfig"
    check = "grub2-script-check"
    by_hand = boot.DEFAULTS

    def obstacle(self, host: WritableHost) -> str:
        try:
            block = boot.block(host.text(boot.DEFAULTS) or "")
        except NearmetalError as error:
            return str(error)
        if block is not None and not _as_written(block):
            return (
                f"the block of nearmetal in {boot.DEFAULTS} was changed by somebody: move the change below the block,"
                " and run again"
            )
        end = shell_defaults.unfinished(host.text(boot.DEFAULTS) or "")
        if end and not host.exists(boot_record.PATH):
            return f"{boot.DEFAULTS}, {end}, so nothing can be added at its end: fix that line and run again"
        return super().obstacle(host)

    def defaults(self, host: WritableHost, tokens: Tuple[str, ...]) -> Tuple[str, Optional[str]]:
        data = store.read_file(host, boot.DEFAULTS)
        if data is None:
            raise NearmetalError(f"{boot.DEFAULTS} is missing, so grub2-mkconfig has nothing to read: put it back")
        text = data.decode("utf-8", "surrogateescape")
        block_text = boot.block(text) or ""
        head, _block_text, tail = text.partition(block_text) if block_text else (text, "", "")
        # The line end that came with the block stays when somebody has added lines below the block.
        text = head + ("\n" if tail and block_text.startswith("\n") else "") + tail
        if not tokens:
            return boot.DEFAULTS, text
        return boot.DEFAULTS, text + _block(tokens, joined=bool(text) and not text.endswith("\n"))


def _block(tokens: Tuple[str, ...], joined: bool) -> str:
    begin = f"\n{boot.BLOCK_BEGIN}{boot.BLOCK_JOINED}" if joined else boot.BLOCK_BEGIN
    return f"{begin}\n{append(tokens)}{boot.BLOCK_END}\n"


def _as_written(block: str) -> bool:
    """Whether we would write exactly this block for the arguments in it."""
    return block == _block(boot.appended(block), joined=block.startswith("\n"))
