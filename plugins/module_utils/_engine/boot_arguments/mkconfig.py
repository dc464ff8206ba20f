# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Amazon Linux 2 and SLES: a block of ours in /etc/default/grub, and grub2-mkconfig. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.boot_arguments.generated import Generated, append
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import boot


class Mkconfig(Generated):
    """Their grub2-mkconfig reads one file and no folder. A shell reads it: what comes last has the last word."""

    name = "mkconfig"
    make = "grub2-mkconfig"
    check = "grub2-script-check"

    def defaults(self, host: WritableHost, tokens: Tuple[str, ...]) -> Tuple[str, Optional[str]]:
        data = store.read_file(host, boot.DEFAULTS)
        if data is None:
            raise NearmetalError(f"{boot.DEFAULTS} is missing, so grub2-mkconfig has nothing to read: put it back")
        text = data.decode("utf-8", "surrogateescape")
        text = text.replace(boot.block(text) or "", "", 1)
        if not tokens:
            return boot.DEFAULTS, text
        whole = text.endswith("\n") or not text
        begin = boot.BLOCK_BEGIN if whole else f"\n{boot.BLOCK_BEGIN}{boot.BLOCK_JOINED}"
        return boot.DEFAULTS, f"{text}{begin}\n{append(tokens)}{boot.BLOCK_END}\n"
