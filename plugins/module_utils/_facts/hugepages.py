# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about huge pages, transparent and reserved. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Iterator, Mapping, NamedTuple, Optional, Tuple

from .._parse import cmdline, kernel_counters
from . import hugetlbfs, sys_files
from .host import Host
from .topology import NODE, node_names

RESERVED = "/sys/kernel/mm/hugepages"

SIZE = r"([0-9]{2,9})kB"
PLACE = r"host|node[0-9]{1,5}"
_LEAST_MEMORY = 512 * 1024 * 1024  # bytes
_FOLDER = re.compile(r"hugepages-([0-9]{2,9}kB)", re.ASCII)
_RELEASE = re.compile(r"[A-Za-z0-9._+-]{1,64}", re.ASCII)
_CONFIGURED = re.compile(r"^CONFIG_TRANSPARENT_HUGEPAGE_(ALWAYS|MADVISE|NEVER)=y$", re.ASCII | re.MULTILINE)
# glibc had its version in the file's name up to 2.33.
_OLD_LIBC = r"libc-2\.[0-9]{1,2}\.so"
_LIBRARIES = ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64")
_ENVIRONMENTS = ("/etc/environment", "/etc/default", "/etc/sysconfig", "/etc/systemd/system")


class HugepageFacts(NamedTuple):
    """Huge pages in the kernel. None is what it doesn't have."""

    folder: Optional[str]  # of transparent huge pages
    thp: Optional[str]  # always | madvise | never
    thp_defrag: Optional[str]
    thp_shmem: Optional[str]
    khugepaged_defrag: Optional[str]  # enabled | disabled
    max_ptes_none: Optional[str]  # a number
    offered: Mapping[str, Tuple[str, ...]]  # thp, thp_defrag, thp_shmem → the words that the kernel takes
    thp_sizes: Mapping[str, str]  # smaller size such as 64kB → always | inherit | madvise | never
    thp_size: Optional[int]  # bytes; 512 MiB on a kernel with pages of 64 KiB
    pages: Mapping[str, Mapping[str, int]]  # size such as 2048kB → node0 (host without NUMA) → reserved pages
    memory: Optional[int]  # bytes, MemTotal
    available: Optional[int]  # bytes, MemAvailable
    morecore: Tuple[str, ...]  # files that set HUGETLB_MORECORE
    libc_without_morecore: Optional[bool]  # glibc 2.34 and newer
    kernel_choice: Mapping[str, Optional[str]]  # thp, thp_defrag, …: the kernel's own choice at boot
    size: Optional[str]  # of a page that is requested without a size: 2048kB
    mounts: Mapping[str, str]  # path of a mount of nearmetal → its options
    mounted: Mapping[str, str]  # path → type of everything that is mounted
    groups: Mapping[str, int]  # name → number


def observe(host: Host) -> HugepageFacts:
    """Read the files of transparent and reserved huge pages, /proc/meminfo, and where environments are set."""
    folder = next((folder for folder in sys_files.THP_FOLDERS if host.exists(folder)), None)
    memory = kernel_counters.parse_meminfo(host.text("/proc/meminfo") or "")
    choosing = (sys_files.THP, sys_files.THP_DEFRAG, sys_files.THP_SHMEM)
    return HugepageFacts(
        folder=folder,
        **{file.name: file.read(host) for file in (*choosing, sys_files.KHUGEPAGED_DEFRAG, sys_files.MAX_PTES_NONE)},
        offered={file.name: file.offered(host) for file in choosing},
        thp_sizes=_thp_sizes(host),
        thp_size=host.number(f"{folder}/hpage_pmd_size"),
        pages={size: reserved(host, size) for size in _sizes(host)},
        memory=memory.get("MemTotal"),
        available=memory.get("MemAvailable"),
        morecore=_morecore(host),
        libc_without_morecore=_new_libc(host),
        kernel_choice=kernel_choice(host),
        size=f"{memory['Hugepagesize'] // 1024}kB" if "Hugepagesize" in memory else None,
        mounts=hugetlbfs.nearmetal_mounts(host),
        mounted=hugetlbfs.mounts(host),
        groups=dict(_groups(host)),
    )


def _thp_sizes(host: Host) -> Dict[str, str]:
    """Size below that of a whole huge page → who gets them."""
    folder = sys_files.THP_FOLDERS[0]
    names = [re.fullmatch(f"hugepages-{SIZE}", name, re.ASCII) for name in host.names(folder)]
    whole = host.number(f"{folder}/hpage_pmd_size")
    sizes = sorted(int(name[1]) for name in names if name is not None and int(name[1]) * 1024 != whole)
    words = {f"{size}kB": sys_files.thp_of_size(f"{size}kB").read(host) for size in sizes}
    return {size: word for size, word in words.items() if word is not None}


def kernel_choice(host: Host) -> Dict[str, Optional[str]]:
    """thp, thp_defrag, thp_shmem, khugepaged_defrag: the kernel's own choice at boot; None where it isn't known."""
    offered = sys_files.THP_DEFRAG.offered(host)
    chosen = {
        "thp": _built_with(host),
        # "defer" came with Linux 4.6, and madvise as the choice; before, all waited.
        "thp_defrag": "madvise" if "defer" in offered else offered[0] if offered else None,
        "thp_shmem": "never",
        "khugepaged_defrag": "enabled",
    }
    memory = kernel_counters.parse_meminfo(host.text("/proc/meminfo") or "").get("MemTotal", _LEAST_MEMORY)
    # hugepage_init() in the kernel's mm/huge_memory.c: with less memory, none, whatever the command line says.
    return {**chosen, "thp": "never", "thp_defrag": "never"} if memory < _LEAST_MEMORY else chosen


def _built_with(host: Host) -> Optional[str]:
    """Who gets transparent huge pages after a boot: by the command line, else by the kernel's configuration."""
    word = cmdline.last(host.kernel_arguments(), "transparent_hugepage")
    if word in ("always", "madvise", "never"):
        return word
    release = host.line("/proc/sys/kernel/osrelease") or ""
    if not _RELEASE.fullmatch(release):
        return None
    for path in (f"/boot/config-{release}", f"/lib/modules/{release}/config"):
        match = _CONFIGURED.search(host.text(path, 1024 * 1024) or "")
        if match is not None:
            return match.group(1).lower()
    return None


def _groups(host: Host) -> Iterator[Tuple[str, int]]:
    """Name and number of each group of /etc/group."""
    for line in (host.text("/etc/group", 1024 * 1024) or "").splitlines():
        fields = line.split(":")
        if len(fields) > 2 and re.fullmatch(r"[0-9]{1,10}", fields[2], re.ASCII):
            yield fields[0], int(fields[2])


def file_of(size: str, place: str, name: str = "nr_hugepages") -> str:
    """The file that counts the pages of a size at a place."""
    return f"{RESERVED if place == 'host' else f'{NODE}/{place}/hugepages'}/hugepages-{size}/{name}"


def reserved(host: Host, size: str) -> Dict[str, int]:
    """Place → reserved pages, where they can be read; surplus pages, which are taken on demand, don't count."""
    places = [name for name in node_names(host) if host.exists(file_of(size, name))]
    counts = ((place, _count(host, size, place)) for place in sorted(places, key=len) or ["host"])
    return {place: count for place, count in counts if count is not None}


def _count(host: Host, size: str, place: str) -> Optional[int]:
    total, surplus = (host.number(file_of(size, place, name)) for name in ("nr_hugepages", "surplus_hugepages"))
    return max(0, total - (surplus or 0)) if total is not None else None


def _sizes(host: Host) -> Tuple[str, ...]:
    matches = (_FOLDER.fullmatch(name) for name in host.names(RESERVED))
    return tuple(sorted((match.group(1) for match in matches if match is not None), key=lambda size: int(size[:-2])))


def _new_libc(host: Host) -> Optional[bool]:
    names = [name for folder in _LIBRARIES for name in host.names(folder)]
    if any(re.fullmatch(_OLD_LIBC, name, re.ASCII) for name in names):
        return False
    return True if "libc.so.6" in names else None


def _morecore(host: Host) -> Tuple[str, ...]:
    """Files that set HUGETLB_MORECORE, of those that give services their environment."""
    paths = []
    for place in _ENVIRONMENTS:
        inner = [f"{place}/{name}" for name in host.names(place)]
        paths += [place, *inner]
        paths += [f"{folder}/{name}" for folder in inner if folder.endswith(".d") for name in host.names(folder)]
    return tuple(path for path in paths if "HUGETLB_MORECORE=" in (host.text(path, 65536) or ""))
