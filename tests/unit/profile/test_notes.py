# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a profile doesn't show is said, and of a complete one nothing is."""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.folding import Folder
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.notes import notes

GOOD = "a  1 [000] cycles: \n\t    11 f (/b)\n\t    22 main (/b)\n\n"
KERNEL = (
    "a  1 [000] cycles: \n\tffffffff81000000 [unknown] ([kernel.kallsyms])\n\t    22 main (/b)\n\t    23 start (/b)\n\n"
)
JIT = "java  2 [000] cycles: \n\t    7f00 [unknown] (/tmp/perf-2.map)\n\t    7f01 start (/b)\n\n"
STRIPPED = "db  3 [000] cycles: \n\t    7f00 [unknown] (/opt/db)\n\t    7f01 start (/b)\n\n"
ALONE = "c  4 [000] cycles: \n\t    11 f (/b)\n\n"
IDLE = "swapper  0 [000] cycles: \n\tffffffff81000000 native_safe_halt ([kernel.kallsyms])\n\n"
PLAIN = (False, False)


@pytest.mark.parametrize(
    ("text", "event", "lost", "around", "said"),
    [
        (GOOD, "cycles", 0, PLAIN, []),
        (GOOD, "cpu-clock", 0, PLAIN, ["no CPU counters here"]),
        (GOOD, "cycles", 0, (False, True), ["this is a container"]),
        (GOOD, "cycles", 7, PLAIN, ["perf lost 7 pieces of its recording"]),
        (KERNEL, "cycles", 0, PLAIN, ["100% of the samples are in functions of the kernel that have no name"]),
        (KERNEL, "cycles", 0, (True, False), ["that have no name: kernel.kptr_restrict is 2"]),
        (JIT, "cycles", 0, PLAIN, ["100% of the samples are in code that a program compiled while it ran"]),
        (STRIPPED, "cycles", 0, PLAIN, ["in programs without symbols, most in [db]: "]),
        (ALONE, "cycles", 0, PLAIN, ["of 100% of the samples no caller is known"]),
        (ALONE + 19 * GOOD, "cycles", 0, PLAIN, []),
        (IDLE, "cycles", 0, PLAIN, ["all CPUs were idle"]),
    ],
)
def test_what_is_missing_is_said(
    text: str, event: str, lost: int, around: "tuple[bool, bool]", said: "list[str]"
) -> None:
    folder = Folder()
    folder.add(text.splitlines(keepends=True))
    folder.end()
    found = notes(folder, event, lost, *around)
    assert len(found) == len(said)
    assert all(part in sentence for part, sentence in zip(said, found))


def test_what_had_no_room_is_said() -> None:
    folder = Folder(nodes=2)
    folder.add((GOOD * 3).splitlines(keepends=True))
    folder.end()
    assert "of 3 samples only the callers are known" in notes(folder, "cycles", 0, *PLAIN)[0]
