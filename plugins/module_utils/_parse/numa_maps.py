# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory policy in /proc/PID/numa_maps, which each line repeats. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Optional, Tuple

from . import cpulist

_LINE = r"[0-9a-f]{1,16} (default|local|prefer|bind|interleave)(?:=[a-z|]{1,32})?(?::([0-9,-]{1,256}))?(?: .*)?"


def policy(text: str) -> Optional[Tuple[str, Tuple[int, ...]]]:
    """The policy's word and its nodes, from the start of a file; None for a text of another form.

    Raises NearmetalError for nodes that aren't a kernel list.
    """
    match = re.fullmatch(_LINE, text, re.ASCII | re.DOTALL)
    return (match.group(1), cpulist.parse(match.group(2) or "")) if match is not None else None
