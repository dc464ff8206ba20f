# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a printed command as its reader would: with this Python's Ansible and this collection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]


def run(place: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What a command printed that ran in the folder `place`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NEARMETAL_"))}
    program, *arguments = words
    return subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=place,
        env={
            **clean,
            "ANSIBLE_COLLECTIONS_PATH": str(PROJECT / ".ansible/collections"),
            "ANSIBLE_STDOUT_CALLBACK": "nearmetal.ec2.fleet",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
