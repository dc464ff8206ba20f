# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the working copy, and where the recorded machines are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from dev import ROOT


def files(*patterns: str) -> "list[str]":
    """The files that git knows or would add, relative to the root, sorted. Patterns are git's."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    names = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    return sorted(names)


def shared() -> "Path | None":
    """The folder with the recorded machines (NEARMETAL_SHARED, else ../shared); None if it is absent."""
    folder = Path(os.environ.get("NEARMETAL_SHARED", str(ROOT.parent / "shared")))
    return folder if (folder / "data" / "machines").is_dir() else None
