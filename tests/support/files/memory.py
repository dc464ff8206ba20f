# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory files of a host: 8 GiB per node, 7 GiB of them available, nothing reserved."""

from __future__ import annotations

from typing import Iterator, Tuple

THP = "/sys/kernel/mm/transparent_hugepage"
SIZES = (2048, 1048576)
GIB = 1048576
# As the kernel boots with them.
PARAMETERS = {
    "vm/swappiness": 60,
    "vm/dirty_ratio": 20,
    "vm/dirty_bytes": 0,
    "vm/dirty_background_ratio": 10,
    "vm/dirty_background_bytes": 0,
    "vm/overcommit_memory": 0,
    "vm/max_map_count": 65530,
    "vm/min_free_kbytes": 67584,
    "fs/aio-max-nr": 65536,
}
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
    yield f"{THP}/hpage_pmd_size", "2097152\n"
    yield "/proc/sys/vm/compact_memory", ""
    yield "/proc/sys/vm/zone_reclaim_mode", "0\n"
    yield "/proc/sys/vm/hugetlb_shm_group", "0\n"
    for path, value in PARAMETERS.items():
        yield f"/proc/sys/{path}", f"{value}\n"
    yield "/sys/kernel/mm/ksm/run", "0\n"
    yield "/proc/1/mounts", MOUNTS
    yield "/proc/sys/kernel/numa_balancing", "1\n"
    for size in SIZES:
        for name in ("nr_hugepages", "surplus_hugepages"):
            yield f"/sys/kernel/mm/hugepages/hugepages-{size}kB/{name}", "0\n"
            for node in range(nodes):
                yield f"/sys/devices/system/node/node{node}/hugepages/hugepages-{size}kB/{name}", "0\n"
