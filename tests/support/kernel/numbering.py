# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers that the kernel gives devices in the order in which they come, each of them once in a boot."""

from __future__ import annotations

from pathlib import Path


class Numbering:
    """The numbers in one file of each device, such as an interface's ifindex. Older kernels number no disks."""

    def __init__(self, folder: Path, file: str) -> None:
        self._folder = folder
        self._file = file
        self.boot()

    def boot(self) -> None:
        """Forget the numbers of the last boot."""
        self._last = 0

    def count(self) -> None:
        """Remember the numbers that devices have, before some of them go."""
        self._last = max([self._last, *(int(file.read_text()) for file in self._folder.glob(f"*/{self._file}"))])

    def register(self, name: str) -> None:
        """Give a device that comes the next number."""
        file = self._folder / name / self._file
        if file.exists():
            self._last += 1
            file.write_text(f"{self._last}\n")
