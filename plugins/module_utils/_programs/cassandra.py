# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apache Cassandra. PRIVATE to the collection."""

from __future__ import annotations

from .program import UNLIMITED, Check, Page, Program, Wish

_CHECKS = Page(reference="Cassandra, startup checks", read="2026-11-28", again="2027-11-28")
_PRODUCTION = Page(reference="Cassandra guide, production", read="2026-11-27", again="2027-11-27")
_LIMITS = Page(reference="Cassandra, its checks of limits", read="2026-11-27", again="2027-11-27")
_LOCKED = Page(reference="Cassandra, its locked memory", read="2026-11-28", again="2027-11-28")

CASSANDRA = Program(
    "Apache Cassandra",
    "jvm",
    (
        Wish(
            "memory.max_map_count",
            1048575,
            "it maps its tables file by file, and warns at its start of less",
            _CHECKS,
            checked=True,
        ),
        Wish(
            "block_storage.read_ahead_kb",
            4,
            "on SSDs more brings rows that nobody asked for, up to five times slower; it warns of more than 128",
            _PRODUCTION,
            exact=True,
        ),
    ),
    processes=("cassandra",),
    packages=("cassandra",),
    checks=(
        Check("Max open files", 10000, _LIMITS),
        Check("Max processes", 32768, _LIMITS),
        Check("Max locked memory", UNLIMITED, _LOCKED, "part of its memory may be swapped out, as it warns"),
    ),
    left="no swap; on `st1` and `sc1` volumes it asks for 64 KiB of read-ahead: name them in `block_storage.disks`",
)
