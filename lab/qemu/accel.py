# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""KVM where a stock kernel boots under it, pure emulation elsewhere: /dev/kvm may exist and still boot nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lab import cache, process
from lab.architecture import AMD64, Architecture
from lab.progress import Progress
from lab.qemu import emulator
from lab.qemu.pace import Pace

EMULATION = "tcg,thread=multi"
KVM_LIMIT_SECONDS = 8.0
_REACHED_ROOT = b"Unable to mount root fs"


def choose(architecture: Architecture, kernel: Path, progress: Progress) -> str:
    """The value for QEMU's -accel. The trial boot is done once per boot of this machine and version of QEMU."""
    if architecture is not AMD64 or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return EMULATION
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

    def build(beside: Path) -> None:
        _probe(architecture, kernel, beside, progress)

    folder = cache.obtain("probes", cache.key(boot, emulator.version([architecture.qemu])), build, progress)
    return str(json.loads((folder / "result.json").read_text(encoding="ascii"))["accel"])


def _probe(architecture: Architecture, kernel: Path, folder: Path, progress: Progress) -> None:
    serial = folder / "serial.log"
    serial.touch()
    argv = [architecture.qemu, "-accel", "kvm", "-cpu", "host", "-m", "256", "-smp", "2"]
    argv += ["-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{serial}"]
    argv += ["-kernel", str(kernel), "-append", f"console={architecture.serial} panic=-1"]
    with progress.step("trying whether a stock kernel boots under KVM"):
        qemu = process.start(argv, folder / "qemu.log", outlive=False)
        try:
            pace = Pace(lambda: qemu.pid)
            pace.wait(lambda: qemu.poll() is not None or _REACHED_ROOT in serial.read_bytes(), KVM_LIMIT_SECONDS)
        finally:
            process.end(qemu)
    works = _REACHED_ROOT in serial.read_bytes()
    progress.say("hosts run under KVM" if works else "hosts run in pure emulation: KVM boots no stock kernel here")
    (folder / "result.json").write_text(json.dumps({"accel": "kvm" if works else EMULATION}), encoding="ascii")
