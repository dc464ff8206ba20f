# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check's real main() on a fake kernel: it never changes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.kernel_check.advisories import (
    ADVISORIES,
    Versions,
    about,
)
from ansible_collections.nearmetal.ec2.plugins.modules import kernel_check, tune
from hypothesis import given
from hypothesis import strategies as st

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
    message = (
        f"kernel_check.minimum_kernel must be text, not the number {given}: put it in quotes, YAML reads 5.10 as 5.1"
    )
    assert call(kernel_check.main, host, minimum_kernel=given)["msg"] == message
    assert call(tune.main, host, concerns={"kernel_check": {"minimum_kernel": given}})["msg"] == message


@pytest.mark.parametrize(
    "given", ["5.x", "5.", ".5", "5.10-rc1", "5.10 ", "v5.10", "5,10", "5.10.0.1", "x", "-5", "\u0665.1"]
)
def test_a_malformed_version_is_refused(tmp_path: Path, call: Call, given: str) -> None:
    result = call(kernel_check.main, FakeKernel(tmp_path, files_of("nitro")), minimum_kernel=given)
    assert "kernel_check.minimum_kernel must be a version such as 5.10, not " in result["msg"]


@pytest.mark.parametrize("option", ["minimum_kernel", "review_after"])
def test_a_line_break_is_refused(tmp_path: Path, call: Call, option: str) -> None:
    result = call(kernel_check.main, FakeKernel(tmp_path, files_of("nitro")), **{option: "5.10\n"})
    assert f"kernel_check.{option} must be one line without control characters, not '5.10\\n'" in result["msg"]


@pytest.mark.parametrize(
    ("given", "status"),
    [("6.1", "ok"), ("6.1.112", "ok"), (6, "ok"), ("6", "ok"), ("6.10", "advice"), ("6.1.113", "advice")],
)
def test_the_oldest_kernel_without_advice(tmp_path: Path, call: Call, given: Any, status: str) -> None:
    result = call(kernel_check.main, FakeKernel(tmp_path, files_of("nitro")), minimum_kernel=given)
    reason = next(finding for finding in result["findings"] if finding["knob"] == "kernel")
    assert (reason["status"], reason["wanted"]) == (status, str(given))


VERSION = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)


def as_number(version: Tuple[int, ...]) -> int:
    """The same order in one number: 2.17.2 is 2 017 002 000."""
    return sum(part * 1000 ** (3 - place) for place, part in enumerate(version))


@given(VERSION, VERSION, VERSION)
def test_which_versions_have_a_fault(first: Tuple[int, ...], fixed: Tuple[int, ...], version: Tuple[int, ...]) -> None:
    number = as_number(version)
    assert Versions(first, fixed).include(version) == (as_number(first) <= number < as_number(fixed))
    assert Versions(first).include(version) == (as_number(first) <= number)
    assert Versions((), fixed).include(version) == (number < as_number(fixed))


def test_what_is_not_known_of_a_host_matches_no_fault() -> None:
    assert about(None, None, "xen_hvm", ADVISORIES) == ()
    assert len({entry.name for entry in ADVISORIES}) == len(ADVISORIES)
    assert all(entry.symptom and entry.do and entry.reference for entry in ADVISORIES)
    assert all(entry.ena is not None or entry.kernel is not None for entry in ADVISORIES)


@pytest.mark.parametrize(
    ("release", "faults"),
    [
        ("5.16.20-200.fc35.x86_64", []),
        ("5.17.0-0.rc1.el9.x86_64", ["xen_empty_msi_irqs"]),
        ("5.15.0-1071-aws", []),
        ("6.8.0-1018-aws", ["xen_empty_msi_irqs"]),
        ("6.12.92-122.166.amzn2023.x86_64", ["xen_empty_msi_irqs"]),
        ("6.19.14+deb14-cloud-amd64", ["xen_empty_msi_irqs"]),
        ("7.0-rc1", ["xen_empty_msi_irqs", "lazy_preemption"]),
        ("7.0.0-14-generic", ["xen_empty_msi_irqs", "lazy_preemption"]),
        ("10.0.0", ["xen_empty_msi_irqs", "lazy_preemption"]),
        ("linux", []),
    ],
)
def test_the_faults_of_a_kernel_by_its_name(tmp_path: Path, call: Call, release: str, faults: List[str]) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm", {"/proc/sys/kernel/osrelease": f"{release}\n"}))
    findings = [finding for finding in call(kernel_check.main, host)["findings"] if finding["knob"] == "advisories"]
    assert [finding["where"] for finding in findings if finding["status"] == "advice"] == faults
    assert bool(faults) != any(finding["status"] == "ok" for finding in findings)


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ("2.17.0g", "ena_detach_panic"),
        ("2.17.1", "ena_detach_panic"),
        ("2.17.2g", ""),
        ("2.16.1g", ""),
        ("2.13.0g", "ena_receive_steering_panic"),
        ("2.13.10g", ""),
        ("2.1.0K", ""),
    ],
)
def test_the_faults_of_an_ena_driver(tmp_path: Path, call: Call, version: str, fault: str) -> None:
    host = FakeKernel(tmp_path, {**files_of("nitro"), "/sys/module/ena/version": f"{version}\n"})
    findings = [finding for finding in call(kernel_check.main, host)["findings"] if finding["knob"] == "advisories"]
    assert [finding["where"] for finding in findings if finding["status"] == "advice"] == [fault] * bool(fault)
    assert all("source read on 2026-" in finding["reason"] for finding in findings if finding["where"])


@pytest.mark.parametrize("day", ["2027-6-30", "30.06.2027", "2027-02-29", "2027-13-01", "tomorrow", "\u0662027-06-30"])
def test_a_review_on_no_day_is_refused(tmp_path: Path, call: Call, day: str) -> None:
    result = call(kernel_check.main, FakeKernel(tmp_path, files_of("nitro")), review_after=day)
    assert "kernel_check.review_after must be a day such as 2027-06-30, not " in result["msg"]
