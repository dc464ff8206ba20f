# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/net/softnet_stat: the sum of all CPUs, whatever columns follow."""

from __future__ import annotations

from typing import List, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import softnet
from hypothesis import given
from hypothesis import strategies as st

COUNT = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(COUNT, COUNT, COUNT), min_size=1, max_size=9), st.sampled_from([6, 8, 10, 12]))
def test_softnet_is_the_sum_of_all_cpus_whatever_columns_follow(rows: List[Tuple[int, int, int]], more: int) -> None:
    lines = ["".join(f"{number:08x} " for number in (*row, *[7] * more)).rstrip() for row in rows]
    found = softnet.parse("\n".join(lines) + "\n")
    assert found == (sum(row[1] for row in rows), sum(row[2] for row in rows))


def test_softnet_without_a_line_of_its_form_is_none() -> None:
    assert softnet.parse("") is softnet.parse("CPU dropped\n0 0\n") is None
