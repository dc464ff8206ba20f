# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel releases as numbers. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Tuple

from .._error import NearmetalError

_RELEASE = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:-([0-9]{1,9}(?:\.[0-9]{1,9})*))?", re.ASCII)


def parse(text: str) -> Tuple[Tuple[int, int, int], Tuple[int, ...]]:
    """The upstream version and the distribution's build numbers of a release.

    "4.18.0-240.1.1.el8_3.x86_64" is ((4, 18, 0), (240, 1, 1)); "6.12-rc1" is ((6, 12, 0), ()).
    Raises NearmetalError when the text doesn't begin with a version.
    """
    match = _RELEASE.match(text.strip())
    if match is None:
        raise NearmetalError("{!r} isn't a kernel release such as 6.1.0-18-amd64.".format(text[:80]))
    major, minor, patch, build = match.groups()
    numbers = tuple(int(number) for number in build.split(".")) if build else ()
    return (int(major), int(minor), int(patch or "0")), numbers
