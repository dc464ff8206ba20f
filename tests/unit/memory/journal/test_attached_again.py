# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device is detached and attached again: what an interrupted run may have changed beside its own has gone with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import restore

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.sequences.life import Life
from tests.support.sequences.wanted import Step
from tests.support.sequences.world import World
from tests.unit.memory.test_elements import tune_killed
from tests.unit.sequences.test_found import failing, tune

RINGS = {"rx_ring": "512", "allow_disruptive": True, "persist": False}
INTERRUPT = "/proc/irq/27/smp_affinity_list"
DISK = {"name": "nvme9n1", "device": "0000:00:1b.0", "model": "Amazon Elastic Block Store"}
QUEUE = "sys/block/nvme9n1/queue"


@pytest.mark.parametrize("at", range(3, 9))
def test_an_interrupt_that_somebody_had_pinned_is_not_pinned_on_the_nic_that_came_back(at: int, tmp_path: Path) -> None:
    life = Life(World(tmp_path, "nitro_big"))
    life.do(tune(network_stack=RINGS))
    assert life.world.somebody(INTERRUPT, "1")
    life.do(failing(Step("restore", {"concern": None}), at))
    for away in (["ens5"], []):
        life.world.replug(away)
    life.end()
    assert (Path(life.host.root) / INTERRUPT[1:]).read_text() != "1\n"


def attach(host: FakeKernel, number: str) -> None:
    host.disks.attach(DISK)
    for name, text in (("wwid", "nvme.1d0f-vol0aaa-01"), ("diskseq", number)):
        (Path(host.root) / "sys/block/nvme9n1" / name).write_text(f"{text}\n")


@pytest.mark.parametrize("number", ["7", "9"], ids=["kept", "attached again"])
def test_a_number_of_requests_that_somebody_had_set_is_not_set_on_the_disk_that_came_back(
    number: str, tmp_path: Path, call: Callable[..., Dict[str, Any]]
) -> None:
    host = fresh(tmp_path, "nitro_big")
    attach(host, "7")
    chosen = (tmp_path / QUEUE / "nr_requests").read_text()
    host.write_value(f"/{QUEUE}/nr_requests", "31")
    scheduler = {"disks": [{"device": "/dev/nvme9n1", "scheduler": "mq-deadline"}], "method": "runtime"}
    assert tune_killed(host, {"block_storage": scheduler}, 1)
    if number != "7":
        host.disks.detach("nvme9n1")
        attach(host, number)
    assert not call(restore.main, host).get("failed")
    assert (tmp_path / QUEUE / "nr_requests").read_text() == ("31\n" if number == "7" else chosen)
    assert not (tmp_path / "var/lib/nearmetal/journal.json").exists()
