# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection amazon.aws, for the tests of the dynamic inventory: a slice of the package ansible from PyPI.

Many contributors can't reach Galaxy, and the set-up needs PyPI anyway. Runs on the system's own python3 with nothing
installed but pip.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from dev import ROOT

LOCK = ROOT / "requirements" / "amazon_aws.txt"
HOME = ROOT / ".cache" / "amazon_aws"
WANTED = "ansible_collections/amazon/aws/"


def is_present() -> bool:
    """Whether the slice is the one of this lock."""
    stamp = HOME / ".stamp"
    return stamp.exists() and stamp.read_text() == LOCK.read_text()


def fetch(python: Path) -> None:
    """Download the wheel that the lock names, check its hash, and unpack the slice."""
    with tempfile.TemporaryDirectory() as folder:
        # The wheel asks for a newer Python than the slice needs.
        argv = [str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        argv += ["--require-hashes", "--only-binary=:all:", "--python-version", "3.12", "-d", folder, "-r", str(LOCK)]
        subprocess.run(argv, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as content:
            content.extractall(HOME, [name for name in content.namelist() if name.startswith(WANTED)])
    (HOME / ".stamp").write_text(LOCK.read_text())


if __name__ == "__main__":
    if not is_present():
        fetch(Path(sys.executable))
