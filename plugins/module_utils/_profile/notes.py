# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a profile doesn't show, and why, each in one sentence. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import List

from .._words import counted
from .folding import JIT, Folder
from .recording import CLOCK

_MANY = 0.1  # of the samples: what is worth a sentence


def notes(folder: Folder, event: str, lost: int, hides_names: bool, is_container: bool) -> List[str]:
    """The sentences, of which a complete profile has none."""
    said = []
    whole = folder.samples or 1
    nameless = dict(folder.nameless)
    kernel = sum(nameless.pop(name) for name in list(nameless) if name.startswith("[kernel]"))
    compiled = nameless.pop(JIT, 0)
    if is_container:
        said.append("this is a container: perf may see its own processes alone, and symbols of the host are missing")
    if event == CLOCK:
        said.append(
            "no CPU counters here, as on most virtual machines: a timer took the samples, and what the kernel does with"
            " interrupts off is counted where it allows them again"
        )
    if kernel:
        why = ": kernel.kptr_restrict is 2, which kernel_names changes meanwhile" if hides_names else ""
        said.append(f"{kernel / whole:.0%} of the samples are in functions of the kernel that have no name{why}")
    if compiled > _MANY * whole:
        said.append(
            f"{compiled / whole:.0%} of the samples are in code that a program compiled while it ran, and that has no"
            " name: have the program write /tmp/perf-PID.map, as Java does with -XX:+DumpPerfMapAtExit and Node.js with"
            " --perf-basic-prof"
        )
    if sum(nameless.values()) > _MANY * whole:
        most = sorted(nameless, key=lambda name: -nameless[name])[:3]
        said.append(
            f"{sum(nameless.values()) / whole:.0%} of the samples are in programs without symbols, most in"
            f" {', '.join(most)}: install their debug symbols to see the names"
        )
    if folder.rootless > _MANY * whole:
        said.append(
            f"of {folder.rootless / whole:.0%} of the samples no caller is known, because the program was compiled"
            " without frame pointers: its functions stand side by side, and their own shares are right"
        )
    if lost:
        said.append(f"perf lost {counted(lost, 'piece')} of its recording: record with a lower frequency")
    if folder.cut:
        said.append(f"of {counted(folder.cut, 'sample')} only the callers are known: there were too many functions")
    if not folder.samples:
        said.append("all CPUs were idle: record while the host has its load")
    return said
