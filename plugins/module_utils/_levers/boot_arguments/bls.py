# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""RHEL 8 to 10, Amazon Linux 2023: entries of the Boot Loader Specification. PRIVATE to the collection.

We write the lines that grubby would write, but don't run grubby: it keeps one value
per argument, removes an argument from every entry, whoever set it, makes
/etc/kernel/cmdline out of any entry, and syncs nothing. grub.cfg, which is a stub on
EFI partitions, is never written.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Mapping, Tuple

from ..._error import NearmetalError
from ..._facts import boot
from ..._host.host import WritableHost
from ..._parse import boot_line, boot_record, cmdline, shell_defaults
from ..commands import quoted
from .edited import Edited, Place, Texts, pattern, text_of

_VARIABLE = "GRUB_CMDLINE_LINUX"  # of /etc/default/grub, for kernels whose entries grub2-mkconfig writes


class Bls(Edited):
    """One line in each entry's file, and in those for kernels to come."""

    name = "bls"

    def obstacle(self, host: WritableHost) -> str:
        for path in (boot.ENTRIES, "/etc"):
            if not host.writable(path):
                return f"{path} is read-only, so kernel arguments can't be set"
        unread = super().obstacle(host)
        if unread:
            return unread
        # What somebody wrote around nearmetal's arguments must not keep them from being taken back.
        assignment = shell_defaults.find(text_of(host, boot.DEFAULTS), _VARIABLE)
        if not assignment.obstacle or host.exists(boot_record.PATH):
            return ""
        return (
            f"{boot.DEFAULTS}, {assignment.obstacle}, which nearmetal doesn't edit:"
            f' write {_VARIABLE}="…" on a line of its own, as the last line that names it, and run again'
        )

    def commands(self, host: WritableHost, before: str, after: str) -> List[str]:
        removed = [f"grubby --update-kernel=ALL --remove-args={quoted(before)}"] if before else []
        return [*removed, f"grubby --update-kernel=ALL --args={quoted(after)}"] if after else removed

    def places(self, host: WritableHost) -> Iterator[Place]:
        places = [(boot.environment_path(host), boot_line.ENVIRONMENT)]
        places += [(f"{boot.ENTRIES}/{name}", boot_line.ENTRY) for name in boot.entry_names(host)]
        places.append((boot.KERNEL_CMDLINE, boot_line.KERNEL_CMDLINE))
        spans = [(path, boot_line.span(place, text_of(host, path))) for path, place in places]
        spans.append((boot.DEFAULTS, shell_defaults.find(text_of(host, boot.DEFAULTS), _VARIABLE).span))
        for path, span in spans:
            if span is not None:
                yield Place(path, path, span, text_of(host, path)[span[0] : span[1]])

    def named(self, host: WritableHost) -> Iterator[Tuple[str, str]]:
        yield boot.ENTRIES, r".*\.conf"
        for path in (boot.environment_path(host), boot.KERNEL_CMDLINE, boot.DEFAULTS):
            yield pattern(path)

    def variables(self, host: WritableHost, texts: Texts) -> Mapping[str, str]:
        return boot.entry_variables(host, texts)

    def fit(self, path: str, old: str, new: str) -> str:
        """The text at the size of GRUB's environment block, which never changes: # fills it up."""
        if not path.endswith("/grubenv"):
            return new
        bare = new.rstrip("#")
        if len(bare.encode("utf-8", "surrogateescape")) > len(old.encode("utf-8", "surrogateescape")):
            raise NearmetalError(
                f"{path} has no room left for nearmetal's arguments: remove some of your own from kernelopts"
            )
        return bare + "#" * (len(old) - len(bare))

    def device(self, host: WritableHost) -> str:
        """The disk that GRUB puts before the kernel's name, such as (hd0,gpt2), at its longest."""
        images = cmdline.values(cmdline.tokens(host.text("/proc/cmdline", cmdline.LONGEST) or ""), "BOOT_IMAGE")
        match = re.match(r"\([^)]*\)", (images[-1] if images else None) or "")
        return max("(hd0,gpt128)", match.group() if match else "", key=len)
