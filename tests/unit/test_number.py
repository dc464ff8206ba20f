# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole numbers, and the numbers of processes, in text that may be hostile."""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._number import is_number, process_numbers

# int() refuses the first ones and takes those of the second line.
HOSTILE = ["", "²", "1" * 5000, "1.5", "0x1f", "self", "7\0", "\n"]
HOSTILE += ["٣", "-1", "+1", " 1", "1\n", "1_000", "0" * 21]


@pytest.mark.parametrize("text", HOSTILE)
def test_only_what_a_kernel_writes_is_a_number(text: str) -> None:
    assert not is_number(text)
    assert process_numbers([text, "1"]) == [1]


@pytest.mark.parametrize("text", ["0", "7", str(2**64 - 1)])
def test_numbers(text: str) -> None:
    assert is_number(text)


def test_numbers_of_processes_are_sorted_and_at_most_4194304() -> None:
    assert process_numbers(["4194304", "10", "9", "10000000", str(2**31), "cpuinfo"]) == [9, 10, 4194304]
