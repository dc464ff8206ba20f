# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""KeyDB. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program
from .redis import wishes_of_forks

PROGRAM = Program(
    "KeyDB",
    "in_memory_database",
    wishes_of_forks(Page(reference="KeyDB server, checks at start", read="2026-11-27", again="2027-11-27")),
    processes=("keydb-server",),
    packages=("keydb-server", "keydb"),
)
