# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KeyDB. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGE = Page(reference="KeyDB server, checks at start", read="2026-11-27", again="2027-11-27")

PROGRAM = Program(
    "KeyDB",
    "in_memory_database",
    (
        Wish("hugepages.thp", "madvise", "it warns at its start of always", _PAGE, also=("never",)),
        Wish(
            "memory.overcommit",
            "always",
            "it warns at its start of the heuristic, as the fork that saves may be refused",
            _PAGE,
        ),
        Wish(
            "network_stack.somaxconn",
            511,
            "it warns at its start of a limit below its own backlog, which has 511 places",
            _PAGE,
        ),
    ),
    processes=("keydb-server",),
    packages=("keydb-server", "keydb"),
)
