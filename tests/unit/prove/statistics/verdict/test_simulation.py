# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Over thousands of simulated runs, prove is wrong in at most one of twenty, whatever the noise."""

from __future__ import annotations

import math
import random

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.evidence import NEEDED, path, peak
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.interval import interval
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import SHAM
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.prove.noises import HARSH, NOISES, PAIRS, Boots, differences, of_blocks, of_pairs
from tests.support.prove.proofs import noisy, run

RUNS = 2000
THREE_DEVIATIONS = 3 * math.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize("name", sorted({**NOISES, **HARSH}))
def test_without_effect_a_run_is_wrong_in_at_most_one_of_twenty_whatever_the_noise(name: str) -> None:
    # 'better' needs the evidence above zero to reach 20, 'worse' that below; the interval misses the truth at no other
    # time. It is looked at after each pair, and never stopped early: what a run could do wrong at most.
    wrong = {"better": 0, "worse": 0}
    for seed in range(RUNS):
        found = differences({**NOISES, **HARSH}[name](random.Random(f"{name} {seed}")), seed, 0.0, PAIRS)
        above, below = peak(found)
        wrong["better"] += above >= NEEDED
        wrong["worse"] += below >= NEEDED
        if seed < 20:
            assert all(math.isfinite(side) for step in path(found) for side in step)
            span = interval(found)
            assert (span.low < 0 < span.high) == (max(above, below) < NEEDED)
    assert sum(wrong.values()) <= (0.05 + THREE_DEVIATIONS) * RUNS
    # Each direction has half of it.
    assert max(wrong.values()) <= (0.025 + THREE_DEVIATIONS) * RUNS


@pytest.mark.parametrize("name", sorted(NOISES))
def test_the_interval_holds_the_truth_in_nineteen_of_twenty_runs(name: str) -> None:
    # It holds a change that the evidence against never reached, which is the same for all pairs shifted by the change.
    # So a run that goes on for as long as it may is the hardest: whatever ends it earlier only widens the interval.
    truth = math.log1p(0.05)
    held = 0
    for seed in range(RUNS):
        found = differences(NOISES[name](random.Random(f"{name} {seed}")), seed, truth, PAIRS)
        held += max(peak(found, truth)) < NEEDED
        if seed < 20:
            span = interval(found)
            assert (span.low <= truth <= span.high) == (max(peak(found, truth)) < NEEDED)
    assert held >= 0.95 * RUNS


@pytest.mark.parametrize("name", sorted(NOISES))
def test_with_a_reboot_before_each_measurement_a_run_is_wrong_as_seldom(name: str) -> None:
    runs = 500
    wrong = 0
    for seed in range(runs):
        generator = random.Random(f"{name} {seed}")
        found = of_pairs(Boots(NOISES[name](generator), generator), seed, 0.0, 18)
        wrong += max(peak(found)) >= NEEDED
    assert wrong <= (0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)) * runs


def test_blocks_of_reboots_keep_the_promise_only_with_one_difference_each() -> None:
    # The reason for pairs: both halves of a block ABBA share one coin, so two differences of it aren't independent;
    # and one difference takes three reboots in place of two.
    wrong = {"pairs": 0, "one": 0, "two": 0}
    for seed in range(300):
        generator = random.Random(f"blocks {seed}")
        boots = Boots((generator.gauss(0, 0.005) for _load in range(1000)), generator, every_second=0.06)
        blocks = of_blocks(boots, seed, 0.0, 12)
        designs = {
            "pairs": of_pairs(boots, seed, 0.0, 18),
            "one": [sum(both) / 2 for both in blocks],
            "two": [difference for both in blocks for difference in both],
        }
        for design, found in designs.items():
            wrong[design] += max(peak(found)) >= NEEDED
    most = (0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)) * 300
    assert max(wrong["pairs"], wrong["one"]) <= most
    assert wrong["two"] >= 0.15 * 300


def test_an_effect_of_five_percent_is_found_in_nine_of_ten_runs() -> None:
    seen = missed = 0
    for seed in range(RUNS):
        generator = random.Random(f"effect {seed}")
        noise = (generator.gauss(0, 0.02) for _slot in range(2 * PAIRS))
        found = differences(noise, seed, math.log(1.05), PAIRS)
        above, below = peak(found)
        seen += above >= NEEDED
        missed += below >= NEEDED
    assert seen >= 0.9 * RUNS
    assert missed == 0


def test_whole_runs_find_a_difference_that_exists() -> None:
    # Through the record, as the caller goes: warm-up, sham pairs, pairs, verdict.
    words = {
        effect: [verdict(run(noisy(effect, 0.02, seed), seed=seed)) for seed in range(12)]
        for effect in (0.0, 0.06, -0.06)
    }
    assert [outcome.verdict for outcome in words[0.06]].count("better") >= 11
    assert [outcome.verdict for outcome in words[-0.06]].count("worse") >= 11
    assert {outcome.verdict for outcome in words[0.0]} <= {"same", "unclear", "better", "worse"}
    assert [outcome.verdict for outcome in words[0.0]].count("same") >= 6
    for effect, found in words.items():
        spans = [(outcome.metrics[0].low, outcome.metrics[0].high) for outcome in found if outcome.pairs >= 6]
        assert len(spans) >= 11
        assert sum(low < 100 * effect < high for low, high in spans) >= len(spans) - 1


def test_swapped_labels_turn_every_sign() -> None:
    def swapped(step: Step) -> "tuple[Metric, ...]":
        turned = {"tuned": "untuned", "untuned": "tuned"}
        other = step._replace(state=turned[step.state])
        if step.phase == "pair":
            return noisy(0.04, 0.02, 9)(other._replace(switch_to=other.state))
        (metric,) = noisy(0.04, 0.02, 9)(other)
        return (metric._replace(value=metric.value * 1.04),)

    # What is kept needs more pairs, which exclude that it fails more often.
    longer, shorter = run(noisy(0.04, 0.02, 9), seed=9, soak=0), run(swapped, seed=9, soak=0)
    assert (verdict(longer).verdict, verdict(shorter).verdict) == ("better", "worse")
    assert len(longer.measurements) > len(shorter.measurements)
    straight = verdict(longer._replace(measurements=longer.measurements[: len(shorter.measurements)]))
    turned = verdict(shorter)
    assert straight.pairs == turned.pairs
    first, second = straight.metrics[0], turned.metrics[0]
    for name, counterpart in (("change", "change"), ("low", "high"), ("high", "low")):
        ratio = (1 + getattr(first, name) / 100) * (1 + getattr(second, counterpart) / 100)
        assert ratio == pytest.approx(1)
    assert first.evidence == pytest.approx(second.evidence)


def test_a_metric_where_smaller_is_better_has_the_same_verdict_with_the_opposite_sign() -> None:
    def latency(step: Step) -> "tuple[Metric, ...]":
        (metric,) = noisy(0.04, 0.02, 9)(step)
        return (Metric("p99", 1e6 / metric.value, "ms", "smaller"),)

    larger = verdict(run(noisy(0.04, 0.02, 9), seed=9))
    smaller = verdict(run(latency, seed=9))
    assert (larger.verdict, smaller.verdict) == ("better", "better")
    assert smaller.metrics[0].high < 0 < larger.metrics[0].low
    assert smaller.metrics[0].low < smaller.metrics[0].change < smaller.metrics[0].high
    assert larger.switched is not None
    assert smaller.switched is not None
    assert larger.switched.evidence == pytest.approx(smaller.switched.evidence), "of a time more stays follow"


def test_no_difference_at_all_is_the_same() -> None:
    found = verdict(run(lambda step: (Metric("requests", 1000.0),), seed=3))
    assert found.verdict == "same"
    assert (found.metrics[0].change, found.noise) == (0.0, 0.0)
    assert 1.0 < found.smallest_visible < 2.0, "what is much smaller than the margin of 2 % ends as the same"


def test_a_load_that_differs_between_sham_states_gets_no_verdict() -> None:
    def biased(step: Step) -> "tuple[Metric, ...]":
        (metric,) = noisy(0.0, 0.001, 4)(step)
        return (metric._replace(value=metric.value * (1.03 if step.state == "tuned" else 1)),)

    record = run(biased, seed=4)
    found = verdict(record)
    assert found.verdict == "unclear"
    assert "sham pairs, in which nothing was changed, differ" in found.reasons[0]
    assert (found.sham.pairs, found.pairs, found.over, found.keep) == (8, 0, True, False)
    assert found.sham.low > 0
    # By chance alone that happens to 1 of 128 runs, and most need no more than three sham pairs.
    shams = [verdict(run(noisy(0.0, 0.02, seed), seed=seed, most=20)).sham.pairs for seed in range(100)]
    assert shams.count(3) == pytest.approx(75, abs=3 * math.sqrt(100 * 0.75 * 0.25))
    assert shams.count(8) <= 100 / 64 + 3 * math.sqrt(100 / 64)
    assert SHAM in {measurement.phase for measurement in record.measurements}
