# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""States between tuned and untuned: all but one concern, and another tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import run as engine

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.prove.experiments import BOTH, DISKS, MEMORY, SWAPPINESS, Call, Steps, files, nomerges, swappiness


@pytest.fixture
def big(tmp_path: Path) -> FakeKernel:
    return fresh(tmp_path / "big", "nitro_big")


def test_one_concern_is_untuned_and_all_others_stay_tuned(big: FakeKernel, call: Call) -> None:
    steps = Steps(call, big)
    before = (swappiness(big), nomerges(big))
    begun = steps("begin", tune=BOTH)["answer"]
    assert {name.partition(".")[0] for name in begun["tested"]} == {"memory", "block_storage"}
    for state, pages, ahead in (("untuned", before[0], {"2"}), ("tuned", "1", {"2"})):
        answer = steps("measure", state=state, without="memory")["answer"]
        assert (swappiness(big), nomerges(big), answer["taken_back"]) == (pages, ahead, [])
    big.written.clear()
    steps("measure", state="tuned", without="memory")
    assert [text.split()[0] for path, text in big.written if path == SWAPPINESS] == [before[0], "1"]
    assert not [path for path, _text in big.written if "/queue/" in path], "what isn't asked about isn't written"
    Path(f"{big.root}{SWAPPINESS}").write_text("1\n")
    taken = steps("look", state="untuned", without="memory")["answer"]["taken_back"]
    assert taken == [f"sysctl vm.swappiness is 1, not {before[0]}"]
    steps("back")
    assert (swappiness(big), nomerges(big)) == before


def test_a_value_that_somebody_set_meanwhile_is_named_at_the_end(big: FakeKernel, call: Call) -> None:
    steps, before = Steps(call, big), swappiness(big)
    for state in ("tuned", "untuned"):
        steps("begin", tune=MEMORY)
        steps("measure", state=state)
        Path(f"{big.root}{SWAPPINESS}").write_text("10\n")
        answer = steps("back")["answer"]
        assert answer == {"ended": True, "set_by_others": [f"sysctl vm.swappiness is 10, not {before}"]}
        assert swappiness(big) == "10"
        Path(f"{big.root}{SWAPPINESS}").write_text("60\n")


def kernel(host: FakeKernel) -> Dict[str, str]:
    """The places of the queues and of their interrupts."""
    places = ("sys/class/net/*/queues/*/?ps_*", "proc/irq/*/smp_affinity*")
    return {str(path): path.read_text() for place in places for path in Path(host.root).glob(place)}


def memory(value: str) -> Dict[str, Any]:
    return {"memory": {"swappiness": int(value)}}


@pytest.mark.parametrize(
    ("tuned", "against", "states"),
    [
        (BOTH["concerns"], {**memory("10"), **DISKS}, {"tuned": ("1", "2"), "untuned": ("10", "2")}),
        (BOTH["concerns"], memory("10"), {"tuned": ("1", "2"), "untuned": ("10", "original")}),
        (DISKS, memory("1"), {"tuned": ("original", "2"), "untuned": ("1", "original")}),
    ],
    ids=["one of two the same", "one of two in both", "nothing in common"],
)
def test_another_tuning_stands_in_for_the_untuned_host(
    tuned: Dict[str, Any], against: Dict[str, Any], states: Dict[str, Tuple[str, str]], big: FakeKernel, call: Call
) -> None:
    steps, options = Steps(call, big), {"tune": {"concerns": tuned}, "against": {"concerns": against}}
    found, original = files(big), (swappiness(big), next(iter(nomerges(big))))
    begun = steps("begin", **options)["answer"]
    assert ("memory.swappiness" in begun["tested"], begun["untested"]) == (True, []), begun
    for state in ("untuned", "tuned", "tuned", "untuned"):
        answer = steps("measure", state=state)["answer"]
        wanted = tuple(original[place] if value == "original" else value for place, value in enumerate(states[state]))
        assert (swappiness(big), nomerges(big), answer["taken_back"]) == (wanted[0], {wanted[1]}, []), state
    steps("back")
    assert ((swappiness(big), next(iter(nomerges(big)))), files(big)) == (original, found)


@pytest.mark.parametrize("against", [{}, {"against": {"concerns": memory("10")}}], ids=["untuned", "another"])
def test_a_workloads_refused_value_is_left_out_by_name(against: Dict[str, Any], big: FakeKernel, call: Call) -> None:
    big.nics.coalesce["ens6"] = [20, *[0] * 21]
    big.nics.stubborn["ens6"] = "EOPNOTSUPP"
    found, before = files(big), {name: list(values) for name, values in big.nics.coalesce.items()}
    steps, options = Steps(call, big), {"tune": {"workload": "web"}, **against}
    begun = steps("begin", **options)
    assert not begun.get("failed"), begun["msg"]
    assert big.nics.coalesce == before, "what was tried is back before the first measurement"
    refused = [text for text in begun["answer"]["left_out"] if "adaptive_rx 1 of ens6" in text]
    assert len(refused) == 1, begun["answer"]
    assert refused[0].startswith("network_stack.adaptive_rx: the kernel refused ")
    assert refused[0].endswith("; tune leaves it out")
    for state in ("tuned", "untuned", "tuned"):
        answer = steps("measure", state=state, **options)
        assert (answer.get("failed"), answer.get("answer", {}).get("taken_back")) == (None, []), answer["msg"]
    steps("back", **options)
    assert (files(big), big.nics.coalesce) == (found, before)


def test_a_users_value_that_a_driver_refuses_starts_no_experiment(big: FakeKernel, call: Call) -> None:
    big.nics.coalesce["ens6"] = [20, *[0] * 21]
    big.nics.stubborn["ens6"] = "EOPNOTSUPP"
    found, before = files(big), {name: list(values) for name, values in big.nics.coalesce.items()}
    wanted = {"workload": "web", "concerns": {"network_stack": {"rx_usecs": 50}}}
    begun = Steps(call, big)("begin", tune=wanted)
    assert "network_stack.rx_usecs: the kernel refused " in begun["msg"]
    assert (files(big), big.nics.coalesce) == (found, before)


def queues(**options: Any) -> Dict[str, Any]:
    return {"network_irq": {"allow_disruptive": True, **options}}


@pytest.mark.parametrize(
    ("tuned", "against"),
    [
        (queues(queues="4", policy="auto"), queues(queues="2", policy="auto")),
        (queues(queues="4", rps="0-3"), queues(queues="2", rps="0-3")),
        (queues(rps="0-3"), queues(queues="2", rps="0-3")),
    ],
    ids=["interrupts", "the same of each queue", "queues in one alone"],
)
def test_queues_exist_before_their_settings_are_set(
    tuned: Dict[str, Any], against: Dict[str, Any], big: FakeKernel, call: Call
) -> None:
    steps, options = Steps(call, big), {"tune": {"concerns": tuned}, "against": {"concerns": against}}
    found = kernel(big)
    assert "network_irq.queues" in steps("begin", **options)["answer"]["tested"]
    for state in ("tuned", "untuned", "tuned"):
        answer = steps("measure", state=state, **options)
        assert not answer.get("failed"), answer["msg"]
        assert answer["answer"]["taken_back"] == [], state
    steps("back", **options)
    assert kernel(big) == found


def test_the_same_tuning_twice_is_nothing_to_compare(big: FakeKernel, call: Call) -> None:
    found = files(big)
    answer = Steps(call, big)("begin", tune=BOTH, against=BOTH)["answer"]
    assert "untuned and tuned don't differ on this host" in answer["nothing"]
    assert files(big) == found


def test_the_better_tuning_is_kept_as_tune_would_and_the_other_is_not(big: FakeKernel, call: Call) -> None:
    steps, options = Steps(call, big), {"tune": MEMORY, "against": {"concerns": memory("10")}}
    steps("begin", **options)
    steps("measure", state="untuned")
    assert steps("keep", **options)["answer"]["kept"] is True
    assert swappiness(big) == "1"


@pytest.mark.parametrize("step", ["plan", "begin"])
def test_a_host_on_which_tune_refuses_says_why_nothing_differs(step: str, tmp_path: Path, call: Call) -> None:
    elsewhere = fresh(tmp_path / "elsewhere", "not_ec2")
    before = files(elsewhere)
    said = Steps(call, elsewhere)(step, tune={"workload": ["in_memory_database"]})["answer"]["nothing"]
    assert (
        "there is nothing to compare; tune would refuse: this host doesn't look like EC2; allow_not_ec2: true" in said
    )
    assert said.count("doesn't look like EC2") <= 3
    assert files(elsewhere) == before


def test_check_mode_leaves_nothing_out_that_both_tunings_set(big: FakeKernel, call: Call) -> None:
    options = {"tune": BOTH, "against": {"concerns": {**memory("10"), **DISKS}}}
    planned = Steps(call, big)("plan", **options)["answer"]
    assert (planned["tested"], planned["untested"]) == (["memory.swappiness"], [])


@pytest.mark.parametrize("against", [{}, {"concerns": {"memory": {"swappiness": 10}}}])
def test_a_preview_plans_each_tuning_once(
    against: Dict[str, Any], big: FakeKernel, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = []
    plan_run = engine.plan_run

    def counted(*arguments: Any, **more: Any) -> engine.Run:
        planned.append(arguments)
        return plan_run(*arguments, **more)

    monkeypatch.setattr(engine, "plan_run", counted)
    answer = Steps(call, big)("plan", tune=BOTH, against=against)["answer"]
    assert "memory.swappiness" in answer["tested"]
    assert len(planned) == (2 if against else 1)
