# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/audit.md shows the real output of its commands."""

from __future__ import annotations

from pathlib import Path

from tests.support.report import guide


def test_every_example_prints_what_the_guide_says(tmp_path: Path) -> None:
    documented = [output for _command, output in guide.examples()]
    assert len(documented) >= 5
    assert guide.outputs(tmp_path) == documented
