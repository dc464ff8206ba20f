# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of an installed program. PRIVATE to the collection.

It comes from the database of packages, which only root can write. No program of the host is started for it but rpm.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Sequence

from .._error import NearmetalError
from .._facts.packages import version_of
from .._host.host import WritableHost
from .._parse import versions

_RPM = "/usr/bin/rpm"


def installed_version(host: WritableHost, packages: Sequence[str]) -> str:
    """The version of the first of these packages that is installed; empty if none is, or nobody can say."""
    version = version_of(host, packages)
    if version is None and host.exists(_RPM):
        for package in packages:
            with suppress(NearmetalError):  # it isn't installed
                return versions.numbers(host.command([_RPM, "-q", "--queryformat", "%{VERSION}\n", package]))
    return version or ""
