# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check's real main() on a fake kernel: it never changes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import kernel_check, tune

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


@pytest.mark.parametrize("given", [5.1, 6.1, 3.0, 1e300])
def test_a_version_without_quotes_is_refused(tmp_path: Path, call: Call, given: float) -> None:
    """YAML has made it a number by then: 5.10 and 5.1 are the same, and nobody can tell which was meant."""
    host = FakeKernel(tmp_path, files_of("nitro"))
    message = f"kernel_check.minimum_kernel is text, not the number {given}: put it in quotes, YAML reads 5.10 as 5.1"
    assert call(kernel_check.main, host, minimum_kernel=given)["msg"] == message
    assert call(tune.main, host, concerns={"kernel_check": {"minimum_kernel": given}})["msg"] == message


@pytest.mark.parametrize(
    "given", ["5.x", "5.", ".5", "5.10-rc1", "5.10 ", "v5.10", "5,10", "5.10.0.1", "5.10\n", "x", "-5", "\u0665.1"]
)
def test_a_malformed_version_is_refused(tmp_path: Path, call: Call, given: str) -> None:
    result = call(kernel_check.main, FakeKernel(tmp_path, files_of("nitro")), minimum_kernel=given)
    assert "kernel_check.minimum_kernel is a version such as 5.10, not " in result["msg"]


@pytest.mark.parametrize(
    ("given", "status"),
    [("6.1", "ok"), ("6.1.112", "ok"), (6, "ok"), ("6", "ok"), ("6.10", "advice"), ("6.1.113", "advice")],
)
def test_the_oldest_kernel_without_advice(tmp_path: Path, call: Call, given: Any, status: str) -> None:
    result = call(kernel_check.main, FakeKernel(tmp_path, files_of("nitro")), minimum_kernel=given)
    reason = next(finding for finding in result["findings"] if finding["knob"] == "kernel")
    assert (reason["status"], reason["wanted"]) == (status, str(given))
