# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files with a name and a number in each line."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import counts


def test_counts_are_lines_of_a_name_and_a_number() -> None:
    assert counts.parse("pswpin 3\nnr_free 18446744073709551615\nNode 0\nbad -1\n") == {
        "pswpin": 3,
        "nr_free": 2**64 - 1,
    }
