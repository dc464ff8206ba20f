# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apache Hadoop, and Spark, of which Cloudera asks the same. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGES = Page(reference="Cloudera guide, huge pages", read="2026-11-27", again="2027-11-27")
_SWAPPINESS = Page(reference="Cloudera guide, swappiness", read="2026-11-27", again="2027-11-27")

HADOOP = Program(
    "Apache Hadoop",
    "analytics",
    (
        Wish("hugepages.thp", "never", "jobs lose much CPU time of the system to huge pages", _PAGES),
        Wish("hugepages.thp_defrag", "never", "its guide switches both off", _PAGES),
        Wish("memory.swappiness", 1, "a service in swap answers late, and counts as dead", _SWAPPINESS),
    ),
    processes=("hadoop",),
)
SPARK = HADOOP._replace(title="Apache Spark", processes=("spark",))
