# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that removes queues of a NIC loses their settings: restore creates the queues and sets them again."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.unit.memory.test_elements import state, tune_killed

Call = Callable[..., Dict[str, Any]]
JOURNAL = "var/lib/nearmetal/journal.json"
FEWER = {"interfaces": [{"name": "ens6", "queues": "2"}], "persist": False}
QUEUE = "sys/class/net/ens6/queues"
# A setting of a removed queue, and the value that somebody sets there.
SET = {
    "rps": (f"{QUEUE}/rx-3/rps_cpus", "00000002\n"),
    "rfs": (f"{QUEUE}/rx-2/rps_flow_cnt", "128\n"),
    "xps": (f"{QUEUE}/tx-3/xps_cpus", "00000004\n"),
    "limit": (f"{QUEUE}/tx-2/byte_queue_limits/limit_min", "3000\n"),
}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    """Two NICs of four queues."""
    return fresh(tmp_path, "nitro_big")


def tuned(call: Call, host: FakeKernel, **options: Any) -> None:
    """The concern is as wanted, and a second run has nothing to do."""
    done = call(tune.main, host, concerns={"network_irq": {"persist": False, **options}})
    assert not done.get("failed"), done["msg"]
    assert not call(tune.main, host, concerns={"network_irq": {"persist": False, **options}})["changed"]


def restored(call: Call, host: FakeKernel) -> Dict[str, Any]:
    """The result of restore, after a check that nothing is left in the journal."""
    done = call(restore.main, host)
    assert not done.get("failed"), done["msg"]
    assert not (Path(host.root) / JOURNAL).exists()
    return done


@pytest.mark.parametrize("others", [1, 3])
def test_interrupts_that_are_no_longer_placed_when_their_queues_go_come_back_unplaced(
    host: FakeKernel, call: Call, others: int
) -> None:
    before = state(host)
    tuned(call, host, policy="spread", rps="0-1")
    for _again in range(others):
        tuned(call, host, **FEWER)
    restored(call, host)
    assert state(host) == before


def test_interrupts_of_queues_that_went_wait_for_the_number_of_queues_and_not_for_the_rings(
    host: FakeKernel, call: Call
) -> None:
    """A change of the rings requests interrupts again as well, but makes no queue."""
    before = state(host)
    rings = {"rx_ring": "max", "allow_disruptive": True}
    call(tune.main, host, concerns={"network_stack": rings, "network_irq": {"policy": "spread", "persist": False}})
    assert "network.rings" in (Path(host.root) / JOURNAL).read_text()
    tuned(call, host, **FEWER)
    restored(call, host)
    assert state(host) == before


def test_interrupts_that_are_placed_again_after_their_queues_went_come_back_unplaced(
    host: FakeKernel, call: Call
) -> None:
    before = state(host)
    tuned(call, host, policy="spread")
    tuned(call, host, **FEWER)
    tuned(call, host, policy="spread", **FEWER)
    tuned(call, host, **FEWER)
    restored(call, host)
    assert state(host) == before


def test_steering_is_planned_for_the_queues_that_stay(host: FakeKernel, call: Call) -> None:
    """The interrupts of queues that go occupy no CPU afterwards."""
    tuned(call, host, policy="spread")
    tuned(call, host, queues="1", rfs="auto", rps="auto")
    flows = Path(host.root) / "sys/class/net/ens6/queues/rx-0/rps_flow_cnt"
    assert flows.read_text() == "32768\n"


@pytest.mark.parametrize("name", SET)
@pytest.mark.parametrize("again", [False, True])
def test_a_queues_foreign_settings_are_set_again(host: FakeKernel, call: Call, name: str, again: bool) -> None:
    path, text = SET[name]
    (Path(host.root) / path).write_text(text)
    before = state(host)
    tuned(call, host, **FEWER)
    if again:
        tuned(call, host, interfaces=[{"name": "ens6", "queues": "1"}])
    assert not (Path(host.root) / path).exists()
    restored(call, host)
    assert state(host) == before


def test_a_queues_foreign_settings_are_set_again_when_the_number_is_no_longer_wanted(
    host: FakeKernel, call: Call
) -> None:
    path, text = SET["rps"]
    (Path(host.root) / path).write_text(text)
    before = state(host)
    tuned(call, host, **FEWER)
    tuned(call, host, interfaces=[{"name": "ens5", "rfs": "4096"}])
    assert (Path(host.root) / path).read_text() == text
    restored(call, host)
    assert state(host) == before


def test_later_foreign_settings_of_a_removed_queue_are_set_again(host: FakeKernel, call: Call) -> None:
    path, text = SET["rps"]
    tuned(call, host, rps="0-1")
    (Path(host.root) / path).write_text(text)
    tuned(call, host, **FEWER)
    restored(call, host)
    assert (Path(host.root) / path).read_text() == text


def test_queues_at_the_kernels_own_choice_leave_nothing_to_remember(host: FakeKernel, call: Call) -> None:
    tuned(call, host, **FEWER)
    kept = (Path(host.root) / JOURNAL).read_text()
    assert "network.queues" in kept
    assert not any(table in kept for table in ("network.affinity", "network.rps", "network.rfs", "network.bql"))


@pytest.mark.parametrize("options", [FEWER, {**FEWER, "rps": "0-1"}], ids=["alone", "with a table"])
def test_a_failure_after_queues_were_removed_sets_their_foreign_settings_again(
    host: FakeKernel, call: Call, options: Dict[str, Any]
) -> None:
    path, text = SET["rps"]
    (Path(host.root) / path).write_text(text)
    before = state(host)
    host.moods[f"/{QUEUE}/tx-0/xps_cpus"] = "EIO"
    failed = call(tune.main, host, concerns={"network_irq": {**options, "xps": "0-1"}})
    assert failed["failed"]
    assert state(host) == before
    assert not (Path(host.root) / JOURNAL).exists()


@pytest.mark.parametrize(
    ("fails", "undone"), [(range(1, 4), True), (range(9, 12), True), (range(7, 12), False)], ids=str
)
def test_what_the_second_try_restores_is_no_failure_and_what_went_with_its_queue_is(
    host: FakeKernel, call: Call, fails: range, undone: bool
) -> None:
    tuned(call, host, **FEWER)
    before = state(host)
    take, calls = type(host).write_value, []

    def write(path: str, text: str) -> None:
        calls.append(path)
        if len(calls) - 1 in fails:
            raise OSError(errno.EIO, "Input/output error", path)
        take(host, path, text)

    host.write_value = write
    more = {"interfaces": [{"name": "ens6", "queues": "4"}], "policy": "spread", "rps": "0-1"}
    failed = call(tune.main, host, concerns={"network_irq": {**more, "allow_disruptive": True, "persist": False}})
    assert ("undoing it failed" in failed["msg"]) is not undone
    if undone:
        assert state(host) == before


def test_a_run_that_dies_after_removing_queues_keeps_their_original_settings(host: FakeKernel, call: Call) -> None:
    path, text = SET["rps"]
    (Path(host.root) / path).write_text(text)
    before = state(host)
    tune_killed(host, {"network_irq": {**FEWER, "rps": "0-1"}}, 1)
    restored(call, host)
    assert state(host) == before


def test_queues_whose_number_is_no_longer_wanted_come_back_before_interrupts_are_placed(
    host: FakeKernel, call: Call
) -> None:
    """They were placed for the number that the same run gave up, and then the run failed."""
    before = state(host)
    tuned(call, host, **FEWER)
    tuned(call, host, policy="spread", rps="auto", xps="auto")
    assert host.nics.channels["ens6"] == [4, 4]
    restored(call, host)
    assert state(host) == before


@pytest.mark.parametrize("given_up", [False, True], ids=["restored", "given up"])
def test_a_concern_without_queues_of_its_own_keeps_what_it_set_of_them(
    host: FakeKernel, call: Call, given_up: bool
) -> None:
    """Drivers keep a limit for the queue that comes back."""
    limit = {"tx_queue": {"bql": "disabled"}, "persist": False}
    assert not call(tune.main, host, concerns={"network_stack": limit}).get("failed")
    tuned(call, host, **FEWER)
    if given_up:
        for _again in range(2):
            assert not call(tune.main, host, concerns={"network_stack": {"somaxconn": 8192}}).get("failed")
    else:
        for _again in range(2):
            assert not call(restore.main, host, concerns=["network_stack"]).get("failed")
    entries = json.loads((Path(host.root) / JOURNAL).read_text())["entries"]
    [kept] = [entry for entry in entries if entry["what"] == "network.bql"]
    assert set(kept["ours"][0]) == {"tx-2", "tx-3"}
    restored(call, host)
