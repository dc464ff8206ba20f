# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole numbers as a kernel writes them, in what a host or a user says. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_DIGITS = 20  # of 64 bits
_LAST_PROCESS = 1 << 22  # PID_MAX_LIMIT of 64-bit kernels


def is_number(text: str) -> bool:
    """Whether int() gives the number that the text means: it refuses some digits, and thousands of them."""
    return text.isdigit() and text.isascii() and len(text) <= _MOST_DIGITS


def process_numbers(names: Iterable[str]) -> list[int]:
    """The numbers of processes among the names of /proc, or among the lines of cgroup.procs, in order."""
    return sorted(number for number in map(int, filter(is_number, names)) if number <= _LAST_PROCESS)
