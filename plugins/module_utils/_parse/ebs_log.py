# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The statistics of an EBS volume, an NVMe log page of Amazon's own. PRIVATE to the collection.

The layout is that of nvme-cli's amzn plugin and of amazon-ec2-utils' ebsnvme: a magic
number, six totals, then microseconds in which a limit held I/O back. Little-endian.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Optional

PAGE, SIZE = 0xD0, 4096  # the identifier of the log page, its length in bytes
_MAGIC = 0x3C23B510
_HEAD = struct.Struct("<I4x6Q4Q")


class Exceeded(NamedTuple):
    """Microseconds since the volume was attached in which a limit held its I/O back."""

    volume_iops_us: int
    volume_throughput_us: int
    instance_iops_us: int
    instance_throughput_us: int


def parse(page: bytes) -> Optional[Exceeded]:
    """The counters; None for a page that isn't EBS's or is too short."""
    if len(page) < _HEAD.size:
        return None
    magic, *numbers = _HEAD.unpack_from(page)
    return Exceeded(*numbers[6:]) if magic == _MAGIC else None
