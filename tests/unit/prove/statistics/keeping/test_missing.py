# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads that are missing are an outcome: nothing is kept before it is excluded that the tuning loses them."""

from __future__ import annotations

import random
from typing import Callable, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.keeping.missing import highest_evidence
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import PAIR, SOAK, Measurement
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.prove.proofs import noisy, run, start

RUNS = 1000


def attempts(tuned: float, untuned: float, seed: int, count: int = 150) -> "list[int]":
    """What came of attempts at pairs whose loads are missing at these rates: the first that is ends the attempt."""
    generator = random.Random(seed)
    found = []
    for _attempt in range(count):
        first = generator.choice((-1, 1))
        rates = {-1: tuned, 1: untuned}
        lost = [state for state in (first, -first) if generator.random() < rates[state]]
        found.append(lost[0] if lost else 0)
    return found


@pytest.mark.parametrize("untuned", [0.0, 0.02, 0.1, 0.4])
def test_a_rise_is_excluded_wrongly_in_at_most_one_of_twenty_runs(untuned: float) -> None:
    wrong = sum(highest_evidence(attempts(untuned + 0.08, untuned, seed), 0.08) >= 20 for seed in range(RUNS))
    assert wrong <= (0.05 + 3 * (0.05 * 0.95 / RUNS) ** 0.5) * RUNS


def test_how_many_loads_exclude_a_rise() -> None:
    counts = [sum(highest_evidence([0] * count, rise) < 20 for count in range(100)) for rise in (0.08, 0.18)]
    assert counts == [41, 18]
    assert (
        highest_evidence([0] * 20 + [-1] + [0] * 60, 0.08) < 20 <= highest_evidence([0] * 20 + [-1, 1] + [0] * 60, 0.08)
    )


def failing_at(*soaks: int, load: int) -> "Callable[[Step, Measurement], Measurement]":
    def disturb(step: Step, measurement: Measurement) -> Measurement:
        fails = step.phase == SOAK and step.pair in soaks and step[3:5] == (load, "tuned")
        return measurement._replace(metrics=(), error="exit status 1") if fails else measurement

    return disturb


def test_stays_go_on_until_a_rise_is_excluded() -> None:
    # With so short stays the gain is shown sooner: seven pairs and seven stays have 28 tuned loads.
    record = run(noisy(0.2, 0.005), seed=3, burn_in=1)
    found = verdict(record)
    assert (found.verdict, found.keep, found.pairs, found.soaked) == ("better", True, 7, 73)
    failed, void, collapsed = found.missing
    assert (failed.tuned, failed.tuned_loads, failed.untuned_loads) == (0, 45, 48)
    assert min(failed.evidence, void.evidence, collapsed.evidence) >= 20
    assert verdict(run(noisy(0.2, 0.005), seed=3, reboot=True)).verdict != "better", "it has no boot ids"


@pytest.mark.parametrize(
    ("soak", "burn_in", "failing", "reason"),
    [
        (73, 1, (3,), "1 of 17 loads fail when tuned, 0 of 19 untuned: a rise by 8 % of the loads isn't excluded"),
        (600, 15, (3, 5), "the load failed in 2 measurements of the tuned host, and in none of the untuned host"),
    ],
)
def test_a_load_that_fails_when_tuned_is_not_kept(
    soak: int, burn_in: int, failing: "tuple[int, ...]", reason: str
) -> None:
    failed = failing_at(*failing, load=burn_in + 1)
    record = run(noisy(0.2, 0.005), failed, seed=3, soak=soak, burn_in=burn_in)
    found = verdict(record)
    assert (found.verdict, found.keep, found.over) == ("unclear", False, True)
    assert reason in found.reasons[0]
    assert record.measurements[-1].pair == failing[-1], "stays that can't exclude a rise any more end"


@pytest.mark.parametrize("soak", [204, 250, 400])
def test_fewer_loads_keep_nothing_that_more_would_not_and_say_that_they_are_few(soak: int) -> None:
    gain, none = noisy(0.06, 0.01), noisy(0.0, 0.01)
    too_few = f"isn't excluded, for which the loads of prove_soak ({soak}) are too few"
    for seed in range(6):
        assert verdict(run(gain, seed=seed)).keep
        found = verdict(run(gain, seed=seed, soak=soak))
        assert found.keep or found.reasons[0].endswith(too_few)
        assert not verdict(run(lambda step: (none if step.phase == SOAK else gain)(step), seed=seed, soak=soak)).keep


@pytest.mark.parametrize(("pairs", "least"), [(40, 35), (20, 20)])
def test_programs_that_each_switch_starts_are_started_often_before_anything_is_kept(pairs: int, least: int) -> None:
    begun = start(seed=3, pairs=pairs)
    restarting = begun._replace(start=begun.start._replace(restart="redis.service"))
    assert verdict(run(noisy(0.2, 0.005), record=restarting)).pairs == least
    assert verdict(run(noisy(0.2, 0.005), record=begun)).pairs < least
    assert verdict(run(noisy(-0.2, 0.005), record=restarting)).pairs < least, "a loss is known sooner"


def test_one_bad_start_of_a_program_is_not_kept() -> None:
    begun = start(seed=3)
    restarting = begun._replace(start=begun.start._replace(restart="redis.service"))

    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.03, 0.005)(step)
        bad = step.phase == PAIR and step.pair == 9 and step.state == "tuned"
        return (metric._replace(value=metric.value * (0.4 if bad else 1)),)

    found = verdict(run(load, record=restarting))
    assert (found.verdict, found.keep) == ("unclear", False)
    assert "the mean may have lost" in found.reasons[0]


def test_a_time_may_be_several_times_as_long_so_more_loads_exclude_that() -> None:
    def timed(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.06, 0.005)(step)
        slow = step.phase == SOAK and step[2:5] == (3, 17, "tuned")
        return (Metric("time", (4 if slow else 1) * 1e4 / metric.value, "s", "smaller"),)

    rate, time = verdict(run(noisy(0.06, 0.005), seed=3)), verdict(run(timed, seed=3))
    assert rate.keep
    assert time.soaked > 2 * rate.soaked
    assert time.missing[2].tuned == 1


def test_what_would_not_stay_needs_no_soak() -> None:
    for effect, keep in ((-0.1, "better"), (0.0, "better")):
        assert verdict(run(noisy(effect, 0.005), seed=3, keep=keep)).soaked == 0
    assert verdict(run(noisy(0.0, 0.005), seed=3, keep="not_worse")).soaked > 0
    assert verdict(run(noisy(0.2, 0.005), seed=3, soak=0)).keep, "the user asked for no soak"
