# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The new shape of lab/README.md is valid: ten lines, with these values. tests/lab/hosts/test_new_shape.py boots it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from lab import shape
from tests.support.lab.new_shape import LINES, example


def test_the_example_is_ten_lines_that_say_what_differs(tmp_path: Path) -> None:
    assert len(LINES) == 10
    example_shape, default = shape.load(str(example(tmp_path))), shape.load("default")
    assert (
        example_shape.sockets,
        example_shape.cores,
        example_shape.threads,
        example_shape.nodes,
        example_shape.memory_mib,
    ) == (1, 1, 2, 1, 512)
    assert example_shape.kernel_args == "tsc=reliable mitigations=off"
    assert example_shape.smbios["system"]["product"] == "c5.large"
    (disk,) = example_shape.disks
    assert (disk.device, disk.size_mib) == ("virtio-blk-pci,serial=vol1", 64)
    keys = {line.split(" = ")[0].split(".")[0] for line in LINES if " = " in line}
    same = {field.name for field in fields(default)} - keys - {"name", "smbios"}
    assert {name for name in same if getattr(example_shape, name) != getattr(default, name)} == set()
