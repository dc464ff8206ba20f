# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of a driver that gets more queues between two questions, as the kernel answers before and since 6.19."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, List, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import ethtool, ioctl
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import ethtool as records

COMMANDS = (records.GET_CHANNELS, records.GET_RINGS, records.GET_COALESCE)


class Kernel:
    """As net/ethtool/ioctl.c handles strings and counters: it writes to the address without knowing the length."""

    def __init__(self, names: List[str], compares: bool) -> None:
        self.names = names
        self.compares = compares  # the count in the record with its own, since 6.19
        self.grows_after = 0  # questions
        self.grown: List[str] = []

    def ioctl(self, _socket: Any, _request: int, argument: bytes) -> int:
        (address,) = struct.unpack("16xP16x", argument)
        command, *numbers = struct.unpack("=4I", ctypes.string_at(address, 16))
        answer = self._answer(command, numbers)
        ctypes.memmove(address, answer, len(answer))
        if self.grows_after == 1:
            self.names = self.grown
        self.grows_after -= 1
        return 0

    def _answer(self, command: int, numbers: List[int]) -> bytes:
        if command == records.GET_STRING_COUNT:
            return struct.pack("=IIQI", command, 0, 2, len(self.names))
        names = [] if self.compares and numbers[command == records.GET_STRINGS] != len(self.names) else self.names
        if command == records.GET_STRINGS:
            return struct.pack("=III", command, numbers[0], len(names)) + b"".join(
                name.encode().ljust(32, b"\0") for name in names
            )
        return struct.pack("=II", command, len(names)) + struct.pack(f"={len(names)}Q", *range(len(names)))


@pytest.fixture(params=[False, True], ids=["before 6.19", "since 6.19"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel behind the ioctl, with a driver of a few counters."""
    found = Kernel(["bw_in_allowance_exceeded", "queue_0_tx_cnt", "pps_allowance_exceeded"], request.param)
    found.grown = ["suspend", *(f"queue_{queue}_tx_cnt" for queue in range(3000)), *found.names]
    monkeypatch.setattr(ioctl.fcntl, "ioctl", found.ioctl)
    return found


def counters() -> Optional[dict]:
    return ethtool.allowances(Host(), "ens5")


def test_counters_have_their_names(kernel: Kernel) -> None:
    assert counters() == {"bw_in_allowance_exceeded": 0, "pps_allowance_exceeded": 2}


@pytest.mark.parametrize("question", [1, 2])
def test_counters_that_grew_in_between_are_unknown_and_nothing_is_overwritten(kernel: Kernel, question: int) -> None:
    kernel.grows_after = question
    assert counters() is None
    assert counters() is not None


def test_a_too_large_set_of_counters_is_not_requested(kernel: Kernel) -> None:
    kernel.names = ["bw_in_allowance_exceeded"] * (records.MAX_STRINGS + 1)
    assert counters() is None


@pytest.mark.parametrize("size", range(40))
def test_a_short_answer_is_ignored(size: int) -> None:
    record = bytes([255]) * size
    assert (records.count(record), records.strings(record), records.statistics(record)) == (0, [], ())


def test_only_lists_that_may_grow_get_room_for_more() -> None:
    """The room is half a megabyte, which costs an emulated host 9 ms per question."""
    growing = (records.strings_question(records.STATISTICS, 3), records.statistics_question(3))
    assert {records.slack(record) for record in growing} == {32 * records.MAX_STRINGS}
    names = records.CHANNELS, records.RINGS, records.COALESCE
    fixed = [records.question(command, len(fields)) for command, fields in zip(COMMANDS, names)]
    fixed += [records.DRIVER_QUESTION, records.ADDRESS_QUESTION, records.features_question(60)]
    assert {records.slack(record) for record in (*fixed, records.count_question(records.FEATURES))} == {0}
