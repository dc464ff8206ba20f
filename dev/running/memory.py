# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Temporary files in memory: the tests wait mostly for fsync, which costs nothing there."""

from __future__ import annotations

import os
from typing import Dict

FOLDER = "/dev/shm"
ROOMY = 4 * 1024**3
# A simulated host is some 600 files.
MANY_FILES = 500_000


def variables(room: int = ROOMY) -> "Dict[str, str]":
    """TMPDIR in memory, if so many bytes are free there and programs may run there; else empty."""
    if not os.access(FOLDER, os.W_OK):
        return {}
    free = os.statvfs(FOLDER)
    roomy = free.f_bavail * free.f_frsize > room and free.f_favail > MANY_FILES
    return {"TMPDIR": FOLDER} if roomy and not free.f_flag & os.ST_NOEXEC else {}
