# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of a package in Debian's or rpm's database, which only root can write. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional, Sequence

from .._parse import versions
from .host import Host

DEBIAN = "/var/lib/dpkg/status"
# As RHEL 9, Amazon Linux 2023 and later ones have it. Older ones, and SUSE, have databases that rpm alone reads.
_RPM = ("/usr/lib/sysimage/rpm/rpmdb.sqlite", "/var/lib/rpm/rpmdb.sqlite")
_LONGEST = 64 * 1024 * 1024
_HEADER = "SELECT blob FROM Packages JOIN Name ON Packages.hnum = Name.hnum WHERE Name.key = ?"


def version_of(host: Host, packages: Sequence[str]) -> Optional[str]:
    """The version of the first of these packages that is installed; empty if none is, None without such a database."""
    text = host.text(DEBIAN, _LONGEST) if packages else None
    if not text:
        return _of_rpm(host, packages) if packages else None
    installed = versions.debian(text, packages)
    return next((installed[package] for package in packages if package in installed), "")


def _of_rpm(host: Host, packages: Sequence[str]) -> Optional[str]:
    place = next((path for path in _RPM if host.exists(path)), None)
    if place is None:
        return None
    try:
        import sqlite3
    except ImportError:  # a Python that was built without it
        return None
    try:
        # Immutable: it is read without a lock, and nothing is written beside it.
        database = sqlite3.connect(f"file:{host.real(place)}?mode=ro&immutable=1", uri=True)
        try:
            rows = (database.execute(_HEADER, (package,)).fetchone() for package in packages)
            return next((versions.rpm(row[0]) for row in rows if row and isinstance(row[0], bytes)), "")
        finally:
            database.close()
    except sqlite3.Error:
        return None
