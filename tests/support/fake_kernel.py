# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel to tune in tests, written apart from the engine, that misbehaves as kernels do.

Its files behave as the kernel's own documentation describes them, and it takes
orders only through write(2), like a real kernel. `moods` makes a file misbehave:
an errno name (the write fails so), `late` (once: taken, and then EIO), `always late`, `ignores` (taken without
effect), `half` (only part of the bytes is taken).
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost

from tests.support.hosts import lay_out
from tests.support.kernel import boot, routes, services, systemd
from tests.support.kernel.cpus import Cpus
from tests.support.kernel.disks import Disks
from tests.support.kernel.memory import Memory
from tests.support.kernel.nics import FakeNics
from tests.support.kernel.power import Power
from tests.support.kernel.udev import Udev

CLOCK = "/sys/devices/system/clocksource/clocksource0"


class FakeKernel(WritableHost):
    """A host below a temporary root whose kernel files behave as those of a kernel."""

    def __init__(self, root: Path, files: Dict[str, str]) -> None:
        super().__init__(str(root))
        self.hardware = {"/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n", **files}
        self._boots = 0
        lay_out(root, self.hardware)
        self.moods: Dict[str, str] = {}
        self.written: List[Tuple[str, str]] = []
        self.commands: List[str] = []  # the commands that were run, as a shell would show them
        self.read_only = False
        self.root_user = True
        self.cpus = Cpus(root)
        self.power = Power(root)
        self.memory = Memory(root)
        self.nics = FakeNics(root)
        self.disks = Disks(root)

    def is_root(self) -> bool:
        return self.root_user

    def writable(self, path: str) -> bool:
        return not (self.read_only and path.startswith("/sys/"))

    def arguments(self) -> str:
        """The arguments for the next boot from the boot loader; without a boot loader, the current ones."""
        return self._get("/proc/cmdline")

    def reboot(self, boot_id: str, hardware: Optional[Dict[str, str]] = None) -> None:
        """A new boot, with other `hardware` (files) if it is given.

        Nothing that ran is left: the kernel has its own choice, then its arguments, udev, systemd-sysctl,
        systemd-tmpfiles, network managers and services have theirs. Interrupts have other numbers.
        """
        root, line = Path(self.root), self.arguments()
        self.hardware = hardware or self.hardware
        self._boots += 1
        boot.power_on(root, boot.renumbered(self.hardware, by=self._boots))
        self._put("/proc/sys/kernel/random/boot_id", boot_id + "\n")
        self._put("/proc/cmdline", line)
        offered = self._get(f"{CLOCK}/available_clocksource").split()
        named = [name for name in offered if f"clocksource={name}" in line.split()]
        self._put(f"{CLOCK}/current_clocksource", (named or offered)[0] + "\n")
        if "numa=off" in line.split():
            boot.one_node(root)
        self.cpus = Cpus(root)
        self.cpus.boot(line.split())
        self.nics.boot()
        self.memory.user_min_free = -1
        boot.modules(root)
        boot.obey(root, line.split(), self._take)
        self.disks.boot()
        for subsystem, folder in (("cpu", "sys/bus/cpu/devices"), ("net", "sys/class/net")):
            for device in sorted((root / folder).glob("*")):
                Udev(root, self._take).event(subsystem, device.name, "add")
        boot.sysctl(root, self._take)
        boot.tmpfiles(root, self._take)
        for unit in boot.mounts(root):
            self.memory.systemctl("start", unit)
        services.start(root, self._take, self.nics.rings)

    def replug(self, hardware: Dict[str, str]) -> None:
        """Detach and attach devices while the host runs; the contents of all other files stay."""
        root = Path(self.root)
        before, after = (boot.renumbered(files, by=self._boots) for files in (self.hardware, hardware))
        self.hardware = hardware
        for devices in (self.nics, self.disks):
            devices.numbers.count()
        boot.exchange(root, before, after)
        for subsystem, folder in (("block", "/sys/block/"), ("net", "/sys/class/net/")):
            known, now = (
                {
                    path.split("/")[-1 - (subsystem == "net")]
                    for path in files
                    if path.startswith(folder) and path.endswith("/device")
                }
                for files in (before, after)
            )
            for name in sorted(now - known):
                (self.nics if subsystem == "net" else self.disks).numbers.register(name)
                Udev(root, self._take).event(subsystem, name, "add")

    def rename(self, name: str, other: str, hardware: Dict[str, str]) -> None:
        """udev or an operator gives a NIC another name while it runs; `hardware` has it from now on."""
        self.hardware = hardware
        self.nics.rename(name, other)
        Udev(Path(self.root), self._take).event("net", other, "move")

    def write_value(self, path: str, text: str) -> None:
        mood = self.moods.get(path, "")
        if self.read_only:
            raise OSError(errno.EROFS, "Read-only file system", path)
        if mood in ("late", "always late"):
            self.moods[path] = mood[: mood.index("late")].strip() and mood
            self._take(path, text)
            raise OSError(errno.EIO, "taken, and yet an error", path)
        if mood.startswith("E"):
            raise OSError(getattr(errno, mood), mood, path)
        if not (Path(self.root) / path.lstrip("/")).exists():
            raise OSError(errno.ENOENT, "No such file or directory", path)
        if self.power.parked(path, self.cpus.online):
            raise OSError(errno.EBUSY, "Device or resource busy", path)
        self.written.append((path, text))
        if mood == "half":
            raise OSError(errno.EIO, "the kernel took only a part of the value", path)
        if mood != "ignores":
            self._take(path, text)

    def _bytes(self, path: str, limit: int, records: bool) -> Optional[bytes]:
        return None if self.power.parked(path, self.cpus.online) else super()._bytes(path, limit, records)

    def _driver(self, device: str, record: bytes) -> bytes:
        return self.nics.driver(device, record)

    def _route(self, request: bytes) -> bytes:
        return routes.answer(Path(self.root), request)

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        line = " ".join(argv)
        self.commands.append(line)
        if line in self.moods:
            raise NearmetalError(f"{line} failed with code 1: {self.moods[line]}")
        systemd.require_known(systemd.version(Path(self.root)), argv)
        if argv[0] == "systemctl" and argv[-1].endswith(".mount"):
            self.memory.systemctl(argv[1], argv[-1])
        return ""

    def _take(self, path: str, text: str) -> None:
        if path == f"{CLOCK}/current_clocksource":
            # kernel/time/clocksource.c: an unknown name is remembered, never an error.
            if text.strip() in self._get(f"{CLOCK}/available_clocksource").split():
                self._put(path, text.strip() + "\n")
            return
        if not any(part.take(path, text) for part in (self.cpus, self.power, self.memory, self.nics, self.disks)):
            raise OSError(errno.EACCES, "Permission denied", path)

    def _get(self, path: str) -> str:
        return (Path(self.root) / path.lstrip("/")).read_text()

    def _put(self, path: str, text: str) -> None:
        (Path(self.root) / path.lstrip("/")).write_text(text)


def everything(host: FakeKernel) -> Dict[str, str]:
    """Each file of the host, but for the lock, the note of what failed, and what the fake kernel itself remembers."""
    root, hidden = Path(host.root), ("lock", "failed.json", ".kept")
    files = (path for path in root.rglob("*") if path.is_file() and path.name not in hidden)
    return {str(path.relative_to(root)): path.read_text() for path in files}
