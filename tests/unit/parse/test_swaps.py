# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap areas, the disks below them, and how long a disk was in use."""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import swaps


def test_swap_areas() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/nvme0n1p2                          partition\t4194300\t\t0\t\t-2\n"
        "/srv/some\\040file                       file\t\t4194300\t\t0\t\t-3\n"
    )
    assert swaps.parse(text) == ["nvme0n1p2", ""]
    assert swaps.parse(swaps.render(["nvme0n1p2", ""])) == ["nvme0n1p2", ""]
    assert swaps.parse("") is None


@pytest.mark.parametrize(
    ("device", "disk"),
    [
        ("nvme1n1p1", "nvme1n1"),
        ("nvme1n10p1", "nvme1n10"),
        ("nvme1n1", "nvme1n1"),
        ("xvda2", "xvda"),
        ("sda15", "sda"),
        ("dm-0", "dm-0"),
    ],
)
def test_the_disk_of_a_partition(device: str, disk: str) -> None:
    disks = "nvme1n1 nvme1n1p1 nvme1n10 nvme1n10p1 xvda xvda2 sda sda15 dm-0"
    assert swaps.disk_of(device, dict.fromkeys(disks.split(), 0)) == disk


@pytest.mark.parametrize("extra", ["", " 0 0 0 0", " 0 0 0 0 5 6"])
def test_how_long_a_disk_was_in_use(extra: str) -> None:
    """Documentation/admin-guide/iostats.rst: field 10 after the name; Linux 4.18 and 5.5 added more."""
    assert swaps.in_use(f" 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11{extra}\n") == {"nvme0n1": 10}
