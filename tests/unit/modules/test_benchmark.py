# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module runs a benchmark on this machine."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import (
    benchmarking,
    clock_read,
    measure,
    refusals,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.benchmark import Result, Tool
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.modules import benchmark

Call = Callable[..., Dict[str, Any]]


class Root(WritableHost):
    """This machine's user may do what root may."""

    def is_root(self) -> bool:
        return True


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    (tmp_path / "runs").mkdir(mode=0o755)
    monkeypatch.setattr(measure, "_FOLDER", str(tmp_path / "runs"))
    return Root()


def test_the_clock_is_measured_and_nothing_is_left(call: Call, host: Root, tmp_path: Path) -> None:
    result = call(benchmark.main, host, name="clock", options={"seconds": 0.1})
    (metric,) = result["metrics"]
    assert (metric["name"], metric["unit"], metric["better"], result["changed"]) == ("read", "ns", "smaller", False)
    assert 1 < metric["value"] < 100_000, "from a read in user space to a slow device"
    assert result["msg"].startswith(f"clock: read {metric['value']:.6g} ns (clock_source ")
    assert result["commands"] == ["clock_read 0.1"]
    assert result["used"]["user_seconds"] > 0
    assert "deprecations" not in result, "Ansible would warn its user of a fault of ours"
    assert list((tmp_path / "runs").iterdir()) == []


def test_system_calls_are_counted_by_the_kernel() -> None:
    with open("/proc/self/stat", "rb", buffering=0) as stream:
        assert clock_read.system_calls(lambda: float(stream.seek(0))) == clock_read.READS
    assert clock_read.system_calls(float) == 0


def test_a_lost_connection_ends_the_load(call: Call, host: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarking, "is_awaited", lambda: False)
    result = call(benchmark.main, host, name="clock", options={"seconds": 2})
    assert result["msg"].endswith(" was stopped, because the run had ended")


def test_check_mode_measures_nothing(call: Call, host: Root) -> None:
    result = call(benchmark.main, host, check=True, name="clock")
    assert (result["changed"], result["msg"]) == (False, "clock: would run; nothing is measured in check mode")


def test_a_tool_that_is_missing_is_named_with_its_package(
    call: Call, host: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Tool("nobody-has-it", ("--version",), {"debian": "its-package"})
    monkeypatch.setitem(BENCHMARKS, "clock", BENCHMARKS["clock"]._replace(tools=(tool,)))
    monkeypatch.setattr(refusals, "family", lambda _host: "debian")
    for check in (True, False):
        result = call(benchmark.main, host, check=check, name="clock")
        assert result["msg"] == "nobody-has-it isn't installed: run `apt-get install its-package` on the host"


def test_the_line_has_the_figures_in_words_and_leaves_out_tables() -> None:
    metrics = (Metric("index", 336.9, "index", "larger"), Metric("knee", 19552.1, "1/s", "larger"))
    details = {"rows": {"pipe": 1.0}, "steps": [{"percent": 10}], "disks": ["vda"], "knee_percent": None}
    line = benchmarking.summary("disk", Result(metrics, details))
    assert line == "disk: index 336.9, knee 19552.1 1/s (disks vda, knee_percent unknown)"


def test_fresh_memory_costs_page_faults(call: Call, host: Root) -> None:
    options = {"load": "fresh", "seconds": 0.3, "threads": 2, "block_kib": 256}
    result = call(benchmark.main, host, name="memory", options=options)
    (metric,) = result["metrics"]
    assert (metric["name"], metric["unit"]) == ("fresh", "MiB/s")
    # One page of 4, 16 or 64 KiB at a time, because the block is too small for a huge page.
    pages = 1024 * 1024 / resource.getpagesize()
    assert result["details"]["page_faults_per_mib"] == pytest.approx(pages, rel=0.1)
    assert 0 < result["details"]["system_percent"] <= 100


def test_a_benchmark_must_be_named_and_needs_root(call: Call, host: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(benchmark.main, host)["msg"].startswith("benchmark.name is required; choose one of clock")
    monkeypatch.setattr(host, "is_root", lambda: False)
    said = call(benchmark.main, host, name="clock")["msg"]
    assert said.startswith("a benchmark needs root on the host: set become: true, become_user: root")
