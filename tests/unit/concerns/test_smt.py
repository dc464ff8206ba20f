# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""smt's real main() on a fake kernel, with smt/control and without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.smt import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Wanted
from ansible_collections.nearmetal.ec2.plugins.modules import restore, smt, tune

from tests.support.boot_trees import BootHost, rhel_files
from tests.support.fake_kernel import FakeKernel, everything
from tests.support.hosts import files_of, lay_out

Call = Callable[..., Dict[str, Any]]
CPU = "/sys/devices/system/cpu"
CONTROL = f"{CPU}/smt/control"
FILE = "/etc/tmpfiles.d/nearmetal-smt.conf"
SHAPES: Dict[str, Dict[str, Optional[str]]] = {"with smt/control": {}, "without": {CONTROL: None}}


@pytest.fixture(params=SHAPES)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> FakeKernel:
    """A Nitro instance of 4 cores, siblings half-way."""
    return FakeKernel(tmp_path, files_of("nitro", SHAPES[request.param]))


def online(host: FakeKernel) -> str:
    return (Path(host.root) / f"{CPU}/online".lstrip("/")).read_text().strip()


def test_check_apply_check_apply_restore(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    checked = call(smt.main, host, check=True, threads="disabled")
    assert everything(host) == before
    applied = call(smt.main, host, threads="disabled")
    assert online(host) == "0-3"
    results = [checked, applied]
    results += [call(smt.main, host, check=check, threads="disabled") for check in (True, False)]
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    assert applied["actions"][0]["disruptive"]
    assert call(restore.main, host)["changed"]
    assert everything(host) == before
    assert online(host) == "0-7"


def test_a_cpu_that_cannot_go_offline_brings_all_others_back(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro", {CONTROL: None}))
    before = everything(host)
    host.moods[f"{CPU}/cpu6/online"] = "EBUSY"
    failed = call(smt.main, host, threads="disabled")
    assert failed["failed"]
    assert "CPU 6 offline (EBUSY" in failed["msg"]
    assert "taken back" in failed["msg"]
    assert everything(host) == before
    assert online(host) == "0-7"


def test_restore_after_a_reboot_with_our_file(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    call(smt.main, host, threads="disabled")
    assert (tmp_path / FILE.lstrip("/")).read_text().endswith(f"w! {CONTROL} - - - - off\n")
    host.reboot("99999999-0000-0000-0000-000000000000")
    host.write_value(CONTROL, "off\n")  # as systemd-tmpfiles does at boot
    assert not call(smt.main, host, threads="disabled")["changed"]
    call(restore.main, host)
    assert online(host) == "0-7"
    assert not host.exists(FILE)


def booting(root: Path, name: str, **changes: str) -> BootHost:
    """A host of tests/hosts with the boot entries of RHEL 9."""
    host = BootHost(root, {**files_of(name), **rhel_files(9), **changes}, ())
    host.boot()
    return host


@pytest.mark.parametrize("name", ["metal", "nitro"])
def test_threads_off_at_run_time_and_then_only_at_boot_take_one_run(name: str, tmp_path: Path, call: Call) -> None:
    """The first run only switched SMT on again, and a second run added nosmt."""
    host = booting(tmp_path, name)
    call(smt.main, host, threads="disabled", method="runtime")
    boot = {"threads": "disabled", "method": "boot"}
    checked, applied, again = (call(smt.main, host, check=check, **boot) for check in (True, False, False))
    assert ("boot.arguments", "nosmt") in [(action["what"], action["after"]) for action in applied["actions"]]
    assert [checked["actions"], checked["diff"]] == [applied["actions"], applied["diff"]]
    assert not [finding for finding in applied["findings"] if finding["status"] == "unknown"]
    assert not again["changed"], again["actions"]


def test_a_workload_adds_no_nosmt_where_the_second_thread_of_the_only_core_comes_back(
    tmp_path: Path, call: Call
) -> None:
    """When the thread is planned to be back, no core lists it yet."""
    host = booting(tmp_path, "nitro_burstable", **{"/sys/devices/virtual/dmi/id/product_name": "c5.large\n"})
    call(smt.main, host, threads="disabled", method="runtime")
    assert online(host) == "0"
    for _run in range(2):
        done = call(tune.main, host, workload="low_latency", concerns={"smt": {"method": "boot"}})
        assert "nosmt" not in host.arguments(), done["msg"]
        assert online(host) == "0-1"
    assert not done["changed"], done["actions"]


def test_restore_leaves_what_nosmt_asks_for(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro", {"/proc/cmdline": "root=/dev/nvme0n1p1 nosmt\n"}))
    host.reboot("22222222-0000-0000-0000-000000000000")
    assert online(host) == "0-3"
    call(smt.main, host, threads="enabled")
    assert online(host) == "0-7"
    call(restore.main, host)
    assert online(host) == "0-3"


def test_threads_that_were_taken_offline_one_by_one_come_back(tmp_path: Path, call: Call) -> None:
    """smt/control stays `on`, and writing `on` once more does nothing."""
    host = FakeKernel(tmp_path, files_of("nitro"))
    for cpu in range(4, 8):
        host.write_value(f"{CPU}/cpu{cpu}/online", "0\n")
    checked = call(smt.main, host, check=True, threads="enabled")
    applied = call(smt.main, host, threads="enabled")
    assert online(host) == "0-7"
    assert [checked["changed"], applied["changed"]] == [True, True]
    assert not call(smt.main, host, threads="enabled")["changed"]
    call(restore.main, host)
    assert online(host) == "0-3"


def test_knobs_that_depend_on_cpus_are_planned_for_the_cpus_that_will_be_online(tmp_path: Path) -> None:
    for name, changes in SHAPES.items():
        root = tmp_path / name.replace("/", " ")
        lay_out(root, files_of("metal", changes))
        facts = observe(Host(str(root)), CONCERN.domains)
        wanted = Wanted({"threads": "disabled", "persist": False})
        predicted = project(facts, CONCERN.plan(facts, wanted).actions)
        host = FakeKernel(root, files_of("metal", changes))
        for cpu in range(8, 16):
            host.write_value(f"{CPU}/cpu{cpu}/online", "0\n")
        truth = observe(Host(str(root)), CONCERN.domains)
        assert predicted.topology == truth.topology
