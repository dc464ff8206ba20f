# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that runs keeps some old values until it starts anew: main() says which, and restarts nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.support.fake_kernel import FakeKernel
from tests.support.files.processes import first, process, together
from tests.support.fresh_host import probe, routed
from tests.support.hosts import files_of
from tests.unit.conftest import Modules

REDIS = process(812, "redis-server", "/usr/bin/redis-server", ports=[6379])
SILENT = process(70, "nginx", "/usr/sbin/nginx")  # it listens nowhere
OTHER = process(71, "backup", "/usr/bin/backup", ports=[99])
SYSCTL = {"network_stack": {"somaxconn": 12345, "rmem_max": 12345678}}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    made = FakeKernel(tmp_path / "root", routed(files_of("nitro", together(first(), REDIS, SILENT, OTHER))))
    probe(made)
    return made


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Modules:
    return Modules(capsys)


def kept(result: Dict[str, Any]) -> List[str]:
    """What the findings say that programs keep."""
    return [
        f"{finding['concern']}: {finding['reason']}"
        for finding in result["findings"]
        if finding["status"] == "needs_restart" and finding["where"] in ("redis-server", "nginx", "backup")
    ]


def test_a_program_that_listens_keeps_its_backlog_until_it_starts_anew(host: FakeKernel, call: Modules) -> None:
    before = call(tune.main, host, check=True, concerns=SYSCTL)
    assert kept(before) == [
        "network_stack: redis-server keeps the old somaxconn, rmem_max until it starts anew: its sockets listen already"
    ]
    assert kept(call(tune.main, host, concerns=SYSCTL)) == kept(before)
    # It may have started anew since: what isn't changed has no such finding.
    assert kept(call(tune.main, host, concerns=SYSCTL)) == []


def test_memory_that_a_program_has_keeps_its_pages(host: FakeKernel, call: Modules) -> None:
    now = host.text("/sys/kernel/mm/transparent_hugepage/enabled") or ""
    other = "never" if "[never]" not in now else "madvise"
    result = call(tune.main, host, concerns={"hugepages": {"thp": other}})
    assert kept(result) == [
        f"hugepages: {name} keeps the old thp until it starts anew: the memory that it has keeps its pages"
        for name in ("nginx", "redis-server")
    ]


def test_what_takes_effect_at_once_needs_no_restart(host: FakeKernel, call: Modules) -> None:
    assert kept(call(tune.main, host, concerns={"memory": {"swappiness": 11}})) == []
