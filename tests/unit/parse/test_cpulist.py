# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU lists and masks, against Python's own arithmetic and the tools of this machine."""

from __future__ import annotations

import os
from typing import FrozenSet

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import cpulist, cpumask
from hypothesis import given
from hypothesis import strategies as st

SETS = st.frozensets(st.integers(0, 1200), max_size=200)


@given(cpus=SETS)
def test_a_list_comes_back_as_it_was(cpus: FrozenSet[int]) -> None:
    assert cpulist.parse(cpulist.render(cpus)) == tuple(sorted(cpus))


@given(cpus=SETS)
def test_a_list_is_as_short_as_the_kernel_writes_it(cpus: FrozenSet[int]) -> None:
    text = cpulist.render(cpus)
    starts = {cpu for cpu in cpus if cpu - 1 not in cpus}
    assert len([part for part in text.split(",") if part]) == len(starts)


@given(cpus=SETS, width=st.integers(0, 2000))
def test_a_mask_is_the_number_with_these_bits(cpus: FrozenSet[int], width: int) -> None:
    text = cpumask.render(cpus, width)
    assert int(text.replace(",", ""), 16) == sum(1 << cpu for cpu in cpus)
    assert all(len(word) == 8 for word in text.split(","))
    assert len(text.split(",")) * 32 >= width
    assert cpumask.parse(text) == tuple(sorted(cpus))


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        ("\n", ()),
        ("0\n", (0,)),
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("0,64", (0, 64)),
        (" 7 , 1-2 ", (1, 2, 7)),
        ("3,3,2-4", (2, 3, 4)),
    ],
)
def test_lists(text: str, cpus: "tuple[int, ...]") -> None:
    assert cpulist.parse(text) == cpus


@pytest.mark.parametrize("text", ["a", "1-", "-1", "3-1", "1--2", "1,,2", "0x3", "0-65536", "1 2", "²", "(null)"])
def test_malformed_lists(text: str) -> None:
    with pytest.raises(NearmetalError, match="list of CPUs"):
        cpulist.parse(text)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("ff\n", tuple(range(8))),
        ("1,00000000\n", (32,)),
        ("00000000,00000000,80000001", (0, 31)),
        (",,1", (0,)),
        ("1,,", (64,)),
        ("0x5", (0, 2)),
        ("00000000", ()),
        ("FFFF0000", tuple(range(16, 32))),
    ],
)
def test_masks(text: str, cpus: "tuple[int, ...]") -> None:
    assert cpumask.parse(text) == cpus


@pytest.mark.parametrize("text", ["", ",", "g", "123456789", "-1", "0x", "1 2"])
def test_malformed_masks(text: str) -> None:
    with pytest.raises(NearmetalError, match="mask of CPUs"):
        cpumask.parse(text)


def test_the_full_width_is_what_the_kernel_writes() -> None:
    assert cpumask.render((0, 33), 96) == "00000000,00000002,00000001"
    assert cpumask.render(()) == "00000000"


def test_this_machine_agrees_with_sysconf() -> None:
    with open("/sys/devices/system/cpu/online", encoding="ascii") as stream:
        assert len(cpulist.parse(stream.read())) == os.sysconf("SC_NPROCESSORS_ONLN")
