# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU hot-plug of the fake kernel, after the kernel's cpu_hotplug.rst and sysfs-devices-system-cpu.

An offline CPU loses its topology directory and leaves its siblings' lists. Siblings are read
from the host's files when it starts, and remembered as the hardware is.
"""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path
from typing import List, Set

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


def numbers(text: str) -> List[int]:
    """The numbers of a kernel list."""
    found: List[int] = []
    for part in text.strip().split(","):
        first, _dash, last = part.partition("-")
        found += range(int(first), int(last or first) + 1) if first else []
    return found


def ranges(cpus: List[int]) -> str:
    """A kernel list of these numbers."""
    text = ""
    for cpu in cpus:
        if cpu - 1 not in cpus:
            text += f",{cpu}"
        elif cpu + 1 not in cpus:
            text += f"-{cpu}"
    return text[1:]


class Cpus:
    """The CPUs of a host below `root`: which are online, and their files in /sys."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.present = numbers((root / CPU / "present").read_text())
        self.online: Set[int] = set(numbers((root / CPU / "online").read_text()))
        self._topology = {
            cpu: {file.name: file.read_text() for file in (root / CPU / f"cpu{cpu}/topology").iterdir()}
            for cpu in self.online
        }
        self.skips_offline_cores = False  # what `on` does since Linux 6.17
        self._lists = {file: file.read_text() for file in [root / CPU / "online", *(root / NODE).glob("node*/cpulist")]}

    def take(self, path: str, text: str) -> bool:
        """Carry out a write; whether the file belongs to this fake. Raises OSError as the kernel would."""
        match = re.fullmatch(rf"/{CPU}/cpu(\d+)/online", path)
        if match:
            cpu, word = int(match.group(1)), text.strip()
            if word not in ("0", "1"):
                raise OSError(errno.EINVAL, "Invalid argument", path)
            if word == "1" and cpu != self._first(cpu) and self._is_off():  # cpu_bootable() in kernel/cpu.c
                raise OSError(errno.EPERM, "Operation not permitted", path)
            self._switch(cpu, word == "1")
            return True
        if path == f"/{CPU}/smt/control":
            self._control(path, text.strip())
            return True
        return False

    def _control(self, path: str, order: str) -> None:
        file = self._root / path.lstrip("/")
        now = file.read_text().strip()
        if now in ("notsupported", "notimplemented"):
            raise OSError(errno.ENODEV, "No such device", path)
        if order not in ("on", "off", "forceoff"):
            raise OSError(errno.EINVAL, "Invalid argument", path)
        if now == "forceoff":
            raise OSError(errno.EPERM, "Operation not permitted", path)
        if now == order:
            return  # kernel/cpu.c checks no more than this, even if single CPUs were taken offline meanwhile
        file.write_text(order + "\n")
        for cpu in sorted(self.online) if order != "on" else ():
            if cpu != self._first(cpu):
                self._switch(cpu, False)
        # Up to 6.16 cpuhp_smt_enable() brings every present CPU online, first threads too.
        for cpu in sorted(set(self.present) - self.online) if order == "on" else ():
            if self._first(cpu) in self.online or not self.skips_offline_cores:
                self._switch(cpu, True)
        active = self._root / CPU / "smt/active"
        active.write_text("1\n" if order == "on" else "0\n")

    def is_first(self, cpu: int) -> bool:
        """Whether a CPU is the first thread of its core."""
        return cpu == self._first(cpu)

    def _first(self, cpu: int) -> int:
        """The first thread of a CPU's core; the CPU itself if it never was online."""
        return numbers(self._topology[cpu]["thread_siblings_list"])[0] if cpu in self._topology else cpu

    def _is_off(self) -> bool:
        control = self._root / CPU / "smt/control"
        return control.exists() and control.read_text().strip() in ("off", "forceoff")

    def _switch(self, cpu: int, online: bool) -> None:
        (self.online.add if online else self.online.discard)(cpu)
        (self._root / CPU / f"cpu{cpu}/online").write_text("1\n" if online else "0\n")
        self.show()

    def show(self) -> None:
        """Write the files of /sys for the online CPUs."""
        for file, text in self._lists.items():
            self._list(file, text)
        for cpu, known in self._topology.items():
            folder = self._root / CPU / f"cpu{cpu}/topology"
            if cpu not in self.online:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            folder.mkdir(exist_ok=True)
            for name, text in known.items():
                if name.endswith("_list"):
                    self._list(folder / name, text)
                else:
                    (folder / name).write_text(text)

    def _list(self, file: Path, text: str) -> None:
        """The list as it was at the start, without the CPUs that are offline."""
        cpus = numbers(text)
        alive = [cpu for cpu in cpus if cpu in self.online]
        file.write_text(text if alive == cpus else ranges(alive) + "\n")

    def boot(self, arguments: List[str]) -> None:
        """Every CPU has started that maxcpus doesn't leave out; then the kernel obeys nosmt."""
        control = self._root / CPU / "smt/control"
        started = next((int(word[8:]) for word in arguments if word.startswith("maxcpus=")), len(self.present))
        for cpu in self.present[started:]:
            self._switch(cpu, False)
        if control.exists() and control.read_text().strip() in ("on", "off", "forceoff"):
            control.write_text("on\n")
            for word in ("nosmt", "nosmt=force"):
                if word in arguments:
                    self._control(f"/{CPU}/smt/control", "forceoff" if word.endswith("force") else "off")
