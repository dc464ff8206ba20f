# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/net/softnet_stat: how each CPU received packets. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

# One line per CPU in hexadecimal: packets, dropped, squeezed, … (softnet_seq_show() in net/core/net-procfs.c).
_LINE = re.compile(r"([0-9a-f]{8}) ([0-9a-f]{8}) ([0-9a-f]{8})(?: [0-9a-f]{1,16}){0,20} *", re.ASCII)


class Softnet(NamedTuple):
    """Counts of all CPUs since boot. The first column is left out: on a busy CPU its 32 bits overflow in an hour."""

    dropped: int  # packets for which a CPU's queue (net.core.netdev_max_backlog) had no room
    squeezed: int  # rounds that ended at their limit (net.core.netdev_budget) with packets left


def parse(text: str) -> Optional[Softnet]:
    """The counts of all CPUs; None when no line has this form."""
    matches = [match for match in map(_LINE.fullmatch, text.splitlines()) if match is not None]
    if not matches:
        return None
    return Softnet(sum(int(match[2], 16) for match in matches), sum(int(match[3], 16) for match in matches))
