# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Xen guest stands on: the hypervisor, and dom0 with the files of dom0/ laid over its image."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from lab import cache, image, process, qemu
from lab.error import LabError
from lab.keys import Keys
from lab.progress import Progress
from lab.shape import Xen

DOM0 = Path(__file__).parent / "dom0"
_PARTITION = "offset=1048576"  # as make-disk.sh lays it out
_HYPERVISOR = "/boot/xen-4.17-amd64.gz"


def files(xen: Xen, keys: Keys, progress: Progress) -> dict[str, Path]:
    """What QEMU starts a Xen host with, by the names that its command line has for them."""
    made = image.root(xen.dom0, keys, progress)

    def build(folder: Path) -> None:
        with progress.step(f"image {xen.dom0.name}: making a dom0 of it"):
            _build(made, folder)

    folder = cache.obtain("dom0", cache.key(made.name, cache.sources(Path(__file__), DOM0)), build, progress)
    return {
        qemu.DOM0_DISK: folder / qemu.DOM0_DISK,
        qemu.XEN: folder / qemu.XEN,
        qemu.DOM0_KERNEL: made / "vmlinuz",
        qemu.DOM0_INITRD: made / "initrd.img",
    }


def _build(made: Path, folder: Path) -> None:
    log = folder / "build.log"
    raw, packed = folder / "dom0.raw", folder / "xen.gz"
    process.run(["qemu-img", "convert", "-O", "raw", str(made / qemu.DISK), str(raw)], log)
    commands = [f"set_super_value volume_name {qemu.DOM0_LABEL}", f"dump {_HYPERVISOR} {packed.name}"]
    written = {path: folder / f"written{number}" for number, path in enumerate(sorted(DOM0.rglob("*")))}
    for path, copy in written.items():
        inside = f"/{path.relative_to(DOM0)}"
        if path.is_dir():
            commands.append(f"mkdir {inside}")
        else:
            mode = "0100755" if path.parent.name in ("sbin", "scripts") else "0100644"
            commands += [f"rm {inside}", f'write "{path}" {inside}', f"sif {inside} mode {mode}"]
            commands.append(f"dump {inside} {copy.name}")
    # debugfs writes the file system without a mount. It reports errors only as text, hence the copies.
    (folder / "commands").write_text("\n".join(commands) + "\n", encoding="utf-8")
    process.run(["debugfs", "-w", "-f", "commands", f"{raw.name}?{_PARTITION}"], log, cwd=folder)
    for path, copy in written.items():
        if path.is_file() and not (copy.is_file() and copy.read_bytes() == path.read_bytes()):
            raise LabError(f"{path} did not reach dom0; debugfs said:\n{process.tail(log)}")
        copy.unlink(missing_ok=True)
    with gzip.open(packed) as source, (folder / qemu.XEN).open("wb") as target:
        shutil.copyfileobj(source, target)
    process.run(["qemu-img", "convert", "-O", "qcow2", str(raw), str(folder / qemu.DOM0_DISK)], log)
    for left in (raw, packed):
        left.unlink()
