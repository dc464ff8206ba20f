# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redis. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGE = Page(reference="Redis guide", read="2026-11-27", again="2027-11-27")

PROGRAM = Program(
    "Redis",
    "in_memory_database",
    (
        Wish(
            "hugepages.thp",
            "never",
            "it warns at its start of always, as a fork that saves copies whole huge pages; since 6.2 it opts "
            "itself out",
            _PAGE,
            also=("madvise",),
        ),
        Wish(
            "memory.overcommit",
            "always",
            "it warns at its start of another value, as the fork that saves may be refused",
            _PAGE,
        ),
        Wish(
            "network_stack.somaxconn",
            511,
            "its own backlog has 511 places, and it warns at its start of a smaller limit",
            _PAGE,
        ),
    ),
    processes=("redis-server",),
    packages=("redis-server", "redis", "redis7", "redis6"),
    left="swap that is as large as the memory, so that a shortage is slow before it kills the server",
)
