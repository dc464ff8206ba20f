# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of an installed program on a host with rpm, and on one with neither database."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import Unanswered
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import TOOL_SECONDS, WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.versions import installed_version

from tests.support.hosts import lay_out

# As rpm 4.18 prints them, in the order of its database.
INSTALLED = "redis 7.2.4\nmongodb-org-server 8.0.4\nodd\n"
BERKELEY, NDB = "/var/lib/rpm/Packages", "/usr/lib/sysimage/rpm/Packages.db"


class RpmHost(WritableHost):
    """A host whose rpm prints what is installed of what it is asked for, or doesn't end."""

    def __init__(self, root: Path, answers: bool = True) -> None:
        super().__init__(str(root))
        self.answers = answers
        self.asked: List[List[str]] = []

    def command(self, argv: Sequence[str], timeout: float = TOOL_SECONDS) -> str:
        self.asked.append(list(argv))
        assert timeout <= 60
        if not self.answers:
            raise Unanswered(f"{argv[0]} did not end within {timeout:.0f} s")
        return "".join(f"{line}\n" for line in INSTALLED.splitlines() if line.split()[0] in argv)


@pytest.mark.parametrize("database", [BERKELEY, NDB])
@pytest.mark.parametrize(
    ("packages", "version"),
    [
        (("mongodb-server", "mongodb-org-server", "redis"), "8.0.4"),
        (("redis", "mongodb-org-server"), "7.2.4"),
        (("mongodb-server",), ""),
        (("odd",), ""),
    ],
)
def test_rpm_is_asked_once_where_its_database_is_its_own(
    packages: Sequence[str], version: str, database: str, tmp_path: Path
) -> None:
    lay_out(tmp_path, {"/usr/bin/rpm": "", database: "\0\0\1\0", "/proc/1/comm": "systemd\n"})
    host = RpmHost(tmp_path)
    assert installed_version(host, packages) == version
    assert len(host.asked) == 1


def test_rpm_that_waits_for_its_database_is_asked_no_second_time(tmp_path: Path) -> None:
    lay_out(tmp_path, {"/usr/bin/rpm": "", BERKELEY: ""})
    host = RpmHost(tmp_path, answers=False)
    assert installed_version(host, ("mongodb-server", "mongodb-org-server")) == ""
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    ("packages", "files"), [(("redis",), {}), ((), {"/usr/bin/rpm": ""})], ids=["no rpm", "no package"]
)
def test_else_nothing_is_started(packages: Sequence[str], files: Dict[str, str], tmp_path: Path) -> None:
    lay_out(tmp_path, {"/proc/1/comm": "systemd\n", **files})
    host = RpmHost(tmp_path)
    assert installed_version(host, packages) == ""
    assert host.asked == []
