# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a running program wouldn't notice is neither switched nor kept, and is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.prove.experiments import MEMORY, SWAPPINESS, Call, Steps, files, swappiness
from tests.support.prove.reboots import rebooting

SOMAXCONN = "/proc/sys/net/core/somaxconn"
LISTENS = "a running program keeps the old value: a listening socket keeps its backlog"
QUEUE = {"network_stack": {"somaxconn": 8192}}
BOTH: Dict[str, Any] = {"concerns": {**MEMORY["concerns"], **QUEUE}}
# One setting of each kind, in a form that differs from what the host has.
OF_EACH_KIND: Dict[str, Dict[str, Any]] = {
    "network_stack.congestion_control": {"network_stack": {"congestion_control": "reno"}},
    "network_stack.tcp_rmem": {"network_stack": {"tcp_rmem": "4096 131072 33554432"}},
    "network_stack.qdisc": {"network_stack": {"qdisc": "fq"}},
    "network_stack.busy_poll": {"network_stack": {"busy_poll": 50}},
    "hugepages.thp": {"hugepages": {"thp": "never"}},
    "hugepages.khugepaged_defrag": {"hugepages": {"khugepaged_defrag": "disabled"}},
    "block_storage.read_ahead_kb": {"block_storage": {"read_ahead_kb": 64, "method": "runtime"}},
    "block_storage.nr_requests": {"block_storage": {"nr_requests": 8, "method": "runtime"}},
    "memory.aio_max_nr": {"memory": {"aio_max_nr": 1048576}},
}


@pytest.fixture
def big(tmp_path: Path) -> FakeKernel:
    return fresh(tmp_path / "big", "nitro_big")


@pytest.fixture
def steps(big: FakeKernel, call: Call) -> Steps:
    return Steps(call, big)


def backlog(host: FakeKernel) -> str:
    return Path(f"{host.root}{SOMAXCONN}").read_text().strip()


@pytest.mark.parametrize("step", ["plan", "begin"])
@pytest.mark.parametrize("setting", OF_EACH_KIND)
def test_a_setting_that_takes_effect_later_is_not_tested(step: str, setting: str, steps: Steps) -> None:
    concerns = {name: {**MEMORY["concerns"].get(name, {}), **given} for name, given in OF_EACH_KIND[setting].items()}
    answer = steps(step, tune={"concerns": {**MEMORY["concerns"], **concerns}})["answer"]
    assert answer["tested"] == ["memory.swappiness"]
    assert [text.partition(":")[0] for text in answer["untested"]] == [setting]


@pytest.mark.parametrize("step", ["plan", "begin"])
@pytest.mark.parametrize("limited", [{}, {"only": ["network_stack.somaxconn"], "tune": BOTH}])
def test_where_nothing_else_differs_a_run_is_refused_before_anything_is_written(
    step: str, limited: Dict[str, Any], big: FakeKernel, steps: Steps
) -> None:
    before = files(big)
    big.written.clear()
    refused = steps(step, **{"tune": {"concerns": QUEUE}, **limited})
    assert refused["msg"].startswith(f"nothing of this tuning can be tested: network_stack.somaxconn ({LISTENS}")
    assert refused["msg"].endswith("; tune sets it untested")
    assert (big.written, files(big)) == ([], before)


def test_it_stays_as_it_is_in_both_states_and_is_not_kept(big: FakeKernel, steps: Steps, call: Call) -> None:
    found = backlog(big)
    begun = steps("begin", tune=BOTH)["answer"]
    assert begun["tested"] == ["memory.swappiness"]
    assert [text for text in begun["untested"] if text.startswith(f"network_stack.somaxconn: {LISTENS}")]
    for state, value in (("tuned", "1"), ("untuned", "60"), ("tuned", "1")):
        assert steps("measure", tune=BOTH, state=state)["answer"]["taken_back"] == []
        assert (swappiness(big), backlog(big)) == (value, found)
    kept = steps("keep", tune=BOTH)["answer"]
    assert (kept["kept"], kept["written"]) == (True, [])
    assert (swappiness(big), backlog(big)) == ("1", found)
    assert not [text for text in files(big).values() if "somaxconn" in text]
    assert call(tune.main, big, **BOTH)["changed"], "tune sets the rest"
    assert backlog(big) == "8192"
    call(restore.main, big)
    assert (swappiness(big), backlog(big)) == ("60", found)


@pytest.mark.parametrize("end", ["back", "keep"])
@pytest.mark.parametrize("goal", [8192, 16384])
def test_what_an_earlier_run_has_set_stays(end: str, goal: int, big: FakeKernel, steps: Steps, call: Call) -> None:
    wanted = {"concerns": {**MEMORY["concerns"], "network_stack": {"somaxconn": goal}}}
    call(tune.main, big, concerns=QUEUE)
    big.written.clear()
    assert steps("begin", tune=wanted)["answer"]["tested"] == ["memory.swappiness"]
    steps("measure", tune=wanted, state="tuned")
    steps(end, tune=wanted)
    assert (swappiness(big), backlog(big)) == ("1" if end == "keep" else "60", "8192")
    assert {path for path, _text in big.written} == {SWAPPINESS}
    assert "net.core.somaxconn = 8192" in files(big)["etc/sysctl.d/99-nearmetal-network_stack.conf"]


@pytest.mark.parametrize("workload", sorted(set(WORKLOADS) - {"base", "burstable"}))
def test_of_a_workload_only_what_was_tested_is_kept(workload: str, big: FakeKernel, steps: Steps, call: Call) -> None:
    wanted = {"workload": [workload]}
    begun = steps("begin", tune=wanted)["answer"]
    kept = steps("keep", tune=wanted)["answer"]
    assert (kept["kept"], kept["written"]) == (True, [])
    planned = call(tune.main, big, check=True, **wanted)
    left = {f"{found['concern']}.{found['knob']}" for found in planned["findings"] if found["status"] == "would_change"}
    assert left >= {text.partition(":")[0] for text in begun["untested"]}
    assert not left & set(begun["tested"])


def test_what_a_run_that_prunes_does_not_test_it_does_not_keep(big: FakeKernel, steps: Steps, call: Call) -> None:
    found, pruned = backlog(big), {**BOTH, "prune": True}
    call(tune.main, big, concerns={"clocksource": {"source": "kvm-clock"}})
    steps("begin", tune=pruned)
    steps("measure", tune=pruned, state="tuned")
    assert steps("keep", tune=pruned)["answer"]["kept"] is True
    assert (swappiness(big), backlog(big)) == ("1", found)
    assert not [path for path in files(big) if "clocksource" in path]


def test_two_tunings_are_compared_without_it(big: FakeKernel, steps: Steps) -> None:
    other = {"concerns": {"memory": {"swappiness": 10}, "network_stack": {"somaxconn": 4242}}}
    begun = steps("begin", tune=BOTH, against=other)["answer"]
    assert begun["tested"] == ["memory.swappiness"]
    found = backlog(big)
    for state, value in (("tuned", "1"), ("untuned", "10")):
        steps("measure", tune=BOTH, against=other, state=state)
        assert (swappiness(big), backlog(big)) == (value, found)


def test_after_a_reboot_programs_have_started_anew_and_only_limits_are_not_tested(tmp_path: Path, call: Call) -> None:
    host = rebooting(tmp_path / "host")
    steps, limit = Steps(call, host), f"{host.root}/proc/sys/fs/aio-max-nr"
    options = {"tune": {"concerns": {**QUEUE, "memory": {"aio_max_nr": 1048576}}}, "reboot": True}
    found = Path(limit).read_text()
    begun = steps("begin", **options)["answer"]
    assert begun["tested"] == ["network_stack.somaxconn"]
    assert begun["untested"] == ["memory.aio_max_nr: it is a limit, which only a load that reaches it feels"]
    assert not steps("switch", state="tuned", **options).get("failed")
    host.boot_again()
    answer = steps("measure", state="tuned", **options)["answer"]
    assert (backlog(host), Path(limit).read_text(), answer["taken_back"]) == ("8192", found, [])
    alone = {"tune": {"concerns": {"memory": {"aio_max_nr": 1048576}}}, "reboot": True, "run": "r2"}
    steps("back", **options)
    host.boot_again()
    steps("back", **options)
    assert steps("begin", **alone)["msg"].startswith("nothing of this tuning can be tested: memory.aio_max_nr (")
