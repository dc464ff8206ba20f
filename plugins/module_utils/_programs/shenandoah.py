# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shenandoah, Java's other concurrent collector. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGE = Page(reference="Red Hat, Shenandoah guide", read="2026-11-27", again="2027-11-27")

PROGRAM = Program(
    "Shenandoah, Java's other concurrent collector",
    "jvm",
    (
        Wish("hugepages.thp", "madvise", "its heap asks for huge pages by -XX:+UseTransparentHugePages", _PAGE),
        Wish("hugepages.thp_defrag", "madvise", "only its heap waits for huge pages, at its start alone", _PAGE),
    ),
)
