# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redis, and what its forks ask of their hosts too. PRIVATE to the collection."""

from __future__ import annotations

from typing import Tuple

from .program import Check, Page, Program, Wish

_SERVER = Page(reference="Redis server, checks at start", read="2026-11-27", again="2027-11-27")


def wishes_of_forks(page: Page) -> Tuple[Wish, ...]:
    """What Redis and its forks warn of at their start; `page` is that of the fork."""
    return (
        Wish(
            "hugepages.thp",
            "never",
            "it warns at its start of always, as a fork that saves copies whole huge pages",
            page,
            also=("madvise",),
            checked=True,
        ),
        Wish(
            "memory.overcommit",
            "always",
            "it warns at its start of another value, as the fork that saves may be refused",
            page,
            checked=True,
        ),
        Wish(
            "network_stack.somaxconn",
            511,
            "its own backlog has 511 places, and it warns at its start of a smaller limit",
            page,
            checked=True,
        ),
    )


PROGRAM = Program(
    "Redis",
    "in_memory_database",
    wishes_of_forks(Page(reference="Redis guide", read="2026-11-27", again="2027-11-27")),
    processes=("redis-server",),
    packages=("redis-server", "redis", "redis7", "redis6"),
    checks=(Check("Max open files", 10032, _SERVER, "it takes fewer than 10,000 clients"),),
    left="swap that is as large as the memory, so that a shortage is slow before it kills the server",
)
