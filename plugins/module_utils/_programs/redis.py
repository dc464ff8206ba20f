# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redis and its forks. PRIVATE to the collection."""

from __future__ import annotations

from typing import Tuple

from .program import Check, Page, Program, Wish

_SERVER = Page(reference="Redis server, checks at start", read="2026-11-27", again="2027-11-27")


def _warned_of(page: Page, overcommit: Tuple[str, ...] = ()) -> Tuple[Wish, ...]:
    """What Redis and its forks warn of; `page` is that of the fork, which doesn't warn of `overcommit` either."""
    return (
        Wish(
            "hugepages.thp",
            "never",
            "it warns of always at its start or by --check-system, as a fork that saves copies whole huge pages",
            page,
            also=("madvise",),
            checked=True,
        ),
        Wish(
            "memory.overcommit",
            "always",
            "it warns at its start, as with heuristic the fork that saves may be refused",
            page,
            also=overcommit,
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


_FILES = (Check("Max open files", 10032, _SERVER, "it takes fewer than 10,000 clients"),)
_CLOCK = "a clock other than `xen` and `hpet`, of which it warns from version 7: `clocksource` chooses one"

REDIS = Program(
    "Redis",
    "in_memory_database",
    _warned_of(Page(reference="Redis guide", read="2026-11-27", again="2027-11-27")),
    processes=("redis-server",),
    packages=("redis-server", "redis", "redis7", "redis6"),
    checks=_FILES,
    left=f"swap that is as large as the memory, so that a shortage is slow before it kills the server; {_CLOCK}",
)

KEYDB = Program(
    "KeyDB",
    "in_memory_database",
    _warned_of(Page(reference="KeyDB server, checks at start", read="2026-11-28", again="2027-11-28"), ("never",)),
    processes=("keydb-server",),
    packages=("keydb-server", "keydb"),
    checks=_FILES,
)

VALKEY = Program(
    "Valkey",
    "in_memory_database",
    _warned_of(Page(reference="Valkey guide", read="2026-11-27", again="2027-11-27")),
    processes=("valkey-server",),
    packages=("valkey-server", "valkey"),
    checks=_FILES,
    left=f"swap that is as large as the memory; {_CLOCK}",
)
