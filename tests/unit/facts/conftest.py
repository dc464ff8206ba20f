# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of facts: the recorded machines where they are present, and hosts written by hand."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

from tests.unit.facts import machines

RECORDED = "test_recorded_machines.py"
INTERRUPTS = "test_recorded_interrupts.py"
WORKLOADS = "test_recorded_workloads.py"


def pytest_ignore_collect(collection_path: Path) -> Optional[bool]:
    """Without the recordings there is nothing to compare; the closing line says so."""
    return True if collection_path.name in (RECORDED, INTERRUPTS, WORKLOADS) and not machines.names() else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many recorded machines were compared."""
    total = len(machines.names())
    if not total:
        terminalreporter.write_line("recorded machines absent: set NEARMETAL_SHARED to the folder that holds data/")
        return
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
    for mark, count, what in (
        (RECORDED + "::test_topology[", total, "recorded machines"),
        (WORKLOADS + "::test_", total, "recorded machines planned for every workload"),
        (INTERRUPTS + "::test_totals", len(machines.with_answer("expected-lsirq.json")), "recorded /proc/interrupts"),
        (INTERRUPTS + "::test_affinity", len(machines.with_answer("expected-irq-affinity.tsv")), "recorded /proc/irq"),
    ):
        right = sum(mark in name for name in passed)
        terminalreporter.write_line("{} of {} {}".format(right, count, what))


@pytest.fixture
def root() -> Iterator[Path]:
    """An empty root, removed at once after the test; in memory where there is room for the largest recording."""
    memory = "/dev/shm"
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 256 << 20
    folder = tempfile.mkdtemp(prefix="nearmetal-", dir=memory if roomy else None)
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
def host_of(root: Path) -> Callable[[Mapping[str, str]], Host]:
    """Writes files by absolute path, "-> target" for a symbolic link, and gives the host that has them."""

    def build(files: Mapping[str, str]) -> Host:
        for name, content in files.items():
            path = root / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith("-> "):
                path.symlink_to(content[3:])
            else:
                path.write_bytes(content.encode("utf-8", "surrogateescape"))
        return Host(str(root))

    return build
