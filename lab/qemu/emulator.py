# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""QEMU's program for a shape: this machine's own, or a newer one for devices that this machine's doesn't have.

The newer one comes from Debian's backports. apt checks its packages by the archive's signature; they are unpacked in
the cache and not installed, so that every other shape keeps the QEMU that it had.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab import cache, deps, process
from lab.error import LabError
from lab.progress import Progress
from lab.shape import Shape

SUITE = "bookworm-backports"
# The program, and what it reads as a host starts; the libraries of Debian 12 are new enough.
PACKAGES = ("qemu-system-x86", "qemu-system-data", "seabios")
_FIRMWARE = ("usr/share/seabios", "usr/share/qemu")


def program(shape: Shape, progress: Progress) -> list[str]:
    """The first words of the command that starts a host of this shape."""
    own = [shape.image.architecture.qemu]
    if not shape.qemu or _release(version(own)) >= shape.qemu:
        return own
    return newer(shape.image.architecture.qemu, progress)


def version(command: Sequence[str]) -> str:
    """The first line of QEMU's --version."""
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{command[0]} does not start: {done.stderr.strip()}")
    return done.stdout.splitlines()[0]


def newer(name: str, progress: Progress) -> list[str]:
    """The first words of a command that starts the newer QEMU, unpacked on first use."""
    archive = deps.archive()
    if not archive:
        raise LabError("a newer QEMU comes from Debian, and apt has no Debian here; set NEARMETAL_DEBIAN_MIRROR")

    def build(folder: Path) -> None:
        with progress.step(f"unpacking a newer QEMU, of {SUITE}"):
            _unpack(archive, folder)

    code = cache.sources(Path(__file__))
    folder = cache.obtain("emulators", cache.key(SUITE, PACKAGES, archive, code), build, progress)
    words = [str(folder / "usr/bin" / name)]
    for firmware in _FIRMWARE:
        words += ["-L", str(folder / firmware)]
    return words


def _unpack(archive: str, folder: Path) -> None:
    """apt keeps its lists and its packages in a folder of its own, and reads none of this machine's sources."""
    log, apt = folder / "build.log", folder / "apt"
    (apt / "lists" / "partial").mkdir(parents=True)
    sources = apt / "sources.list"
    sources.write_text(f"deb [signed-by={deps.KEYRING}] {archive} {SUITE} main\n", encoding="utf-8")
    options = [f"Dir::Etc::SourceList={sources}", "Dir::Etc::SourceParts=-", f"Dir::State::Lists={apt}/lists"]
    options += [f"Dir::Cache={apt}", "APT::Sandbox::User="]
    get = ["apt-get", "-q", *(f"-o{option}" for option in options)]
    process.run([*get, "update"], log, cwd=apt)
    process.run([*get, "download", *PACKAGES], log, cwd=apt)
    for package in sorted(apt.glob("*.deb")):
        process.run(["dpkg-deb", "--extract", str(package), str(folder)], log)
        package.unlink()


def _release(line: str) -> int:
    found = re.search(r"version (\d+)\.", line)
    if not found:
        raise LabError(f"QEMU says no version that the lab understands: {line}")
    return int(found[1])
