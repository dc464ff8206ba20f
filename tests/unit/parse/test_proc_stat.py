# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/stat: the times of each CPU."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import proc_stat


def test_a_line_of_a_cpu_that_was_cut_off_counts_for_none() -> None:
    text = "cpu0 100 0 100 9000 0 10 1\ncpu1 100 0 100 9000 0 10 10 3 0 0\n"
    assert proc_stat.parse(text) == {1: proc_stat.Times(total=9223, interrupts=20, stolen=3)}
