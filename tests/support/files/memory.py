# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory files of a host: 8 GiB per node, 7 GiB of them available, nothing reserved."""

from __future__ import annotations

from typing import Iterator, Tuple

from tests.support.files.sysctls import sysctl_files

THP = "/sys/kernel/mm/transparent_hugepage"
SIZES = (2048, 1048576)
GIB = 1048576
MOUNTS = "/dev/vda1 / ext4 rw,relatime 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n"


def memory_files(nodes: int) -> Iterator[Tuple[str, str]]:
    """Path → text."""
    yield (
        "/proc/meminfo",
        (
            f"MemTotal:       {8 * GIB * nodes} kB\nMemFree:        {6 * GIB * nodes} kB\n"
            f"MemAvailable:   {7 * GIB * nodes} kB\nHugepagesize:       2048 kB\n"
            f"CommitLimit:    {4 * GIB * nodes} kB\nCommitted_AS:   {GIB * nodes} kB\n"
        ),
    )
    yield f"{THP}/enabled", "always [madvise] never\n"
    yield f"{THP}/defrag", "always defer defer+madvise [madvise] never\n"
    yield f"{THP}/shmem_enabled", "always within_size advise [never] deny force\n"
    yield f"{THP}/khugepaged/defrag", "1\n"
    yield f"{THP}/khugepaged/max_ptes_none", "511\n"
    yield f"{THP}/hpage_pmd_size", "2097152\n"
    for size in (16, 64):
        yield f"{THP}/hugepages-{size}kB/enabled", "always inherit madvise [never]\n"
    yield f"{THP}/hugepages-2048kB/enabled", "always [inherit] madvise never\n"
    yield "/proc/sys/vm/compact_memory", ""
    yield from sysctl_files("fs", "kernel", "vm").items()
    yield "/sys/kernel/mm/ksm/run", "0\n"
    yield "/proc/1/mounts", MOUNTS
    for size in SIZES:
        for name in ("nr_hugepages", "surplus_hugepages"):
            yield f"/sys/kernel/mm/hugepages/hugepages-{size}kB/{name}", "0\n"
            for node in range(nodes):
                yield f"/sys/devices/system/node/node{node}/hugepages/hugepages-{size}kB/{name}", "0\n"
