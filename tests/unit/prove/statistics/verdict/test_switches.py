# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a switch leaves behind isn't an effect of the tuning."""

from __future__ import annotations

from typing import Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics import history
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.prove.proofs import Load, noisy, run


def other_after_a_switch(tuned: float, factor: float, state: str = "untuned", seed: int = 5) -> Load:
    """A load that tuning changes by a share; in one state the first load after a switch has another figure."""
    states = ["untuned"]

    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(tuned, 0.02, seed)(step)
        switched = step.switch_to != states[-1]
        states.append(step.switch_to)
        return (metric._replace(value=metric.value * (factor if switched and step.switch_to == state else 1.0)),)

    return load


@pytest.mark.parametrize("seed", range(6))
def test_what_a_switch_leaves_behind_is_not_taken_for_the_tunings_effect(seed: int) -> None:
    # Without stays, or the rule in place of them, each of these runs ends as better, although the tuning costs 3 %.
    load = other_after_a_switch(-0.03, 0.85)
    found = verdict(run(load, seed=seed, pairs=20))
    assert (found.verdict, found.keep) == ("unclear", False)
    assert "right after switches, but not in " in found.reasons[0]
    assert found.metrics[0].low is not None
    assert found.metrics[0].high is not None
    assert found.metrics[0].low < -3 < found.metrics[0].high, "what is said is what the tuning does in stays"
    found = verdict(run(load, seed=seed, pairs=16, soak=0))
    assert (found.verdict, found.keep, found.pairs) == ("unclear", False, 16)
    assert "% worse right after a switch to untuned than later in the same state" in found.reasons[0]
    # With a gain beside which the switch hardly counts there is a verdict.
    assert verdict(run(other_after_a_switch(0.5, 0.9), seed=seed, pairs=16)).verdict == "better"


@pytest.mark.parametrize(("state", "factor"), [("untuned", 0.9), ("tuned", 1.1), ("tuned", 0.9), ("untuned", 1.1)])
def test_a_tuning_whose_switch_alone_does_something_is_neither_better_nor_worse(state: str, factor: float) -> None:
    # All that the states differ by is what the switch does, so to compare these two is not enough.
    runs = [run(other_after_a_switch(0.0, factor, state, seed), seed=seed, pairs=16) for seed in range(12)]
    found = [verdict(record).verdict for record in runs]
    assert found.count("unclear") >= 11, found


def test_no_verdict_comes_before_each_state_was_measured_after_itself() -> None:
    found = [run(noisy(0.2, 0.005, seed), seed=seed, soak=0) for seed in range(12)]
    assert {verdict(record).verdict for record in found} == {"better"}
    for record in found:
        known = history.levels(history.history_of(record), "")
        assert all(len(stayed) >= 2 for _switched, stayed in known.values())
    assert verdict(run(noisy(0.2, 0.005), pairs=7, soak=0)).verdict == "better", "but for the last pair"
    assert verdict(run(noisy(0.2, 0.005))).pairs == 7, "nor of a gain that the stays are to show"


def test_the_noise_of_a_load_is_not_called_an_effect_of_the_switches() -> None:
    found = [verdict(run(noisy(0.0, 0.06, seed), seed=seed, pairs=24)) for seed in range(40)]
    undecided = [result for result in found if result.verdict == "unclear"]
    called = [result for result in undecided if "right after a switch" in result.reasons[0]]
    assert len(undecided) >= 35
    assert len(called) <= 1, [result.reasons for result in called]
    assert undecided[0].reasons[0] == "24 pairs, the most allowed, don't decide whether requests changed"


@pytest.mark.parametrize("seed", range(6))
def test_what_switches_leave_behind_is_named_where_it_makes_the_pairs_undecided(seed: int) -> None:
    found = verdict(run(other_after_a_switch(-0.3, 0.6, "untuned", seed), seed=seed, pairs=24))
    assert found.verdict == "unclear"
    assert "% worse right after a switch to untuned than later in the same state" in found.reasons[0]
