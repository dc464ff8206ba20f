# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/self/mountinfo as text to values: which device is mounted where. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Tuple

_OCTAL = re.compile(r"\\([0-3][0-7]{2})", re.ASCII)
_DEVICE = re.compile(r"[0-9]{1,4}:[0-9]{1,8}", re.ASCII)


class Mount(NamedTuple):
    """One mounted file system."""

    device: str  # major:minor; 0:… for a file system that has no block device of its own
    point: str
    kind: str  # ext4, xfs, btrfs
    source: str  # /dev/nvme1n1p1, /dev/mapper/vg-lv, or the file system's own name for it
    discards: bool = False  # it tells its disk of each block that it frees


def parse(text: str) -> Tuple[Mount, ...]:
    """The mounts in their order, a later one over an earlier one; lines of another form are left out."""
    mounts = []
    for line in text.splitlines():
        head, separator, tail = line.partition(" - ")
        words, rest = head.split(" "), tail.split(" ")
        if separator and len(words) >= 6 and len(rest) >= 2 and _DEVICE.fullmatch(words[2]):
            mounts.append(Mount(words[2], _plain(words[4]), rest[0], _plain(rest[1]), _discards(rest)))
    return tuple(mounts)


def _discards(rest: List[str]) -> bool:
    """btrfs has discard=async, the others discard."""
    return any(option.partition("=")[0] == "discard" for option in "".join(rest[2:3]).split(","))


def _plain(text: str) -> str:
    """A path without the escapes that the kernel writes for spaces, tabs, line ends and backslashes."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
