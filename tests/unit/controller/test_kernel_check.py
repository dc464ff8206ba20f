# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check's real main() on a fake kernel: it never changes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import kernel_check

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]


@pytest.mark.parametrize("name", ["nitro", "xen_pv", "metal", "graviton", "container"])
def test_it_reads_and_changes_nothing(tmp_path: Path, call: Call, name: str) -> None:
    host = FakeKernel(tmp_path, files_of(name))
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for check in (True, False):
        result = call(kernel_check.main, host, check=check)
        assert not result["changed"]
        assert result["actions"] == []
        assert result["findings"]
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"}
    assert after == files
    assert host.written == []


@pytest.mark.parametrize(
    ("version", "status"), [("1.5.0", "advice"), ("2.2.8", "advice"), ("2.2.9", "ok"), ("2.17.0g", "ok")]
)
def test_an_ena_driver_that_nitro_v4_resets(tmp_path: Path, call: Call, version: str, status: str) -> None:
    host = FakeKernel(tmp_path, {**files_of("nitro"), "/sys/module/ena/version": f"{version}\n"})
    findings = call(kernel_check.main, host)["findings"]
    assert [finding["status"] for finding in findings if finding["knob"] == "ena_driver"] == [status]
