# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks of CPUs as the kernel writes them: hexadecimal words of 32 bits. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Iterable, List, Tuple

from .._error import NearmetalError
from .cpulist import MAX_ID

_MASK = re.compile(r"(?:0[xX])?((?:[0-9a-fA-F]{0,8},)*[0-9a-fA-F]{0,8})", re.ASCII)


def parse(text: str) -> Tuple[int, ...]:
    """The CPUs of a mask, ascending; the rightmost word holds CPUs 0 to 31.

    A word may be shorter than 8 digits and, as in ",,1", empty (smp_affinity of
    some kernels). Raises NearmetalError when the text is no such mask.
    """
    match = _MASK.fullmatch(text.strip())
    words = match.group(1).split(",") if match is not None else []
    if not any(words) or len(words) * 32 > MAX_ID + 1:
        raise NearmetalError("{!r} isn't a mask of CPUs such as 00000000,000000ff.".format(text[:80]))
    cpus: List[int] = []
    for position, word in enumerate(reversed(words)):
        bits = int(word or "0", 16)
        if bits:
            cpus.extend(position * 32 + bit for bit in range(32) if bits >> bit & 1)
    return tuple(cpus)


def render(cpus: Iterable[int], width: int = 0) -> str:
    """The mask of these CPUs: words of 8 digits, as many as CPUs and `width` (a number of CPUs) need.

    The kernel writes its full width: pass the number of possible CPUs to get the same text.
    """
    bits = 0
    for cpu in cpus:
        bits |= 1 << cpu
    words = max((bits.bit_length() + 31) // 32, (width + 31) // 32, 1)
    digits = "{:0{}x}".format(bits, words * 8)
    return ",".join(digits[start : start + 8] for start in range(0, len(digits), 8))
