# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Huge pages of the fake kernel, after the kernel's admin-guide/mm/transhuge and hugetlbpage.

A request for reserved pages is met as far as memory allows, without any error. `room`
is how many pages a file can have, `compacted` how many after compact_memory. `free` is a node's free memory in kB,
which pages of all sizes share; a node that isn't in it always has enough.

With khugepaged the kernel raises vm.min_free_kbytes to what huge pages need, and since Linux 5.16 it lowers it again
with the end of khugepaged, to its own choice or what a user has set (mm/khugepaged.c, mm/page_alloc.c).

Of the two files of a limit of dirty file cache the kernel uses the one that was written last, and the other reads 0.
Bytes below two pages are refused, 0 too, and to dirty_ratio a 0 above a 0 is no change, so the bytes stay
(mm/page-writeback.c; admin-guide/sysctl/vm).
"""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Dict, List

THP = "/sys/kernel/mm/transparent_hugepage"
MIN_FREE = "/proc/sys/vm/min_free_kbytes"
FOR_HUGE_PAGES, BY_MEMORY = 67584, 16384
KSM = "/sys/kernel/mm/ksm/run"
# The least and the most that a file takes.
_NUMBERS = {
    "/proc/sys/vm/swappiness": (0, 200),  # 100 before Linux 5.8
    "/proc/sys/vm/overcommit_memory": (0, 2),
    "/proc/sys/vm/max_map_count": (0, 2**31 - 1),
    "/proc/sys/fs/aio-max-nr": (0, 2**64 - 1),
    "/proc/sys/vm/dirty_ratio": (0, 100),
    "/proc/sys/vm/dirty_bytes": (8192, 2**64 - 1),
    "/proc/sys/vm/dirty_background_ratio": (0, 100),
    "/proc/sys/vm/dirty_background_bytes": (1, 2**64 - 1),
    KSM: (0, 2),
}


def _number(word: str) -> int:
    """As the kernel's strtoul() with base 0; -1 for another text."""
    if not re.fullmatch(r"0x[0-9a-f]+|[0-9]+", word):
        return -1
    return int(word, 16 if "x" in word else 8 if word[0] == "0" and len(word) > 1 else 10)


class Memory:
    """The files below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.room: Dict[str, int] = {}
        self.compacted: Dict[str, int] = {}
        self.free: Dict[str, int] = {}
        self.asked: List[str] = []
        self.user_min_free = -1

    def take(self, path: str, text: str) -> bool:
        """Carry out a write; whether the file belongs to this fake. Raises OSError as the kernel would."""
        file, word = self._root / path.lstrip("/"), text.strip()
        if path == "/proc/sys/vm/compact_memory":
            self.asked.append("compact")
            self.room.update(self.compacted)
        elif re.search(r"/hugepages-\d+kB/nr_hugepages$", path):
            self._reserve(path, int(word))
        elif path in (f"{THP}/enabled", f"{THP}/defrag", f"{THP}/shmem_enabled") or path.startswith(
            f"{THP}/hugepages-"
        ):
            offered = [word.strip("[]") for word in file.read_text().split()]
            if word not in offered:
                raise OSError(errno.EINVAL, "Invalid argument", path)
            file.write_text(" ".join(f"[{name}]" if name == word else name for name in offered) + "\n")
            if path == f"{THP}/enabled":
                self._keep_free(word != "never")
        elif path == MIN_FREE:
            self.user_min_free = int(word)
            file.write_text(word + "\n")
        elif path in _NUMBERS:
            least, most = _NUMBERS[path]
            number = _number(word)
            if not least <= number <= most:
                raise OSError(errno.EINVAL, "Invalid argument", path)
            same = path.endswith("/dirty_ratio") and int(file.read_text()) == number
            file.write_text(f"{number}\n")
            if "dirty" in path and not same:
                other = (
                    path.replace("_ratio", "_bytes") if path.endswith("_ratio") else path.replace("_bytes", "_ratio")
                )
                (self._root / other[1:]).write_text("0\n")
        elif path in (f"{THP}/khugepaged/defrag", f"{THP}/khugepaged/max_ptes_none"):
            file.write_text(word + "\n")
        else:
            return False
        return True

    def systemctl(self, order: str, unit: str) -> None:
        """Start or stop a mount unit: systemd creates the folder, and the kernel lists the mount."""
        table = self._root / "proc/1/mounts"
        text = (self._root / "etc/systemd/system" / unit).read_text()
        options = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        line = f"hugetlbfs {options['Where']} {options['Type']} rw,relatime,{options['Options']} 0 0\n"
        if order == "start":
            (self._root / options["Where"].lstrip("/")).mkdir(parents=True, exist_ok=True)
            table.write_text(table.read_text() + line)
        else:
            table.write_text(table.read_text().replace(line, ""))

    def _keep_free(self, khugepaged: bool) -> None:
        file, release = self._root / MIN_FREE[1:], self._root / "proc/sys/kernel/osrelease"
        if not file.exists() or not release.exists():
            return
        now = int(file.read_text())
        if khugepaged:
            now = max(now, FOR_HUGE_PAGES)
        elif [int(part) for part in re.findall(r"\d+", release.read_text())[:2]] >= [5, 16]:
            now = BY_MEMORY if self.user_min_free < BY_MEMORY else now
        file.write_text(f"{now}\n")

    def _reserve(self, path: str, count: int) -> None:
        self.asked.append(f"{path} {count}")
        file = self._root / path.lstrip("/")
        reserved = min(count, self.room.get(path, count))
        node, size = file.parent.parent.parent.name, int(re.findall(r"\d+", file.parent.name)[0])
        if node in self.free:
            before = int(file.read_text())
            reserved = min(reserved, before + self.free[node] // size)
            self.free[node] -= (reserved - before) * size
        file.write_text(f"{reserved}\n")
