# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded machines: their tests are collected where the recordings are present."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

from tests.unit.recorded import machines


def pytest_ignore_collect(collection_path: Path) -> Optional[bool]:
    """Without the recordings there is nothing to compare; the closing line says so."""
    return True if collection_path.name.startswith("test_") and not machines.names() else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many recorded machines were compared."""
    total = len(machines.names())
    if not total:
        terminalreporter.write_line("recorded machines absent: set NEARMETAL_SHARED to the folder that holds data/")
        return
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
    for mark, count, what in (
        ("recorded/test_machines.py::test_topology[", total, "recorded machines"),
        ("recorded/test_workloads.py::test_", total, "recorded machines planned for every workload"),
        (
            "recorded/test_interrupts.py::test_totals",
            len(machines.with_answer("expected-lsirq.json")),
            "recorded /proc/interrupts",
        ),
        (
            "recorded/test_interrupts.py::test_affinity",
            len(machines.with_answer("expected-irq-affinity.tsv")),
            "recorded /proc/irq",
        ),
    ):
        right = sum(mark in name for name in passed)
        terminalreporter.write_line("{} of {} {}".format(right, count, what))
