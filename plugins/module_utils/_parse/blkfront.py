# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel log says of Xen's block front end, in all four wordings it has had. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional, Tuple

from .kernel_log import messages

# "blkfront: xvda: barrier or flush: disabled; persistent grants: enabled; indirect descriptors: enabled;"
# AWS's talk of 2017 shows no colon after the disk. Linux names a disk in 32 bytes (DISK_NAME_LEN); "cciss!c0d0" has
# its own sign.
_LINE = (
    r"blkfront: ([A-Za-z][A-Za-z0-9!_-]{0,30}):? (?:barrier or flush|barrier|flush diskcache): (?:enabled|disabled)(.*)"
)
_NO_QUEUES = r"Invalid max_queues \(([0-9]{1,9})\), will use default max: ([0-9]{1,9})"

MAX_DISKS = 4096


class Agreement(NamedTuple):
    """What front end and back end agreed on for one disk; None where the log's line doesn't say."""

    disk: str
    persistent_grants: Optional[bool]
    indirect_descriptors: Optional[bool]  # field since Linux 3.11


def agreements(text: str) -> Dict[str, Agreement]:
    """Disk → the last agreement that the log has of it, in the log's order; at most MAX_DISKS.

    Works on /dev/kmsg records and on the output of dmesg. Raises nothing.
    """
    agreed: Dict[str, Agreement] = {}
    for message in messages(text, "blkfront: "):
        match = re.match(_LINE, message, re.ASCII)
        if match is not None and (match[1] in agreed or len(agreed) < MAX_DISKS):
            agreed[match[1]] = Agreement(
                disk=match[1],
                persistent_grants=_persistent(match[2]),
                indirect_descriptors=_field("indirect descriptors", match[2]),
            )
    return agreed


def refused_queues(text: str) -> Optional[Tuple[int, int]]:
    """The max_queues that the driver refused, and what it uses instead; None when it refused none. Raises nothing."""
    for message in messages(text, "Invalid max_queues ("):
        match = re.search(_NO_QUEUES, message, re.ASCII)
        if match is not None:
            return int(match[1]), int(match[2])
    return None


def _persistent(rest: str) -> Optional[bool]:
    field = _field("persistent grants", rest)
    if field is not None:
        return field
    if rest.strip(" ") == "using persistent grants":
        return True
    # Without persistent grants, Linux 3.8 to 3.10 end the line in a space; older kernels don't know them.
    return False if rest == " " else None


def _field(name: str, rest: str) -> Optional[bool]:
    """Since XSA-403 the last word has no semicolon after `enabled`; a field may be blank (AWS, 2017)."""
    match = re.search(name + r": (enabled|disabled)\b", rest, re.ASCII)
    return match[1] == "enabled" if match is not None else None
