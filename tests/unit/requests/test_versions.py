# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of an installed program on a host with rpm, and on one with neither database."""

from __future__ import annotations

from pathlib import Path
from typing import List, Sequence

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import TOOL_SECONDS, WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.versions import installed_version

from tests.support.hosts import lay_out


class RpmHost(WritableHost):
    """A host whose rpm knows mongodb-org-server alone."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.asked: List[str] = []

    def command(self, argv: Sequence[str], timeout: float = TOOL_SECONDS) -> str:
        self.asked.append(argv[-1])
        if argv[-1] != "mongodb-org-server":
            raise NearmetalError(f"{argv[0]} failed with code 1: package {argv[-1]} is not installed")
        return "8.0.4\n"


def test_rpm_is_asked_for_one_package_after_the_other(tmp_path: Path) -> None:
    lay_out(tmp_path, {"/usr/bin/rpm": "", "/proc/1/comm": "systemd\n"})
    host = RpmHost(tmp_path)
    assert installed_version(host, ("mongodb-server", "mongodb-org-server", "mongodb")) == "8.0.4"
    assert host.asked == ["mongodb-server", "mongodb-org-server"]


def test_without_a_database_nothing_is_started(tmp_path: Path) -> None:
    host = RpmHost(tmp_path)
    assert installed_version(host, ("mongodb-org-server",)) == ""
    assert host.asked == []
