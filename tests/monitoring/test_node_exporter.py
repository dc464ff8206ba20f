# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real node_exporter reads what the unit of a simulated host exports."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Dict, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.state_files import METRICS_VARIABLE
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._tasks.tuning import OPTIONS, tune

from dev import ROOT
from dev.programs import prometheus
from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

LABEL = re.compile(r'\w+="[^"]*"')
DIRECTORY, OF_PACKAGE = "/var/lib/textfiles/node-exporter", "/var/lib/prometheus/node-exporter"
BOTH = "var/lib/*/node-exporter"


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a host that was tuned, and of which somebody else has set a parameter since."""
    host = FakeKernel(tmp_path, files_of("nitro"))
    host.nics.statistics["ens5"] = {"pps_allowance_exceeded": 12345678, "conntrack_allowance_available": 400}
    folder = tmp_path / DIRECTORY[1:]
    folder.mkdir(parents=True)
    monkeypatch.setenv(METRICS_VARIABLE, DIRECTORY)  # as the service does
    wanted = {"concerns": {"network_stack": {"somaxconn": 5000}}, "metrics_directory": DIRECTORY}
    result = tune(host, validate("tune", OPTIONS, wanted))
    assert not result.get("failed"), result["msg"]
    look = ["reapply", "--if-changed"]
    assert command(look, host) == 0
    file = folder / "nearmetal_host.prom"
    (tmp_path / "proc/sys/net/core/somaxconn").write_text("128\n")
    os.utime(file, (1, 1))  # so that it is due
    assert command(look, host) == 0
    return file


def values(text: str) -> Dict[Tuple[str, ...], float]:
    """A metric of ours and its labels, sorted as node_exporter does → its value, which node_exporter may shorten."""
    lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith("nearmetal_")]
    return {(name.partition("{")[0], *sorted(LABEL.findall(name))): float(value) for name, _space, value in lines}


def test_node_exporter_hands_on_all_that_the_unit_exports_beside_others(tmp_path: Path, exported: Path) -> None:
    of_package = tmp_path / OF_PACKAGE[1:]
    of_package.mkdir(parents=True)
    (of_package / "other.prom").write_text("other_metric 1\n")
    with prometheus.NodeExporter(tmp_path / BOTH) as address, urllib.request.urlopen(f"{address}/metrics") as answer:
        scraped = answer.read().decode()
    written = exported.read_text()
    assert 'nearmetal_unit_drift{concern="network_stack",knob="somaxconn"} 1' in written
    assert (
        'nearmetal_unit_ena_allowance_exceeded_total{interface="ens5",allowance="pps_allowance_exceeded"} 12' in written
    )
    assert values(scraped) == values(written)
    for line in written.splitlines():
        assert line in scraped or not line.startswith("#")
    assert {"other_metric 1", "node_textfile_scrape_error 0"} <= set(scraped.splitlines())
    assert re.search(r'^node_textfile_mtime_seconds\{file="[^"]*/nearmetal_host.prom"\}', scraped, re.M)


def test_the_page_names_these_directories() -> None:
    page = (ROOT / "docs/monitoring/README.md").read_text("utf-8")
    assert f"tune_metrics_directory: {DIRECTORY} " in page
    assert f"`{OF_PACKAGE}`" in page
    assert f"textfile.directory=/{BOTH}" in page


def test_promtool_finds_nothing_to_mend_in_the_metrics(exported: Path) -> None:
    done = subprocess.run(
        [prometheus.tool("promtool"), "check", "metrics"],
        input=exported.read_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
