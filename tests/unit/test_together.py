# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work on several hosts at once: in processes of their own, which all end with the first that fails."""

from __future__ import annotations

import multiprocessing
import signal
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._together import together

Answer = Dict[str, Any]


def fails(answer: Answer) -> bool:
    return bool(answer.get("failed"))


def endless() -> Answer:
    while True:
        signal.pause()


def test_calls_run_at_the_same_time_and_answer_in_their_order() -> None:
    all_there = multiprocessing.get_context("fork").Barrier(3)

    def call(number: int) -> Answer:
        all_there.wait(60)
        return {"host": number}

    assert together([lambda number=number: call(number) for number in range(3)], fails) == [
        {"host": 0},
        {"host": 1},
        {"host": 2},
    ]


def test_one_that_fails_ends_the_others_whatever_this_process_does_when_it_is_to_end() -> None:
    before = signal.signal(signal.SIGTERM, lambda *_arguments: None)
    try:
        assert together([endless, lambda: {"failed": True}, endless], fails) == [{}, {"failed": True}, {}]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_one_that_fails_ends_the_others() -> None:
    assert together([endless, lambda: {"failed": True}, endless], fails) == [{}, {"failed": True}, {}]


def test_an_error_of_one_is_raised_here() -> None:
    def broken() -> Answer:
        raise NearmetalError("no route to client-2")

    def lost() -> Answer:
        raise OSError("which nobody expects")

    with pytest.raises(NearmetalError, match=r"^no route to client-2$"):
        together([endless, broken], fails)
    with pytest.raises(NearmetalError, match=r"ended without an answer$"):
        together([lost, endless], fails)
