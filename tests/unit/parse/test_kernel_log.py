# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's log says about the TSC and its switches of the clock source."""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import kernel_log


@pytest.mark.parametrize(
    "line",
    [
        "tsc: Marking TSC unstable due to clocksource watchdog",
        "Marking TSC unstable due to check_tsc_sync_source failed",
        "clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable",
        "Clocksource tsc unstable (delta = 6824818792 ns).",
    ],
)
@pytest.mark.parametrize(
    "prefix",
    ["", "[   12.345678] ", "<4>[   12.345678] ", "4,123,12345678,-;", "[    1.2][   T1] ", "[   12.345678] kernel: "],
)
def test_each_wording_against_the_tsc_is_found_without_its_prefix(prefix: str, line: str) -> None:
    log = "6,1,0,-;Linux version 5.10\n" + (prefix + line + "\n") * 2
    assert kernel_log.tsc_unstable_marks(log) == (line,)


def test_a_log_without_warnings_has_no_marks() -> None:
    log = "tsc: Refined TSC clocksource calibration: 2999.998 MHz\nclocksource: Switched to clocksource tsc\n"
    assert kernel_log.tsc_unstable_marks(log) == ()
    assert kernel_log.tsc_unstable_marks("Marking clocksource 'hpet' as unstable") == ()


def test_switches_are_reported_in_order() -> None:
    log = "[ 0.1] Switching to clocksource xen\n6,9,2,-;clocksource: Switched to clocksource tsc\n SUBSYSTEM=cpu\n"
    assert kernel_log.clocksource_switches(log) == ("xen", "tsc")


def test_marks_are_few_and_printable() -> None:
    log = "".join("Marking TSC unstable due to \x1b[31m{}{}\n".format(number, "x" * 500) for number in range(50))
    marks = kernel_log.tsc_unstable_marks(log)
    assert len(marks) == kernel_log.MAX_MARKS
    assert all(mark.isprintable() and len(mark) <= kernel_log.MAX_MARK_LENGTH for mark in marks)


@pytest.mark.parametrize(("text", "number"), [("6,339,5140900,-;x", 339), ("6,0,0,-;x", 0), ("[ 0.0] x", 0), ("", 0)])
def test_the_first_record_says_whether_the_ring_lost_the_boot(text: str, number: int) -> None:
    assert kernel_log.first_sequence(text) == number
