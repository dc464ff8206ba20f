# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZGC, Java's concurrent collector. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGE = Page(reference="OpenJDK, ZGC and huge pages", read="2026-11-27", again="2027-11-27")

PROGRAM = Program(
    "ZGC, Java's concurrent collector",
    "jvm",
    (
        Wish(
            "hugepages.thp",
            "madvise",
            "its heap asks for huge pages by -XX:+UseTransparentHugePages",
            _PAGE,
            also=("always",),
        ),
        Wish("hugepages.thp_shmem", "advise", "its heap is shared memory, which has a switch of its own", _PAGE),
    ),
)
