# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No parser needs more than linear time for a large text, whatever is in it.

Nothing is timed: a parser whose cost grows with the square of its text isn't through with these before the suite is
ended.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Callable

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import (
    boot_entry,
    boot_line,
    kernel_log,
    link_settings,
)

from tests.unit.properties.test_any_bytes import PARSERS

SIZE = 100_000
# Repeated elements of a text: each begins something whose end a parser searches.
PIECES = (
    "1",
    "1,",
    "[",
    "[ 1.1] ",
    "a=\n",
    "options ",
    "options $kernelopts ",
    "options" + " " * 1000,
    "initrd a\n",
    "blkfront: ",
    "blkfront: xvda: barrier: enabled\n",
    "Marking TSC unstable ",
    "unstable\n",
    "Name=* ",
    "Name=a\n",
    '"',
    'GRUB_CMDLINE_LINUX="" ',
    "1: 1 1 PCI-edge a, b, ",
    "-Tx-Rx-1",
)
HEADS = ("", "[Match]\nName=", "### BEGIN /etc/grub.d/10_linux ###\nlinux a\n")


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("parser", PARSERS)
def test_a_parser_reads_a_large_text(parser: Callable[[str], Any], piece: str) -> None:
    for head in HEADS:
        with suppress(NearmetalError):
            parser(head + piece * (SIZE // len(piece)))


def test_the_last_line_of_a_large_log_is_found() -> None:
    line = (
        "6,339,5140900,-;clocksource: Switched to clocksource tsc\n4,340,5140901,-;tsc: Marking TSC unstable due to x\n"
    )
    log = "1" * 4_000_000 + "\n" + "6,1,2,-;unstable\n" * 10_000 + line
    assert kernel_log.tsc_unstable_marks(log) == ("tsc: Marking TSC unstable due to x",)
    assert kernel_log.clocksource_switches(log) == ("tsc",)


def test_a_message_is_found_anywhere_in_its_line() -> None:
    assert list(kernel_log.messages("[ 1.5] one word\nnone\n6,1,2,-;a word, a word\nword", "word")) == [
        "one word",
        "a word, a word",
        "word",
    ]
    far = list(kernel_log.messages("x" * 5000 + "word" + "y" * 5000 + "\nword", "word"))
    assert far == ["x" * 1024 + "word" + "y" * 1020, "word"]


def test_a_variable_that_stands_in_itself_makes_no_endless_entry() -> None:
    variables = {"kernelopts": "$kernelopts a " * 5000}
    assert len(boot_entry.arguments(("$kernelopts " * 5000,), variables)) == boot_entry.MAX_ARGUMENTS
    assert boot_entry.arguments(("ro $kernelopts $nothing quiet",), {"kernelopts": "a b"}) == ("ro", "a", "b", "quiet")


@pytest.mark.parametrize(
    ("text", "line"), [("options  a b", "a b"), ("options \n", ""), ("options $kernelopts", "$kernelopts")]
)
def test_the_arguments_of_an_entry(text: str, line: Any) -> None:
    assert boot_line.read(boot_line.ENTRY, text) == line


@pytest.mark.parametrize("glob", ["[e-1-1]", "[", "[!", "[]", "*" * 5, "e" * 65, "[[:alpha:]]", "\\"])
def test_a_malformed_glob_matches_nothing(glob: str) -> None:
    lines = link_settings.lines(f"[Match]\nName={glob}")
    assert not link_settings.matches(lines, {"Name": "eth0"})
    assert link_settings.matches(link_settings.lines("[Match]\nName=ens* eth[0-9]"), {"Name": "eth0"})
