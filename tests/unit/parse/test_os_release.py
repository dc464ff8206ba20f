# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/os-release."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import os_release


def test_os_release() -> None:
    text = """# comment
NAME="Amazon Linux"
ID='amzn'
VERSION_ID="2"
VERSION_ID=2023
PRETTY="a \\"b\\" \\$c"
bad line
"""
    found = os_release.parse(text)
    assert found == {"NAME": "Amazon Linux", "ID": "amzn", "VERSION_ID": "2023", "PRETTY": 'a "b" $c'}
