# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""axe-core, which looks for what a page withholds from people who can't see or can't use a mouse.

The script travels in a package that would also bring a driver for browsers; only the script is used.
"""

from __future__ import annotations

import shutil
import subprocess

from dev import ROOT

LOCK = ROOT / "requirements" / "axe.txt"
HOME = ROOT / ".cache" / "axe"
UV = ROOT / ".venv-uv" / "bin" / "uv"


def fetch() -> None:
    """Install the package that the lock names, without what it asks for, unless that was done."""
    stamp = HOME / ".stamp"
    if stamp.exists() and stamp.read_text() == LOCK.read_text():
        return
    shutil.rmtree(HOME, ignore_errors=True)
    argv = [str(UV), "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", str(HOME)]
    subprocess.run([*argv, "-r", str(LOCK)], check=True)
    stamp.write_text(LOCK.read_text())


def script() -> str:
    """The text of axe-core, after fetching it if need be."""
    fetch()
    (path,) = HOME.rglob("axe.min.js")
    return path.read_text(encoding="utf-8")
