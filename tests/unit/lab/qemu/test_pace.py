# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host on a busy machine isn't late: the time that it waits for a processor doesn't count."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from lab import process
from lab.qemu import pace

SPIN = "while True: pass"


@pytest.fixture
def crowd() -> Iterator[int]:
    """A process that shares one processor with three others that never rest."""
    cpu = min(os.sched_getaffinity(0))
    argv = ["taskset", "-c", str(cpu), sys.executable, "-c", SPIN]
    programs = [subprocess.Popen(argv) for _number in range(4)]
    yield programs[0].pid
    for program in programs:
        program.kill()
        program.wait()


def test_a_process_that_waits_for_a_processor_has_fewer_seconds_than_the_wall(crowd: int) -> None:
    measured, started = pace.Pace(lambda: crowd), time.monotonic()
    assert process.wait_until(lambda: measured.seconds() > 0.2, 120.0, 0.05)
    on_the_wall = time.monotonic() - started
    assert on_the_wall > 2 * measured.seconds(), "three of four turns are the others'"


def test_the_seconds_of_a_process_that_sleeps_are_those_on_the_wall() -> None:
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        measured, started = pace.Pace(lambda: sleeper.pid), time.monotonic()
        assert process.wait_until(lambda: measured.seconds() > 0.5, 60.0, 0.05)
        assert measured.seconds() > 0.8 * (time.monotonic() - started)
        sleeper.kill()


def test_a_dead_process_has_no_waiting_time() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
        measured = pace.Pace(lambda: ended.pid)
        assert pace.waited(ended.pid) == {}
        assert process.wait_until(lambda: measured.seconds() > 0.1, 60.0, 0.05)
