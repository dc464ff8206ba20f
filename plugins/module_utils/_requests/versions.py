# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of an installed program. PRIVATE to the collection.

It comes from the database of packages, which only root can write. No program of the host is started for it but rpm,
where its database isn't one of SQLite, as on Amazon Linux 2, RHEL 7 and 8, and SLES.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Sequence

from .._error import NearmetalError
from .._facts.packages import version_of
from .._host.host import WritableHost
from .._parse import versions

_RPM = "/usr/bin/rpm"
_SECONDS = 60.0  # while packages are installed, a database of Berkeley's lets nobody read


def installed_version(host: WritableHost, packages: Sequence[str]) -> str:
    """The version of the first of these packages that is installed; empty if none is, or nobody can say."""
    version = version_of(host, packages)
    if version is None and packages and host.exists(_RPM):
        with suppress(NearmetalError):
            # Of all packages those of these names, so that one that isn't installed is no error.
            text = host.command([_RPM, "-qa", "--queryformat", "%{NAME} %{VERSION}\n", *packages], _SECONDS)
            installed = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
            return next((versions.numbers(installed[name]) for name in packages if name in installed), "")
    return version or ""
