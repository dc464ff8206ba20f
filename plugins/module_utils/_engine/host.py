# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host as the engine sees it: what facts read, and the few ways to write. PRIVATE to the collection."""

from __future__ import annotations

import os

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host


class WritableHost(Host):
    """Adds the calls that change a host. Only the engine holds one."""

    def write_value(self, path: str, text: str) -> None:
        """Write `text` to an existing kernel file in one write(2).

        Raises OSError as the kernel answers; a short write is EIO, because a
        kernel file has taken a part of the value then.
        """
        data = text.encode()
        descriptor = os.open(self.real(path), os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(5, "the kernel took only a part of the value", path)
        finally:
            os.close(descriptor)

    def writable(self, path: str) -> bool:
        """Whether the file could be opened for writing; False on a read-only mount."""
        return os.access(self.real(path), os.W_OK)

    def is_root(self) -> bool:
        """Whether this process may change the host."""
        return os.geteuid() == 0

    def boot_id(self) -> str:
        """The kernel's id of this boot; empty where /proc lacks it."""
        return (self.text("/proc/sys/kernel/random/boot_id") or "").strip()
