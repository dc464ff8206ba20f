# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The browser that tests the report's page: only the tests need it, so `make demo` never installs it."""

from __future__ import annotations

import shutil
from pathlib import Path

from dev.setup import Progress, SetupError, install_packages


def present() -> bool:
    """Whether there is a Chromium, after trying to install it on Debian.

    Ubuntu has Chromium only as a snap, which may not read the folders of the tests.
    """
    if shutil.which("chromium"):
        return True
    release = Path("/etc/os-release")
    if not release.exists() or "ID=debian" not in release.read_text(encoding="utf-8").splitlines():
        return False
    try:
        with Progress().step("Chromium"):
            install_packages(["chromium", "fonts-dejavu-core"], "The report's page is tested in a browser")
    except SetupError as error:
        print(f"  {error}")
    return shutil.which("chromium") is not None
