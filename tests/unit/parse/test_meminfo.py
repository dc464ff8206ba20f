# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/meminfo, and that of a node."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import meminfo


def test_meminfo_is_in_bytes_where_the_file_says_kb() -> None:
    text = "MemTotal:       16384 kB\nActive(anon):       8 kB\nHugePages_Total:       3\nbroken\n"
    assert meminfo.parse(text) == {"MemTotal": 16384 * 1024, "Active(anon)": 8192, "HugePages_Total": 3}


def test_meminfo_of_a_node() -> None:
    assert meminfo.parse("Node 33 MemTotal:       4 kB\nNode 33 HugePages_Free:      0\n")["MemTotal"] == 4096
