# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How facts read a host: files below one root, never written. PRIVATE to the collection."""

from __future__ import annotations

import os
from typing import Optional

# A file of /proc or /sys that is larger than this is not what we think it is
# (/proc/interrupts of 1,152 CPUs has 2.2 MB).
MAX_BYTES = 16 * 1024 * 1024


class Host:
    """A host as files below `root` ("/" is the machine we run on)."""

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/")

    def real(self, path: str) -> str:
        """The path on this machine of the host's absolute `path`."""
        return self.root + path

    def text(self, path: str) -> Optional[str]:
        """The file's text; None when it can't be read.

        NUL bytes are dropped (recorded sysfs files end in them); bytes that are
        no UTF-8 become U+FFFD, so hostile content can't raise.
        """
        try:
            descriptor = os.open(self.real(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
        except (OSError, ValueError):
            return None
        try:
            chunks = []
            left = MAX_BYTES
            while left > 0:
                chunk = os.read(descriptor, min(left, 131072))
                if not chunk:
                    break
                chunks.append(chunk)
                left -= len(chunk)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return b"".join(chunks).replace(b"\0", b"").decode("utf-8", "replace")

    def names(self, path: str) -> list[str]:
        """The sorted names in a directory; empty when it can't be read."""
        try:
            return sorted(os.listdir(self.real(path)))
        except (OSError, ValueError):
            return []

    def link(self, path: str) -> Optional[str]:
        """The text of a symbolic link; None when there is none."""
        try:
            return os.readlink(self.real(path))
        except (OSError, ValueError):
            return None

    def exists(self, path: str) -> bool:
        """Whether something (a dangling link too) has this name."""
        return os.path.lexists(self.real(path))
