# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python interpreters of this machine, for targets and controllers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Optional

# Targets: ansible-core 2.19 manages hosts with Python 3.8-3.13, 2.21 those with 3.9-3.14
# (the support matrix in ansible-core's documentation).
TARGETS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
# Controllers, best first: the oldest for the oldest ansible-core, the newest for the newest.
CONTROLLERS = ("3.11", "3.12", "3.13")
CONTROLLERS_NEWEST = ("3.14", "3.13", "3.12")
# The other ansible-cores that are supported, and the Pythons that each runs on: the best first, the oldest last.
CORES = {
    "2.16": ("3.12", "3.11", "3.10"),
    "2.17": ("3.12", "3.11", "3.10"),
    "2.18": ("3.13", "3.12", "3.11"),
    "2.20": ("3.14", "3.13", "3.12"),
}


def _folders() -> Iterator[Path]:
    """The folders of interpreters. pyenv's shims are left out: a shim of an inactive version exits with 127."""
    for name in os.environ.get("PATH", "").split(os.pathsep):
        if name and Path(name).name != "shims":
            yield Path(name)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", str(home / ".pyenv")))
    yield from sorted(pyenv.glob("versions/*/bin"))
    yield from sorted((home / ".local/share/uv/python").glob("*/bin"))
    yield from (Path("/usr/bin"), Path("/usr/local/bin"))


def _answers(python: Path, version: str) -> bool:
    """Whether the interpreter starts, is of this version, and is not a virtual environment's."""
    code = "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix == sys.base_prefix)"
    try:
        done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout.split() == [version, "True"]


def find(versions: "tuple[str, ...]" = TARGETS) -> Dict[str, Path]:
    """The interpreters found: "3.11" -> its path. Absent versions are left out."""
    folders: List[Path] = []
    for folder in _folders():
        if folder not in folders:
            folders.append(folder)
    interpreters: Dict[str, Path] = {}
    for version in versions:
        for folder in folders:
            python = folder / ("python" + version)
            if python.exists() and _answers(python, version):
                interpreters[version] = python
                break
    return interpreters


def first(interpreters: Dict[str, Path], wanted: "tuple[str, ...]") -> Optional[str]:
    """The first of the wanted versions that was found."""
    return next((version for version in wanted if version in interpreters), None)
