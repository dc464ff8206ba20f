# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPUs that somebody took offline by hand stay offline, whatever happens to SMT.

Up to Linux 6.16 `on` in smt/control brings every CPU online. Later kernels leave a core alone whose first thread is
offline, and so its second thread too.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import place_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.smt import OfflineCpus
from ansible_collections.nearmetal.ec2.plugins.modules import restore, smt

from tests.support.fake_kernel import FakeKernel, everything
from tests.support.hosts import files_of
from tests.support.sequences.faults import Killed, Writes

Call = Callable[..., Dict[str, Any]]
CPU = "/sys/devices/system/cpu"
CONTROL = f"{CPU}/smt/control"


@pytest.fixture(params=[False, True], ids=["up to 6.16", "newer"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> FakeKernel:
    """A Nitro instance of 4 cores: CPUs 4 to 7 are their second threads."""
    made = FakeKernel(tmp_path, files_of("nitro"))
    made.cpus.skips_offline_cores = request.param
    return made


def offline(host: FakeKernel) -> List[int]:
    return sorted(set(range(8)) - host.cpus.online)


def by_hand(host: FakeKernel, *cpus: int) -> None:
    for cpu in cpus:
        host.write_value(f"{CPU}/cpu{cpu}/online", "0\n")


def control(host: FakeKernel) -> str:
    return (Path(host.root) / CONTROL[1:]).read_text().strip()


@pytest.mark.parametrize("cpus", [(1,), (5,), (1, 5), (1, 6), (4, 5), (4, 5, 6, 7)])
def test_restore_leaves_cpus_that_were_offline_before(host: FakeKernel, call: Call, cpus: "tuple[int, ...]") -> None:
    by_hand(host, *cpus)
    before = everything(host)
    for check in (True, False, False):
        done = call(smt.main, host, check=check, threads="disabled")
        assert not done.get("failed"), done["msg"]
    assert not done["changed"], done["actions"]
    # A thread that has its core for itself stays: smt/control would have taken the last thread of such a core.
    assert offline(host) == sorted({4, 5, 6, 7, *cpus} - ({5} if 1 in cpus and 5 not in cpus else set()))
    assert not call(restore.main, host).get("failed")
    assert everything(host) == before
    assert offline(host) == list(cpus)


def test_restore_leaves_a_core_that_was_taken_offline_while_smt_was_off(host: FakeKernel, call: Call) -> None:
    call(smt.main, host, threads="disabled")
    by_hand(host, 1, 3)
    assert not call(smt.main, host, threads="disabled")["changed"]
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert (control(host), offline(host)) == ("on", [1, 3])
    assert not host.exists(store.SMT_ON)


def test_restore_after_a_boot_leaves_a_core_that_was_taken_offline_since(host: FakeKernel, call: Call) -> None:
    """The file in tmpfiles.d has switched SMT off at the boot."""
    newer = host.cpus.skips_offline_cores
    call(smt.main, host, threads="disabled")
    host.reboot("99999999-0000-0000-0000-000000000000")
    host.cpus.skips_offline_cores = newer
    host.write_value(CONTROL, "off\n")
    by_hand(host, 2)
    call(restore.main, host)
    assert (control(host), offline(host)) == ("on", [2])


@pytest.mark.parametrize("before", ["off by somebody", "off by nearmetal"])
def test_enabled_leaves_a_core_that_was_taken_offline_while_smt_was_off(
    host: FakeKernel, call: Call, before: str
) -> None:
    if before == "off by nearmetal":
        call(smt.main, host, threads="disabled")
    else:
        host.write_value(CONTROL, "off\n")
    by_hand(host, 1)
    assert call(smt.main, host, threads="enabled")["changed"]
    assert (control(host), offline(host)) == ("on", [1])
    again = call(smt.main, host, threads="enabled")
    assert not again["changed"], again["actions"]
    assert any("CPU 1 " in finding["reason"] for finding in again["findings"] if finding["status"] == "advice")
    call(restore.main, host)
    assert offline(host) == ([1] if before == "off by nearmetal" else [1, 4, 5, 6, 7])


@pytest.mark.parametrize("wanted", ["enabled", "kernel"])
def test_what_nearmetal_took_offline_one_by_one_comes_back(host: FakeKernel, call: Call, wanted: str) -> None:
    by_hand(host, 1, 6)
    call(smt.main, host, threads="disabled")
    assert offline(host) == [1, 4, 6, 7]
    assert call(smt.main, host, threads=wanted)["changed"]
    assert offline(host) == [1, 6]
    assert not call(smt.main, host, threads=wanted)["changed"]
    call(restore.main, host)
    assert offline(host) == [1, 6]


@pytest.mark.parametrize("wanted", ["enabled", "kernel"])
def test_single_cpus_that_somebody_took_offline_are_left_and_named(host: FakeKernel, call: Call, wanted: str) -> None:
    by_hand(host, 1, 6)
    done = call(smt.main, host, threads=wanted)
    assert [action["what"] for action in done["actions"]] == ["wanted"]
    reasons = [finding["reason"] for finding in done["findings"] if finding["status"] == "advice"]
    (sentence,) = [reason for reason in reasons if "CPUs 1,6" in reason]
    assert "left alone" in sentence


@pytest.mark.parametrize("wanted", ["restored", "enabled", "disabled"])
def test_the_next_run_completes_one_that_was_killed_while_it_switched_smt_on(
    tmp_path: Path, call: Call, wanted: str
) -> None:
    for newer, after in itertools.product((False, True), (False, True)):
        for at in itertools.count(1):
            host = FakeKernel(tmp_path / f"{newer}-{after}-{at}", files_of("nitro"))
            host.cpus.skips_offline_cores = newer
            call(smt.main, host, threads="disabled")
            by_hand(host, 1)
            writes = Writes(host, {"kind": "kill", "at": at, "after": after})
            with suppress(Killed), writes.counted():
                place_of(host, ("smt.control", "")).write("on")
            if writes.count < at:
                break
            options = {"state": "restored"} if wanted == "restored" else {"threads": wanted}
            done = call(smt.main, host, **options)
            assert not done.get("failed"), (at, after, done["msg"])
            # The second thread of a core without its first one goes with smt/control, and stays otherwise.
            left = set(offline(host)) - {5} if wanted == "disabled" else set(offline(host))
            assert left == ({1, 4, 6, 7} if wanted == "disabled" else {1}), (newer, at, after)
            call(restore.main, host)
            assert offline(host) == [1], (newer, at, after)
            assert not host.exists(store.SMT_ON)
        assert at > 6


@pytest.mark.parametrize(("present", "held"), [("5", True), ("5,9", True), ("9", False), ("", False)])
def test_a_cpu_that_went_offline_counts_although_another_write_brought_the_others_back(
    present: str, held: bool
) -> None:
    """smt/control brings CPUs online that a change of single CPUs leaves as they are."""
    assert OfflineCpus("smt.offline").applied(present, "9", "5,9") == held
