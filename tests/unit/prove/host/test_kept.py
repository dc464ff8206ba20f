# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""prove keeps what `tune` would set, and nothing that was never compared."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of
from tests.support.prove.experiments import CURRENT, JOURNAL, MEMORY, WANTED, Call, Steps, current, files, swappiness

MANY = 100000
STATE = "run/nearmetal/prove.json"
PLACED: Dict[str, Any] = {"concerns": {"network_irq": {"policy": "auto"}}}  # which needs the unit
PLACED_AND_MEMORY: Dict[str, Any] = {"concerns": {**PLACED["concerns"], **MEMORY["concerns"]}}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


@pytest.fixture
def steps(call: Call, host: FakeKernel) -> Steps:
    return Steps(call, host)


def settled(found: Dict[str, str]) -> Dict[str, Any]:
    """The files, with the entries of the journal in any order."""
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


def test_a_tuning_whose_file_finds_no_space_is_taken_back_though_its_unit_is_in_place(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = fresh(tmp_path, "nitro_big")
    call(tune.main, big, **PLACED)
    before, steps = files(big), Steps(call, big)
    steps("begin", tune=PLACED_AND_MEMORY)
    rename = os.rename

    def full(source: str, target: str, **options: Any) -> None:
        if target.endswith("memory.conf"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        failed = steps("keep", tune=PLACED_AND_MEMORY)
    assert failed["failed"]
    assert "memory.conf: no space left on its file system" in failed["msg"]
    assert "is tuned" not in failed["msg"]
    assert swappiness(big) == "60"
    after = files(big)
    assert list(json.loads(after.pop("run/nearmetal/failed.json"))) == ["memory", "network_irq"]
    assert without_journal(after) == without_journal(before)
    assert steps("back")["answer"] == {"ended": False}


def without_journal(found: Dict[str, str]) -> Dict[str, str]:
    """The files without the journal, which keeps each value that was ever ours."""
    return {path: text for path, text in found.items() if path != JOURNAL}


class Killed(BaseException):
    """The process is dead."""


class Mortal(FakeKernel):
    """A host whose process is killed at its write number `left`; a dead process writes nothing more."""

    left = 0

    def lives(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def write_value(self, path: str, text: str) -> None:
        self.lives()
        super().write_value(path, text)

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        self.lives()
        return super().command(argv, timeout)


@pytest.mark.parametrize("earlier", [{}, {"concerns": {"memory": {"swappiness": 5}}}])
def test_a_process_that_is_killed_while_it_keeps_leaves_the_host_to_the_timer(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, earlier: Dict[str, Any]
) -> None:
    host = Mortal(tmp_path, files_of("xen_hvm"))
    host.left = MANY
    original = swappiness(host)
    if earlier:
        call(tune.main, host, **earlier)
    wanted = {"concerns": {**WANTED["concerns"], **MEMORY["concerns"]}}
    before, found, steps = files(host), swappiness(host), Steps(call, host)
    rename, kills = os.rename, 0

    def renamed(*places: Any, **options: Any) -> None:
        host.lives()
        rename(*places, **options)

    monkeypatch.setattr(os, "rename", renamed)
    while True:
        steps("begin", tune=wanted)
        host.left = kills
        with suppress(Killed):
            assert steps("keep", tune=wanted)["answer"]["kept"]
            break
        host.left, kills = MANY, kills + 1
        if not (tmp_path / STATE).exists():
            break
        assert command(["expire", "prove"], host) == 0
        assert (current(host), swappiness(host)) == ("xen", found), f"killed at write {kills}"
        assert without_journal(files(host)) == without_journal(before), f"killed at write {kills}"
    assert (kills > 10, current(host), swappiness(host)) == (True, "tsc", "1")
    call(restore.main, host)
    assert (current(host), swappiness(host)) == ("xen", original)


def test_a_knob_that_tune_leaves_to_its_owner_takes_no_part(tmp_path: Path, call: Call) -> None:
    disks = {"nomerges": 2, "method": "runtime"}
    wanted: Dict[str, Any] = {"concerns": {"memory": {"swappiness": 1}, "block_storage": disks}}
    big = fresh(tmp_path, "nitro_big")
    call(tune.main, big, concerns={"memory": {"swappiness": 1}})
    owner = {
        "sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "7\n",
        "etc/tuned/active_profile": "site\n",
        "etc/tuned/profiles/site/tuned.conf": "[sysctl]\nvm.swappiness=10\n",
    }
    for name, text in owner.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    steps = Steps(call, big)
    assert steps("begin", tune=wanted)["answer"]["tested"] == ["block_storage.nomerges"]
    assert swappiness(big) == "1"
    steps("measure", state="tuned")
    assert steps("keep", tune=wanted)["changed"]
    call(restore.main, big)
    assert swappiness(big) == "60", "its original is still known"


def test_interrupts_that_irqbalance_would_move_back_are_left_out(tmp_path: Path, call: Call) -> None:
    unit = "[Service]\nEnvironmentFile=-/etc/default/irqbalance\nExecStart=/usr/sbin/irqbalance $IRQBALANCE_ARGS\n"
    balanced = FakeKernel(
        tmp_path,
        {
            **files_of("nitro"),
            "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs": "412\n",
            "/proc/412/cmdline": "/usr/sbin/irqbalance\0",
            "/usr/lib/systemd/system/irqbalance.service": unit,
            "/usr/sbin/irqbalance": "banmod policyscript",
            "/etc/default/irqbalance": 'IRQBALANCE_ARGS=""\n',
        },
    )
    disks = {"block_storage": {"nomerges": 2, "method": "runtime"}}
    steps, placed = Steps(call, balanced), {"network_irq": {"policy": "spread", "restart_irqbalance": True}}
    nothing = steps("begin", tune={"concerns": placed})["answer"]["nothing"]
    assert "(network_irq.irqbalance, network_irq.policy can't)" in nothing
    begun = steps("begin", tune={"concerns": {**placed, **disks}})["answer"]
    assert begun["tested"] == ["block_storage.nomerges"]
    reason = "network_irq.policy: irqbalance would move the interrupts back: only tune prevents it"
    assert reason in begun["untested"]
    steps("back")
    (tmp_path / "proc/412/cmdline").write_text("/usr/sbin/irqbalance\0--banmod=ena\0")
    (tmp_path / "etc/default/irqbalance").write_text("IRQBALANCE_ARGS=--banmod=ena\n")
    assert "network_irq.policy" in steps("begin", tune={"concerns": placed})["answer"]["tested"]
