# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that single tests need, out of Debian's packages.

The packages are unpacked and not installed: an installed one would start a server on the developer's machine, or
configure it at its next boot.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Dict, Tuple

from dev import ROOT


class Packages:
    """Packages of the distribution below .cache, each with those of its files that the tests need.

    With `libraries`, what a package depends on and this machine lacks is unpacked too.
    """

    def __init__(self, name: str, files: Dict[str, Tuple[str, ...]], libraries: bool = False) -> None:
        self.home = ROOT / ".cache" / name
        self._files = files
        self._libraries = libraries

    def present(self) -> bool:
        """Whether all files are there, after trying to unpack the packages of those that aren't."""
        for package, files in self._files.items():
            if not all(map(self.path, files)) and shutil.which("apt-get"):
                self._unpack(package)
        return all(self.path(file) for files in self._files.values() for file in files)

    def path(self, file: str) -> str:
        """Where a file of a package is, or a program of the machine with its name; empty without either."""
        unpacked = next(self.home.glob(file), None)  # a folder may have the version in its name
        return str(unpacked) if unpacked is not None else shutil.which(Path(file).name) or ""

    def _unpack(self, package: str) -> None:
        names = [package]
        if self._libraries:
            words = ["apt-get", "-s", "-o", "APT::Install-Recommends=false", "install", package]
            plan = subprocess.run(words, capture_output=True, text=True, check=False).stdout
            names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")] or names
        with tempfile.TemporaryDirectory() as folder:
            # Without permissions for apt's own user the download still works, with a warning.
            done = subprocess.run(["apt-get", "-q", "download", *names], cwd=folder, capture_output=True, check=False)
            for file in Path(folder).glob("*.deb") if not done.returncode else ():
                self.home.mkdir(parents=True, exist_ok=True)
                subprocess.run(["dpkg-deb", "--extract", str(file), str(self.home)], check=True)


MODULES = "usr/lib/python3/dist-packages"
CLOUD_INIT = Packages(
    "cloud-init",
    {"cloud-init": ("usr/bin/cloud-init",), "python3-configobj": (f"{MODULES}/configobj/__init__.py",)},
)
SERVERS = Packages(
    "servers",
    {
        "apache2-bin": ("usr/sbin/apache2",),
        "haproxy": ("usr/sbin/haproxy",),
        "mariadb-server": ("usr/sbin/mariadbd",),
        "memcached": ("usr/bin/memcached",),
        "nginx-light": ("usr/sbin/nginx",),
        "postgresql": ("usr/lib/postgresql/*/bin/postgres",),
        "redis-server": ("usr/bin/redis-server",),
        "varnish": ("usr/sbin/varnishd",),
    },
    libraries=True,
)
HAPROXY = Packages("haproxy", {"haproxy": ("usr/sbin/haproxy",), "socat": ("usr/bin/socat",)}, libraries=True)
PACKER = Packages("packer", {"packer": ("usr/bin/packer",)})
