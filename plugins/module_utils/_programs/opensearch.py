# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenSearch. PRIVATE to the collection."""

from __future__ import annotations

from .elasticsearch import bootstrap_checks
from .program import Page, Program, Wish

_PAGE = Page(reference="OpenSearch guide", read="2026-11-27", again="2027-11-27")
_CHECKS = Page(reference="OpenSearch, bootstrap checks", read="2026-11-27", again="2027-11-27")

PROGRAM = Program(
    "OpenSearch",
    "jvm",
    (
        Wish(
            "memory.max_map_count",
            262144,
            "indexes are mapped file by file, and with too few areas it doesn't start",
            _PAGE,
        ),
    ),
    processes=("opensearch",),
    packages=("opensearch",),
    checks=bootstrap_checks(_CHECKS),
    left="no swap, or a locked heap; 65,536 open files",
)
