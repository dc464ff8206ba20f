# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of CPUs or nodes as the kernel writes them: "0-3,8". PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Iterable, List, Set, Tuple

from .._error import NearmetalError

# The kernel's largest CONFIG_NR_CPUS is 8192. Room above it, but a hostile "0-999999999" must not fill the memory.
MAX_ID = 65535

# One range. The stride form "0-31:1/4" is what the kernel accepts, never what it prints.
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)


def parse(text: str) -> Tuple[int, ...]:
    """The ids of a kernel list, ascending and without duplicates; an empty text has none.

    Raises NearmetalError when the text is no such list.
    """
    ids: Set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise NearmetalError("{!r} isn't a list of CPUs or nodes such as 0-3,8.".format(text[:80]))
        first = int(match.group(1))
        last = int(match.group(2) or first)
        if last < first or last > MAX_ID:
            raise NearmetalError(
                "{!r} isn't a list of CPUs or nodes: {} is not a range from 0 to {}.".format(text[:80], part, MAX_ID)
            )
        ids.update(range(first, last + 1))
    return tuple(sorted(ids))


def render(ids: Iterable[int]) -> str:
    """The kernel list of these ids: ascending, runs as ranges ("0-3,8"); "" for none."""
    runs: List[List[int]] = []
    for number in sorted(set(ids)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else "{}-{}".format(first, last) for first, last in runs)
