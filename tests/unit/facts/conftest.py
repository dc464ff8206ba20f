# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that a test writes by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Mapping

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host


@pytest.fixture
def host_of(root: Path) -> Callable[[Mapping[str, str]], Host]:
    """Writes files by absolute path, "-> target" for a symbolic link, and gives the host that has them."""

    def build(files: Mapping[str, str]) -> Host:
        for name, content in files.items():
            path = root / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith("-> "):
                path.symlink_to(content[3:])
            else:
                path.write_bytes(content.encode("utf-8", "surrogateescape"))
        return Host(str(root))

    return build
