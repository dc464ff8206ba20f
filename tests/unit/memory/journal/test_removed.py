# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody removed the journal: the files of nearmetal say by their mark whose they are, and there were none before."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Callable, Dict, Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh

Call = Callable[..., Dict[str, Any]]
WANTED: Dict[str, Any] = {
    "network_irq": {"policy": "dedicated", "irq_cpus": "0-1"},
    "network_stack": {"somaxconn": 8192},
    "hugepages": {"thp": "never"},
    "block_storage": {"read_ahead_kb": 64},
}
DATA = "var/lib/nearmetal"
SYSCTL = "etc/sysctl.d/99-nearmetal-network_stack.conf"


def left(host: FakeKernel) -> Set[str]:
    """Every file and link of nearmetal but the lock."""
    root = Path(host.root)
    found = {path for folder in ("etc", "usr", "var") for path in (root / folder).rglob("*nearmetal*")}
    inner = {path for folder in found for path in folder.rglob("*")}
    return {str(path.relative_to(root)) for path in found | inner if path.is_symlink() or path.is_file()}


@pytest.fixture
def host(tmp_path: Path, call: Call) -> FakeKernel:
    host = fresh(tmp_path, "nitro_big")
    assert not call(tune.main, host, concerns=WANTED).get("failed")
    assert len(left(host)) > 10
    return host


def remove(host: FakeKernel, removed: str) -> None:
    """What somebody does to start over."""
    path = Path(host.root) / removed
    (shutil.rmtree if path.is_dir() else Path.unlink)(path)


@pytest.mark.parametrize("rebooted", [False, True])
@pytest.mark.parametrize("removed", [DATA, f"{DATA}/journal.json"])
def test_the_files_are_restored_and_what_they_set(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str], removed: str, rebooted: bool
) -> None:
    remove(host, removed)
    if rebooted:
        host.reboot("22222222-2222-3333-4444-555555555555")
    command(["status"], host)
    assert "nothing is left to take back" not in capsys.readouterr().out
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert left(host) == set()
    knobs = {(action["concern"] == "unit", action["knob"]) for action in restored["actions"]}
    assert {(True, "agent"), (False, "persist")} <= knobs
    assert not {(False, "agent"), (True, "persist")} & knobs
    said = {finding["knob"]: finding["reason"] for finding in restored["findings"]}
    assert "the next boot brings back" in said["somaxconn"], "its original went with the journal"
    again = call(restore.main, host)
    assert not again["changed"]
    assert {finding["reason"] for finding in again["findings"]} <= set(said.values()), "it waits for the boot"


def test_a_run_that_finds_everything_as_wanted_can_be_restored(host: FakeKernel, call: Call) -> None:
    remove(host, DATA)
    assert not call(tune.main, host, concerns=WANTED).get("failed")
    assert command(["restore"], host) == 3, "two originals went with the journal, so their values wait for the boot"
    assert left(host) == set()


def test_a_file_of_somebody_else_stays(host: FakeKernel, call: Call) -> None:
    (Path(host.root) / SYSCTL).write_text("net.core.somaxconn = 8192\n")
    remove(host, DATA)
    assert not call(restore.main, host).get("failed")
    assert left(host) == {SYSCTL}
