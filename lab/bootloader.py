# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root disks that boot by themselves: the guest installs its own boot loader, once (guest/usr/local/sbin/lab-grub)."""

from __future__ import annotations

from pathlib import Path

from lab import cache, image, process
from lab.architecture import Architecture
from lab.error import LabError
from lab.progress import Progress

LIMIT_SECONDS = 600.0


def bootable(made: Path, architecture: Architecture, kernel_args: str, accel: str, progress: Progress) -> Path:
    """A folder with disk.qcow2, over the one of `image.root`, that boots by its own GRUB with these arguments."""

    def build(folder: Path) -> None:
        with progress.step(f'installing GRUB with "{kernel_args}" from inside the image'):
            _install(made, architecture, kernel_args, accel, folder)

    return cache.obtain("disks", cache.key(made.name, kernel_args, cache.sources(Path(__file__))), build, progress)


def _install(made: Path, architecture: Architecture, kernel_args: str, accel: str, folder: Path) -> None:
    image.overlay(made / "disk.qcow2", folder / "disk.qcow2")
    serial = folder / "serial.log"
    serial.touch()
    identifier = (made / "uuid").read_text(encoding="ascii")
    arguments = f"root=UUID={identifier} console={architecture.serial} mitigations=off"
    cpu = "host" if accel == "kvm" else architecture.processor
    argv = [architecture.qemu, *f"-machine {architecture.machine} -accel {accel} -cpu {cpu} -m 512".split()]
    argv += ["-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{serial.name}"]
    argv += ["-drive", "file=disk.qcow2,if=virtio,cache=unsafe"]
    argv += ["-kernel", str(made / "vmlinuz"), "-initrd", str(made / "initrd.img")]
    argv += ["-append", f"{arguments} init=/usr/local/sbin/lab-grub -- {kernel_args}"]
    qemu = process.start(argv, folder / "qemu.log", outlive=False, cwd=folder)
    try:
        process.wait_until(lambda: qemu.poll() is not None, LIMIT_SECONDS)
    finally:
        process.end(qemu)
    if b"lab-grub: done" not in serial.read_bytes():
        raise LabError(
            f"the image did not install its boot loader in {LIMIT_SECONDS:.0f} s; the end of its "
            f"console:\n{process.tail(serial)}"
        )
