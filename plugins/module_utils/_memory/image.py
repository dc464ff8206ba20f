# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of a host that an image is made of, which has no runtime values. PRIVATE to the collection."""

from __future__ import annotations

from .._facts.state_files import BAKED
from .._host import store
from .._host.host import WritableHost
from .journal import ASIDE, PATH, Journal
from .journal_file import read, write


class ImageJournal(Journal):
    """The entries of files, without instance and boot; those of runtime values are kept aside for this host."""

    def __init__(self, host: WritableHost) -> None:
        super().__init__(host, None)

    def set_aside(self) -> None:
        """Remove everything from the journal on disk that holds for this host or its present boot only."""
        store.replace_file(self._host, BAKED, b"", mode=0o600, folder_mode=0o755)
        if self._aside.entries:
            write(self._host, ASIDE, self._aside, folder_mode=0o755)
        self._save(self._entries)

    def _reunited(self) -> None:
        return

    def _load_until_boot(self) -> None:
        return

    def _load(self) -> None:
        kept = read(self._host, PATH)
        self._unreadable = kept.unreadable
        self._aside = kept._replace(entries=kept.of("runtime"), unreadable=())
        self._entries = {entry.key: entry._replace(boot_id="") for entry in kept.of("boot")}
