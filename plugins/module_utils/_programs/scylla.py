# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ScyllaDB. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_FILES = Page(reference="ScyllaDB, its files of sysctl.d", read="2026-11-28", again="2027-11-28")

SCYLLA = Program(
    "ScyllaDB",
    "nvme_storage",
    (
        Wish(
            "memory.swappiness",
            1,
            "it uses no file cache, so that goes first; with 0 the kernel would kill it before it swaps",
            _FILES,
            exact=True,
        ),
        Wish("memory.vfs_cache_pressure", 2000, "it opens each of its files once", _FILES),
        Wish("memory.aio_max_nr", 30000000, "each of its threads prepares requests to disks", _FILES),
    ),
    processes=("scylla",),
    packages=("scylla-server", "scylla"),
    left="what its own perftune sets of interrupts, disks and `tcp_mem`: where its service starts that"
    " (`SET_NIC_AND_DISKS=yes`), nearmetal names it as the owner and leaves them alone",
)
