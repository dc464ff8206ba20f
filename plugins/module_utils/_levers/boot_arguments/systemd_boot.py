# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd-boot: its entries, and the file from which kernel-install makes the next ones. PRIVATE to the collection."""

from __future__ import annotations

from typing import Iterator, Tuple

from ..._facts import boot
from ..._host.host import WritableHost
from ..._parse import boot_line
from .edited import Edited, Place, pattern, text_of


class SystemdBoot(Edited):
    """One line in each entry's file, and /etc/kernel/cmdline if it exists.

    Without that file kernel-install gives a new kernel the running kernel's arguments, so it is never created: one with
    nearmetal's arguments alone would lack root=.
    """

    name = "systemd_boot"

    def obstacle(self, host: WritableHost) -> str:
        for path in (boot.entries_folder(host), "/etc"):
            if not host.writable(path):
                return f"{path} is read-only, so kernel arguments can't be set"
        return super().obstacle(host)

    def places(self, host: WritableHost) -> Iterator[Place]:
        folder = boot.entries_folder(host)
        places = [(f"{folder}/{name}", boot_line.ENTRY) for name in boot.entry_names(host, folder)]
        for path, place in [*places, (boot.KERNEL_CMDLINE, boot_line.KERNEL_CMDLINE)]:
            text = text_of(host, path)
            span = boot_line.span(place, text)
            if span is not None:
                yield Place(path, path, span, text[span[0] : span[1]])

    def named(self, host: WritableHost) -> Iterator[Tuple[str, str]]:
        yield boot.entries_folder(host), r".*\.conf"
        yield pattern(boot.KERNEL_CMDLINE)

    def device(self, host: WritableHost) -> str:
        """What systemd-boot puts before the arguments: the initrds, for the kernel's own loader."""
        entries = boot.read_entries(host, self.name)
        return max((" ".join(f"initrd={path}" for path in entry.initrds) for entry in entries), key=len, default="")
