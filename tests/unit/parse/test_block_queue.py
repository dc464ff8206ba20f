# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queue files, the kernel's conversion of written values, and mounts. The oracle is the kernel's C code."""

from __future__ import annotations

import ctypes
from typing import Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import block_queue, mountinfo
from hypothesis import given
from hypothesis import strategies as st


def kernel_timeout(milliseconds: int, hz: int) -> int:
    """What queue/io_timeout shows after `milliseconds` were written: each step in the type that the kernel has."""
    longest = (1 << 62) - 2  # MAX_JIFFY_OFFSET
    ticks = longest if ctypes.c_int(milliseconds).value < 0 else (milliseconds * hz + 999) // 1000
    stored = ctypes.c_uint(ticks).value  # q->rq_timeout
    if 1000 % hz == 0:
        return ctypes.c_uint(1000 // hz * stored).value
    return ctypes.c_uint((stored * 10 + 2) // 3).value  # HZ 300


@given(st.integers(1, (1 << 32) - 1), st.sampled_from((100, 250, 300, 1000)))
def test_a_timeout_reads_back_as_the_kernel_rounds_it(milliseconds: int, hz: int) -> None:
    now = str(kernel_timeout(milliseconds, hz))
    assert block_queue.holds("io_timeout", now, str(milliseconds))
    remembered = block_queue.remembered("io_timeout", str(milliseconds))
    assert block_queue.remembered("io_timeout", now) == remembered


@given(st.integers(1, 1 << 31), st.integers(1, 40))
def test_another_timeout_is_not_mistaken_for_the_wanted_one(milliseconds: int, more: int) -> None:
    now = kernel_timeout(milliseconds, 1000) + more
    possible = {kernel_timeout(milliseconds, hz) for hz in (100, 250, 300)}
    assert block_queue.holds("io_timeout", str(now), str(milliseconds)) == (now in possible)


@pytest.mark.parametrize(
    ("shown", "holds"),
    [("4294967294", True), ("4294967288", True), ("4294966296", True), ("30000", False), ("255000", False)],
)
def test_the_longest_timeout(shown: str, holds: bool) -> None:
    """4294966296 is what nvme_core.io_timeout=4294967295 shows on Amazon Linux."""
    assert block_queue.holds("io_timeout", shown, "4294967295") is holds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[none] mq-deadline kyber bfq", ("none", ("none", "mq-deadline", "kyber", "bfq"))),
        ("noop deadline [cfq]", ("cfq", ("noop", "deadline", "cfq"))),
        ("none", ("none", ("none",))),
        ("mq-deadline none", (None, ("mq-deadline", "none"))),
        ("[none] ../../etc", (None, ())),
        ("", (None, ())),
        (None, (None, ())),
    ],
)
def test_schedulers(text: Optional[str], expected: Tuple[Optional[str], Tuple[str, ...]]) -> None:
    assert block_queue.schedulers(text) == expected


@pytest.mark.parametrize(
    ("attribute", "now", "wanted", "holds"),
    [
        ("nr_requests", "4", "1", True),
        ("nr_requests", "4", "5", False),
        ("read_ahead_kb", "960", "1000", True),
        ("read_ahead_kb", "992", "1000", True),
        ("read_ahead_kb", "980", "1000", False),
        ("nomerges", "1", "2", False),
        ("scheduler", "none", "none", True),
        ("scheduler", None, "none", False),
    ],
)
def test_what_holds(attribute: str, now: Optional[str], wanted: str, holds: bool) -> None:
    assert block_queue.holds(attribute, now, wanted) is holds


def test_mounts() -> None:
    text = (
        "22 1 259:1 / / rw,relatime shared:1 master:2 - ext4 /dev/root rw\n"
        "30 22 0:45 / /srv\\040data rw - btrfs /dev/nvme1n1 rw,space_cache\n"
        "a line of another form\n"
        "31 22 x:1 / /bad rw - ext4 /dev/sda rw\n"
    )
    assert mountinfo.parse(text) == (
        mountinfo.Mount("259:1", "/", "ext4", "/dev/root"),
        mountinfo.Mount("0:45", "/srv data", "btrfs", "/dev/nvme1n1"),
    )
