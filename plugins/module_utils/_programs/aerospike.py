# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Aerospike. PRIVATE to the collection."""

from __future__ import annotations

from .program import Check, Page, Program, Wish

_CHECKS = Page(reference="Aerospike server, checks at start", read="2026-11-28", again="2027-11-28")

AEROSPIKE = Program(
    "Aerospike",
    "in_memory_database",
    (
        Wish(
            "memory.swappiness",
            0,
            "it checks this at its start, and with enforce-best-practices it doesn't start with another number",
            _CHECKS,
            checked=True,
        ),
        Wish("memory.max_map_count", 262144, "it checks this from 7.2.0.12 and 8.0.0.10 on", _CHECKS, checked=True),
        Wish("numa.zone_reclaim_mode", 0, "no node may drop file cache for itself", _CHECKS, checked=True),
        Wish("network_stack.somaxconn", 4096, "its own listeners have a backlog of 4096", _CHECKS, checked=True),
        Wish("hugepages.thp", "never", "it warns at its start of always", _CHECKS, also=("madvise",), checked=True),
    ),
    processes=("asd",),
    packages=("aerospike-server-enterprise", "aerospike-server-community", "aerospike-server-federal"),
    checks=(Check("vm.min_free_kbytes", 102400, _CHECKS, "it warns at its start, as it would of too little for more"),),
    left="`memory.min_free_kbytes`: 100 MiB and its largest allocation, which only its configuration knows. Where you"
    " set `hugepages.thp` to `madvise`, it asks for `madvise` or `never` as `thp_defrag` too",
)
