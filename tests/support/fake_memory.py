# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Huge pages of the fake kernel, after the kernel's admin-guide/mm/transhuge and hugetlbpage.

A request for reserved pages is met as far as memory allows, without any error. `room`
is how many pages a file can have, `compacted` how many after compact_memory. `free` is a node's free memory in kB,
which pages of all sizes share; a node that isn't in it always has enough.
"""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Dict, List

THP = "/sys/kernel/mm/transparent_hugepage"


class Memory:
    """The files below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.room: Dict[str, int] = {}
        self.compacted: Dict[str, int] = {}
        self.free: Dict[str, int] = {}
        self.asked: List[str] = []

    def take(self, path: str, text: str) -> bool:
        """Carry out a write; whether the file belongs to this fake. Raises OSError as the kernel would."""
        file, word = self._root / path.lstrip("/"), text.strip()
        if path == "/proc/sys/vm/compact_memory":
            self.asked.append("compact")
            self.room.update(self.compacted)
        elif re.search(r"/hugepages-\d+kB/nr_hugepages$", path):
            self._reserve(path, int(word))
        elif path in (f"{THP}/enabled", f"{THP}/defrag", f"{THP}/shmem_enabled"):
            offered = [word.strip("[]") for word in file.read_text().split()]
            if word not in offered:
                raise OSError(errno.EINVAL, "Invalid argument", path)
            file.write_text(" ".join(f"[{name}]" if name == word else name for name in offered) + "\n")
        elif path == f"{THP}/khugepaged/defrag":
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
