# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What prove keeps is what `tune` would do, and nothing that was never compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.experiments import CURRENT, JOURNAL, WANTED, Call, Steps, current, files
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


@pytest.fixture
def steps(call: Call, host: FakeKernel) -> Steps:
    return Steps(call, host)


def settled(found: Dict[str, str]) -> Dict[str, Any]:
    """The files, with the journal as places and what is known of them, in whatever order they were set."""
    entries = json.loads(found[JOURNAL])["entries"]
    return {**found, JOURNAL: {(entry["what"], entry["where"]): entry for entry in entries}}


def test_keeping_does_what_tune_does(host: FakeKernel, steps: Steps, call: Call, tmp_path: Path) -> None:
    steps("begin")
    steps("measure", state="untuned")
    assert steps("keep")["changed"]
    assert current(host) == "tsc"
    kept = files(host)
    assert not any("prove" in name for name in kept)
    other = FakeKernel(tmp_path / "other", files_of("xen_hvm"))
    call(tune.main, other, **WANTED)
    tuned = files(other)
    assert sorted(kept) == sorted(tuned)
    assert settled(kept)[JOURNAL] == settled(tuned)[JOURNAL]


def test_a_setting_compared_alone_is_not_kept_and_nothing_untested_is_written(host: FakeKernel, steps: Steps) -> None:
    before, both = files(host), {"concerns": {**WANTED["concerns"], "network_stack": {"somaxconn": 4096}}}
    somaxconn = Path(host.root) / "proc/sys/net/core/somaxconn"
    found = somaxconn.read_text()
    steps("begin", tune=both, only=["clocksource.source"])
    steps("measure", tune=both, only=["clocksource.source"], state="tuned")
    assert steps("keep", tune=both, only=["clocksource.source"])["answer"]["kept"] is False
    assert (current(host), somaxconn.read_text(), files(host)) == ("xen", found, before)


def test_a_tuning_that_cannot_be_kept_is_taken_back(host: FakeKernel, steps: Steps) -> None:
    steps("begin")
    (Path(host.root) / "etc").mkdir(exist_ok=True)
    host.moods[CURRENT] = "ignores"
    failed = steps("keep")
    assert failed["failed"]
    assert current(host) == "xen"


def test_what_tune_leaves_to_another_owner_takes_no_part(tmp_path: Path, call: Call) -> None:
    place, disks = "/sys/kernel/mm/transparent_hugepage/enabled", {"read_ahead_kb": 64, "method": "runtime"}
    wanted: Dict[str, Any] = {"concerns": {"hugepages": {"thp": "never"}, "block_storage": disks}}
    big = fresh(tmp_path, "nitro_big")
    call(tune.main, big, concerns={"hugepages": {"thp": "never"}})
    owner = {
        "sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "7\n",
        "etc/tuned/active_profile": "site\n",
        "etc/tuned/profiles/site/tuned.conf": "[vm]\ntransparent_hugepages=always\n",
    }
    for name, text in owner.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    steps = Steps(call, big)
    assert steps("begin", tune=wanted)["answer"]["tested"] == ["block_storage.read_ahead_kb"]
    assert "[never]" in (tmp_path / place[1:]).read_text()
    steps("measure", state="tuned")
    assert steps("keep", tune=wanted)["changed"]
    call(restore.main, big)
    assert "[madvise]" in (tmp_path / place[1:]).read_text(), "its original is still known"
