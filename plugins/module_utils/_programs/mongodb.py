# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""MongoDB. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGE = Page(reference="MongoDB guide, TCMalloc", read="2026-11-27", again="2027-11-27")

PROGRAM = Program(
    "MongoDB",
    "nvme_storage",
    (
        Wish(
            "hugepages.thp",
            "never",
            "its older allocator does worse with huge pages, and it warns at its start",
            _PAGE,
            before="8.0",
        ),
        Wish(
            "hugepages.thp",
            "always",
            "its new allocator is made for huge pages, and it warns at its start of anything else",
            _PAGE,
            since="8.0",
        ),
        Wish("hugepages.thp_defrag", "defer+madvise", "its guide sets it together with always", _PAGE, since="8.0"),
        Wish("memory.overcommit", "always", "its guide sets it together with always", _PAGE, since="8.0"),
        Wish("hugepages.max_ptes_none", 0, "no huge page brings it memory that it doesn't use", _PAGE, since="8.0"),
    ),
    processes=("mongod",),
    packages=("mongodb-org-server", "mongodb-enterprise-server", "mongodb-server-core", "mongodb-server"),
)
