# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of a package in Debian's database, which only root can write. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional, Sequence

from .._parse import versions
from .host import Host

DEBIAN = "/var/lib/dpkg/status"
_LONGEST = 64 * 1024 * 1024


def of_debian(host: Host, packages: Sequence[str]) -> Optional[str]:
    """The version of the first of these packages that is installed; empty if none is, None without the database."""
    text = host.text(DEBIAN, _LONGEST) if packages else None
    installed = versions.debian(text, packages) if text else {}
    return next((installed[package] for package in packages if package in installed), "" if text else None)
