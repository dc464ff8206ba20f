# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of programs: those of packages as numbers."""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import versions

STATUS = """\
Package: redis-server
Status: install ok installed
Maintainer: Debian
Version: 5:7.0.15-1~deb12u1
Description: a server
 Package: nginx

Package: mysql-server
Status: hold ok installed
Version: 8.0.39-0ubuntu0.22.04.1

Package: nginx
Status: deinstall ok config-files
Version: 1.22.1-9
"""


def test_only_installed_packages_have_a_version_also_those_on_hold() -> None:
    assert versions.debian(STATUS, ("redis-server", "mysql-server", "nginx", "mongodb-org")) == {
        "redis-server": "7.0.15",
        "mysql-server": "8.0.39",
    }


@pytest.mark.parametrize(("text", "expected"), [("8.0.4", "8.0.4"), ("1:10.11.6-0+deb12u1", "10.11.6"), ("git", "")])
def test_the_numbers_of_a_version(text: str, expected: str) -> None:
    assert versions.numbers(text) == expected
