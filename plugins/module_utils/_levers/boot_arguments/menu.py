# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""PV-GRUB and GRUB 0.97 (Amazon Linux 1, Ubuntu's PV images): the kernel lines of menu.lst. PRIVATE."""

from __future__ import annotations

import os
from typing import Dict, Iterator, Tuple

from ..._facts import boot
from ..._host.host import WritableHost
from ..._parse import boot_line, grub_menu
from .edited import Edited, Place, pattern, text_of


class Menu(Edited):
    """Each entry's kernel line, and the options from which Debian's and Ubuntu's update-grub makes the next entries.

    The kernels of other distributions get the arguments of the default entry when they are installed (grubby).
    """

    name = "menu"
    # A paravirtual guest is given 1,024 bytes with the end of the text (MAX_GUEST_CMDLINE of Xen's public header).
    longest = 1023

    def obstacle(self, host: WritableHost) -> str:
        folder = os.path.dirname(boot.config_path(host, self.name))
        if not host.writable(folder):
            return f"{folder} is read-only, so kernel arguments can't be set"
        return super().obstacle(host)

    def places(self, host: WritableHost) -> Iterator[Place]:
        path = boot.config_path(host, self.name)
        text = text_of(host, path)
        counts: Dict[str, int] = {}
        options = boot_line.span(grub_menu.OPTIONS, text)
        spans = [("defoptions", options)] if options is not None else []
        spans += [(entry.kernel, entry.span) for entry in grub_menu.entries(text) if not entry.recovery]
        for name, span in sorted(spans, key=lambda named_span: named_span[1]):
            counts[name] = counts.get(name, 0) + 1
            yield Place(f"{path} {name} {counts[name]}", path, span, text[span[0] : span[1]])

    def named(self, host: WritableHost) -> Iterator[Tuple[str, str]]:
        yield pattern(boot.config_path(host, self.name))
