# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""MongoDB. PRIVATE to the collection."""

from __future__ import annotations

from .program import Check, Page, Program, Wish

_PAGE = Page(reference="MongoDB guide, TCMalloc", read="2026-11-27", again="2027-11-27")
_CHECKS = Page(reference="MongoDB server, checks at start", read="2026-11-28", again="2027-11-28")

MONGODB = Program(
    "MongoDB",
    "nvme_storage",
    (
        Wish(
            "hugepages.thp",
            "never",
            "its older allocator does worse with huge pages, and it warns at its start of always",
            _CHECKS,
            also=("madvise",),
            before="8.0",
            checked=True,
        ),
        Wish(
            "hugepages.thp",
            "always",
            "its new allocator is made for huge pages, and it warns at its start of anything else",
            _PAGE,
            since="8.0",
            checked=True,
        ),
        Wish("hugepages.thp_defrag", "defer+madvise", "it warns of another", _PAGE, since="8.0", checked=True),
        Wish(
            "memory.overcommit",
            "heuristic",
            "it warns at its start of overcommit that is off",
            _CHECKS,
            also=("always",),
            before="8.0",
            checked=True,
        ),
        Wish("memory.overcommit", "always", "its guide sets it together with always", _PAGE, since="8.0"),
        Wish(
            "hugepages.max_ptes_none", 0, "it warns of more, which is unused memory", _PAGE, since="8.0", checked=True
        ),
        Wish("memory.swappiness", 1, "it warns of more, with or without swap", _CHECKS, since="8.0", checked=True),
        Wish("numa.zone_reclaim_mode", 0, "it warns of another value", _CHECKS, checked=True),
        Wish(
            "memory.max_map_count",
            102400,
            "two areas for each connection: four fifths of the 64,000 files of its unit; it warns of fewer",
            _CHECKS,
            checked=True,
        ),
    ),
    processes=("mongod",),
    packages=("mongodb-org-server", "mongodb-enterprise-server", "mongodb-server-core", "mongodb-server"),
    checks=(
        Check("Max open files", 64000, _CHECKS),
        Check("Max processes", 32000, _CHECKS, "its older versions warn at their start"),
        Check("Max locked memory", 65536, _CHECKS),
    ),
    left="`numactl --interleave=all` on several nodes, XFS, `GLIBC_TUNABLES=glibc.pthread.rseq=0` from version 8, and a"
    " larger `memory.max_map_count` where its unit has more than 64,000 open files: it warns of each",
)
