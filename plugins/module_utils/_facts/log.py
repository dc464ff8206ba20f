# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel log since boot, from the ring or a file. PRIVATE to the collection."""

from __future__ import annotations

from typing import NamedTuple, Optional

from .._parse import kernel_log
from .host import Host

# The ring of the largest hosts has 8 MiB; the log may be made larger by whoever can write to it.
LONGEST = 8 * 1024 * 1024


class KernelLog(NamedTuple):
    """The messages of the kernel since boot."""

    text: str
    cut: bool  # the log is longer than LONGEST, and its end wasn't read


def since_boot(host: Host) -> Optional[KernelLog]:
    """The kernel log since boot, as far as it is still there; None when neither place can be read.

    The ring may have lost the boot's beginning; some distributions keep that in /var/log/dmesg.
    """
    ring = host.records("/dev/kmsg", LONGEST)
    whole = ring is not None and kernel_log.first_sequence(ring) == 0
    saved = None if whole else host.text("/var/log/dmesg", LONGEST)
    texts = [text for text in (saved, ring) if text is not None]
    return KernelLog("\n".join(texts), any(len(text.encode()) >= LONGEST for text in texts)) if texts else None
