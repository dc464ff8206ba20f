# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Java and its collectors. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_GRAVITON = Page(reference="Graviton guide, Java", read="2026-11-27", again="2027-11-27")
_ZGC = Page(reference="OpenJDK, ZGC and huge pages", read="2026-11-27", again="2027-11-27")
_SHENANDOAH = Page(reference="Red Hat, Shenandoah guide", read="2026-11-27", again="2027-11-27")

JAVA = Program(
    "Java",
    "jvm",
    (
        Wish(
            "hugepages.thp",
            "madvise",
            "with always each thread's stack of 2 MiB is one huge page from its start",
            _GRAVITON,
            also=("never",),
            architecture="aarch64",
        ),
    ),
    processes=("java",),
)

SHENANDOAH = Program(
    "Shenandoah",
    "jvm",
    (
        Wish(
            "hugepages.thp",
            "madvise",
            "its heap asks for huge pages by -XX:+UseTransparentHugePages, of which Java warns where they are off",
            _SHENANDOAH,
            checked=True,
        ),
        Wish("hugepages.thp_defrag", "madvise", "only its heap waits for huge pages, at its start alone", _SHENANDOAH),
    ),
    option="-XX:+UseShenandoahGC",
)

ZGC = Program(
    "ZGC",
    "jvm",
    (
        Wish(
            "hugepages.thp",
            "madvise",
            "its heap asks for huge pages by -XX:+UseTransparentHugePages, of which Java warns where they are off",
            _ZGC,
            also=("always",),
            checked=True,
        ),
        Wish("hugepages.thp_shmem", "advise", "its heap is shared memory, which has a switch of its own", _ZGC),
    ),
    option="-XX:+UseZGC",
)
