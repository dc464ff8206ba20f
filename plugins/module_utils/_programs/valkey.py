# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Valkey. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program
from .redis import wishes_of_forks

PROGRAM = Program(
    "Valkey",
    "in_memory_database",
    wishes_of_forks(Page(reference="Valkey guide", read="2026-11-27", again="2027-11-27")),
    processes=("valkey-server",),
    packages=("valkey-server", "valkey"),
    left="swap that is as large as the memory",
)
