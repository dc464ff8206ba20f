# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""speedscope, a page that reads folded stacks: of npm, one package without what its command needs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from dev import ROOT
from dev.programs import chromium

HOME = ROOT / ".cache" / "speedscope"
PAGE = HOME / "package" / "dist" / "release" / "index.html"
PACKAGE = "speedscope@1.25.0"
SHA256 = "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03"


def present() -> bool:
    """Whether there is the page and a browser for it, after trying to fetch it."""
    return (PAGE.exists() or _fetched()) and chromium.present()


def _fetched() -> bool:
    npm = shutil.which("npm")
    if npm is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([npm, "pack", PACKAGE], cwd=folder, capture_output=True, check=False).returncode:
            return False
        (path,) = Path(folder).glob("*.tgz")
        if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
            raise ValueError(f"npm's {PACKAGE} isn't the one of {SHA256}")
        shutil.unpack_archive(path, HOME)
    return True
