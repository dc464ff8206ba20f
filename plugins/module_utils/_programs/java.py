# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Java. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGE = Page(reference="Graviton guide, Java", read="2026-11-27", again="2027-11-27")

PROGRAM = Program(
    "Java",
    "jvm",
    (
        Wish(
            "hugepages.thp",
            "madvise",
            "with always each thread's stack of 2 MiB is one huge page from its start",
            _PAGE,
            also=("never",),
            architecture="aarch64",
        ),
    ),
    processes=("java",),
)
