# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lines of scripts write: the files that a command copies to, and those that find finds by their names."""

from __future__ import annotations

from typing import Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse.boot_commands import GOVERNOR, settings

SWAPPINESS = "/proc/sys/vm/swappiness"


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (f"cp {SWAPPINESS} /var/tmp/before", set()),
        (f"cp /var/tmp/before {SWAPPINESS}", {SWAPPINESS}),
        (f"install -m 644 /etc/value {SWAPPINESS}", {SWAPPINESS}),
        (f"dd if=/etc/value of={SWAPPINESS}", {SWAPPINESS}),
        (f"dd if={SWAPPINESS} of=/var/tmp/before", set()),
        (f"echo 1 | tee /var/log/x {SWAPPINESS}", {SWAPPINESS}),
        ("find /sys/devices -name scaling_governor -exec sh -c 'echo performance > {}' \\;", {GOVERNOR}),
        ("find /sys/devices/system/cpu -name scaling_governor | xargs -I{} sh -c 'echo powersave > {}'", {GOVERNOR}),
        ("for f in $(find /sys/devices -name scaling_governor); do echo performance > $f; done", {GOVERNOR}),
        ("find /sys/class/net/ens5 -name mtu -exec sh -c 'echo 1400 > {}' \\;", {"/sys/class/net/*/mtu"}),
        ("find /proc/sys/vm -name swappiness -exec sh -c 'echo 60 > {}' \\;", {SWAPPINESS}),
    ],
)
def test_the_files_that_a_line_writes(line: str, written: Set[str]) -> None:
    assert {name for name, _value in settings(line) if name.startswith(("/sys/", "/proc/sys/"))} == written
