# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that the lab needs on this machine, and the archive to build images from."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from lab.architecture import AMD64, Architecture
from lab.error import LabError
from lab.shape import Image

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_TOOLS = {
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "fakeroot": "fakeroot",
    "mke2fs": "e2fsprogs",
    "sfdisk": "fdisk",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "gcc": "gcc",
    "strace": "strace",
}
_FILES = {KEYRING: "debian-archive-keyring"}
_LIBC = "libc6-dev"


def search_path() -> str:
    """PATH with the folders of system tools, which a user's PATH lacks."""
    return f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"


def missing(architecture: Architecture = AMD64) -> list[str]:
    """The packages to install for hosts of an architecture, sorted."""
    tools, files = {**_TOOLS, **architecture.tools}, {**_FILES, **architecture.files}
    wanted = {package for tool, package in tools.items() if not shutil.which(tool, path=search_path())}
    wanted |= {package for file, package in files.items() if not file.exists()}
    if not list(Path("/usr/lib").glob("*/libc.a")):
        wanted.add(_LIBC)
    if os.geteuid() and not shutil.which("newuidmap"):
        wanted.add("uidmap")
    return sorted(wanted)


def require(architecture: Architecture = AMD64) -> None:
    """Fail in one sentence when something is missing; called before any work."""
    packages = missing(architecture)
    if packages:
        option = "" if architecture is AMD64 else f" --architecture {architecture.name}"
        raise LabError(f"the lab needs {' '.join(packages)}; run: python3 -m lab doctor --install{option}")


def install(architecture: Architecture = AMD64) -> None:
    """Install what is missing with apt, as root or through sudo."""
    packages = missing(architecture)
    if not packages:
        return
    if not shutil.which("apt-get"):
        raise LabError(f"the lab needs Debian or Ubuntu to install {' '.join(packages)}: there is no apt-get here")
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    if prefix and not shutil.which("sudo"):
        raise LabError(f"only root can install {' '.join(packages)}; run as root: apt-get install {' '.join(packages)}")
    for arguments in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *packages]):
        command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *arguments]
        if subprocess.run(command, check=False).returncode:
            raise LabError(f"this failed, see above: {shlex.join(command)}")


def archive_sources(image: Image) -> list[str]:
    """One-line apt sources for an image, from where this machine itself gets Debian.

    $NEARMETAL_DEBIAN_MIRROR replaces it. An empty list (Ubuntu has no Debian source) leaves the choice to
    mmdebstrap's own default.
    """
    archives = _archives()
    signed = f"[signed-by={KEYRING}]"
    return [
        f"deb {signed} {address} {image.suite}{pocket} {' '.join(image.components)}"
        for pocket, address in sorted(archives.items())
        if pocket in image.pockets
    ]


def archive() -> str:
    """The address of Debian's main archive; empty where neither apt nor $NEARMETAL_DEBIAN_MIRROR names one."""
    return _archives().get("", "")


def _archives() -> dict[str, str]:
    own = os.environ.get("NEARMETAL_DEBIAN_MIRROR")
    return {"": own} if own else _archives_of_this_machine()


def _archives_of_this_machine() -> dict[str, str]:
    system = _os_release()
    if system.get("ID") != "debian":
        return {}
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CREATED_BY)|$(ORIGIN)|$(REPO_URI)|$(RELEASE)"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    pockets = {
        f"{name}{pocket}": pocket
        for name in (system.get("VERSION_CODENAME"), "stable", "oldstable", "testing")
        for pocket in ("", "-updates", "-security")
    }
    archives: dict[str, str] = {}
    for line in targets.splitlines():
        created_by, origin, address, release = line.split("|")
        # The origin stays unexpanded until the first apt-get update; afterwards it identifies third parties.
        if created_by == "Packages" and origin in ("Debian", "$(ORIGIN)") and release in pockets:
            archives.setdefault(pockets[release], address)
    return archives


def _os_release() -> dict[str, str]:
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return {name: value.strip('"') for name, _equals, value in (line.partition("=") for line in lines)}


def proxies() -> list[str]:
    """apt options of this machine that a download may need: its proxies."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return [
        line.rstrip(";")
        for line in dump.splitlines()
        if line.startswith(("Acquire::http::Proxy", "Acquire::https::Proxy")) and not line.endswith('"";')
    ]
