# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-rulebook, for the test of docs/rulebooks, in a virtual environment of its own; its rules run in Java."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from dev import ROOT

LOCK = ROOT / "requirements" / "rulebook.txt"
HOME = ROOT / ".cache" / "rulebook"
UV = ROOT / ".venv-uv" / "bin" / "uv"
PROGRAM = HOME / "bin" / "ansible-rulebook"
JAVA = 17  # the oldest that ansible-rulebook takes


def present() -> bool:
    """Whether it can run here, after installing what the lock names unless that was done."""
    if not shutil.which("java"):
        return False
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA:
        return False
    stamp = HOME / ".stamp"
    if not stamp.exists() or stamp.read_text() != LOCK.read_text():
        shutil.rmtree(HOME, ignore_errors=True)
        subprocess.run([str(UV), "venv", "--quiet", "--python", sys.executable, str(HOME)], check=True)
        argv = [str(UV), "pip", "install", "--quiet", "--require-hashes", "--python", str(HOME / "bin" / "python")]
        subprocess.run([*argv, "-r", str(LOCK)], check=True)
        stamp.write_text(LOCK.read_text())
    return True
