# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each statistic against an independent one: scipy, numpy, fractions, or a count of all cases."""

from __future__ import annotations

import decimal
import itertools
import json
import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import List

import numpy
import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics import (
    decision,
    evidence,
    forecast,
    interval,
    rules,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.history import history_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.interval import comparison_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.order import order
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from scipy import optimize, stats

from tests.support.prove import noises
from tests.support.prove.proofs import noisy, run

LAMBDAS = ("0.6", "1.25", "2.5", 5, 10, 20, 40, 80, 160)


def differences(seed: int, count: int, deviation: float = 0.03, effect: float = 0.02) -> List[float]:
    """Some differences of pairs."""
    generator = random.Random(seed)
    return [generator.gauss(effect, deviation) for _index in range(count)]


def exact(found: List[float], shift: float) -> "tuple[float, float]":
    """The evidence of both sides as products of exp / cosh, in 60 digits."""
    with decimal.localcontext() as context:
        context.prec = 60
        above = below = Decimal(0)
        for strength in LAMBDAS:
            up = down = Decimal(1)
            for difference in found:
                wager = Decimal(strength) * (Decimal(difference) - Decimal(shift))
                cosh = (wager.exp() + (-wager).exp()) / 2
                up, down = up * wager.exp() / cosh, down * (-wager).exp() / cosh
            above, below = above + up, below + down
        return float(above / 18), float(below / 18)


@pytest.mark.parametrize("count", [1, 2, 6, 40])
def test_evidence_is_the_mean_of_products_of_exp_by_cosh(count: int) -> None:
    for shift in (0.0, 0.02, -0.3, 3.0):
        found = differences(count, count)
        assert evidence.path(found, shift)[-1] == pytest.approx(exact(found, shift), rel=1e-9, abs=1e-300)
        for extreme in ([700.0] * count, [-700.0, 700.0][:count], [0.0] * count, [1e-300] * count):
            assert evidence.path(extreme)[-1] == pytest.approx(exact(extreme, 0), rel=1e-9, abs=1e-300)


def test_evidence_has_the_mean_one_over_all_coins() -> None:
    # Whatever the sizes of the differences are: counted over all 2^10 series of coins, without rounding that matters.
    sizes = [0.001, 0.3, 0.02, 0.05, 2.0, 0.0, 0.011, 0.2, 0.07, 0.004]
    total = Fraction(0)
    for signs in itertools.product((1, -1), repeat=len(sizes)):
        last = evidence.path([sign * size for sign, size in zip(signs, sizes)])[-1]
        total += Fraction(last.above) + Fraction(last.below)
    assert float(total / 2 ** len(sizes)) == pytest.approx(1, abs=1e-9)


def test_evidence_reaches_twenty_in_at_most_one_of_twenty_series_of_coins() -> None:
    # Ville's inequality, counted over all 2^12 series of coins, checked after each pair.
    for sizes in ([0.05] * 12, [0.01 * (1 + index) for index in range(12)], [1.0] * 6 + [0.02] * 6):
        signs = numpy.array(list(itertools.product((1, -1), repeat=len(sizes))))
        above, below = _paths(signs * numpy.array(sizes))
        reached = (above.max(axis=1) >= math.log(20)) | (below.max(axis=1) >= math.log(20))
        assert reached.mean() <= 0.05
        sample = random.Random(1).sample(range(len(signs)), 50)
        for index in sample:
            found = evidence.peak(list(signs[index] * numpy.array(sizes)))
            assert tuple(found) == pytest.approx(
                (max(0.5, math.exp(above[index].max())), max(0.5, math.exp(below[index].max())))
            )


def _paths(found: "numpy.ndarray") -> "tuple[numpy.ndarray, numpy.ndarray]":
    """The evidence of many runs at once, by sums of logarithms of cosh; written apart from ours."""
    wagers = found[:, :, None] * numpy.array(LAMBDAS, dtype=float)
    log_cosh = numpy.logaddexp(wagers, -wagers) - math.log(2)
    sides = [numpy.cumsum(sign * wagers - log_cosh, axis=1) for sign in (1, -1)]
    above, below = [numpy.logaddexp.reduce(side, axis=2) - math.log(18) for side in sides]
    return above, below


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("drift", "ends"),
        ("neighbour", "ends"),
        ("trend", "ends"),
        ("every_second", "alternating"),
    ],
)
def test_the_simulated_noises_mislead_a_comparison_without_a_coin(name: str, places: str) -> None:
    runs = [
        list(itertools.islice(noises.NOISES[name](random.Random(f"{name} {seed}")), noises.SLOTS))
        for seed in range(200)
    ]
    values = numpy.array(runs)
    split = (values[:, :40], values[:, 40:]) if places == "ends" else (values[:, ::2], values[:, 1::2])
    wrong = stats.mannwhitneyu(*split, axis=1).pvalue < 0.05
    assert wrong.mean() > 0.3


def test_on_a_busy_guest_random_pairs_are_right_where_before_and_after_is_wrong() -> None:
    # Seconds of the same program, run 480 times, on a KVM guest with two CPUs that other programs kept busy.
    seconds = json.loads(Path(__file__).with_name("busy_guest.json").read_text("utf-8"))
    runs = [seconds[first : first + noises.SLOTS] for first in range(0, len(seconds), noises.SLOTS)]
    assert len(runs) == 6
    wrong = tosses = 0
    for seed in range(200):
        for number, values in enumerate(runs):
            slots = iter([-math.log(value) for value in values])
            wrong += (
                max(evidence.peak(noises.differences(slots, 1000 * number + seed, 0.0, noises.PAIRS)))
                >= evidence.NEEDED
            )
            tosses += 1
    assert wrong <= 0.05 * tosses + 3 * math.sqrt(0.05 * 0.95 * tosses)
    # All untuned and then all tuned: the halves of five of the six runs differ.
    fooled = [stats.mannwhitneyu(values[: noises.PAIRS], values[noises.PAIRS :]).pvalue < 0.05 for values in runs]
    assert sum(fooled) == 5


def test_p_value_is_one_divided_by_the_largest_evidence() -> None:
    found = differences(3, 15)
    most = max(max(exact(found[: index + 1], 0)) for index in range(len(found)))
    ps = [comparison_of(changes, Metric("time", 1.0), 0.02, 20.0, True).p for changes in (found, [], [0.0])]
    assert ps == [pytest.approx(1 / most), 1.0, 1.0]


@pytest.mark.parametrize(("seed", "count"), [(1, 6), (2, 7), (3, 20), (4, 40)])
def test_interval_holds_the_shifts_against_which_the_evidence_stays_low(seed: int, count: int) -> None:
    found = differences(seed, count)
    for needed in (20.0, 60.0):

        def highest(shift: float, side: int, threshold: float = math.log(needed)) -> float:
            return float(_paths(numpy.array([found]) - shift)[side].max()) - threshold

        span = interval.interval(found, needed)
        for limit, side in ((span.low, 0), (span.high, 1)):
            if math.isinf(limit):
                # Saturated: not even the farthest shift brings that much.
                assert highest(-100 if side == 0 else 100, side) < 0
            else:
                root = optimize.brentq(highest, limit - 0.5, limit + 0.5, args=(side,), xtol=1e-9)
                assert limit == pytest.approx(root, abs=1e-6)


def test_interval_excludes_nothing_before_the_sixth_pair() -> None:
    for count in range(6):
        assert interval.interval([0.5] * count) == (-math.inf, math.inf)
    assert interval.interval([0.5] * 6).low > 0.25
    assert interval.interval([0.5] * 7).low > 0.4


@pytest.mark.parametrize("count", [1, 2, 3, 8, 41])
def test_estimate_is_that_of_hodges_and_lehmann(count: int) -> None:
    found = differences(count, count)
    # By brute force, and as the shift at which Wilcoxon's signed ranks are balanced.
    means = [(first + second) / 2 for first, second in itertools.combinations_with_replacement(found, 2)]
    assert interval.estimate(found) == pytest.approx(median(means))
    if count > 2:
        shifted = numpy.array(found) - interval.estimate(found)
        ranks = stats.rankdata(abs(shifted))
        assert abs(ranks[shifted > 0].sum() - ranks[shifted < 0].sum()) <= 2 * ranks.max()
    outlier = [*found, 1e6]
    assert interval.estimate(outlier) <= max(found) or count < 3


def test_binomial_is_scipys() -> None:
    for count in (1, 2, 5, 6, 7, 20, 41):
        for fewer in range(count // 2 + 1):
            assert rules.binomial(fewer, count) == pytest.approx(stats.binomtest(fewer, count).pvalue)
    assert rules.binomial(0, 0) == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_score_of_a_rank_sum_is_scipys(seed: int) -> None:
    generator = random.Random(seed)
    first, second = ([float(generator.randrange(30)) for _value in range(generator.randint(2, 25))] for _side in (1, 2))
    assert decision.rank_sum_score(first, second) == pytest.approx(abs(stats.ranksums(first, second).statistic))


def test_the_chance_of_failures_in_one_state_is_that_of_fisher() -> None:
    def disturb(step: Step, measurement: Measurement) -> Measurement:
        failed = step.phase == "pair" and step.state == "tuned" and step.pair in (2, 5) and step.attempt == 1
        return measurement._replace(metrics=(), error="exit status 1") if failed else measurement

    history = history_of(run(noisy(0.05, 0.03), disturb, seed=8))
    attempts = [*history.warm_ups, *history.shams, *history.pairs]
    states = [measurement.host_state for attempt in attempts for measurement in attempt.measurements]
    failed, chance = rules.failures_when_tuned(history)
    assert len(failed) == 2
    table = [[2, states.count("tuned") - 2], [0, states.count("untuned")]]
    assert chance == pytest.approx(stats.fisher_exact(table, "greater").pvalue)


@pytest.mark.parametrize("pairs", [6, 7, 8, 9, 10, 20, 40, 100, 200])
@pytest.mark.parametrize("deviation", [0.01, 0.02, 0.07, 0.16, 0.35, 0.65])
def test_what_so_many_pairs_could_show_they_show_in_four_runs_of_five(deviation: float, pairs: int) -> None:
    effect = forecast.smallest_visible(deviation, pairs)
    found = numpy.random.default_rng(11).normal(effect, deviation, (1000, pairs))
    above, _below = _paths(found)
    power = (above >= math.log(20)).any(axis=1).mean()
    assert power > 0.7
    assert power < 0.9 or pairs < 10, "few pairs show all of what they just show, or nothing"
    assert forecast.pairs_needed(deviation, effect) == pytest.approx(pairs, abs=1)


def test_forecast_of_little_noise() -> None:
    assert [forecast.pairs_needed(0.0, effect) for effect in (0.3, 0.05, 0.02, 0.01)] == [6, 7, 8, 9]
    assert forecast.pairs_needed(0.65, 0.001) > 1000000
    assert forecast.noise([0.1]) is None
    assert forecast.noise([0.1], [0.2]) is None
    assert forecast.noise([-0.1, 0.0, 0.1], [0.9, 1.1, 1.0]) == pytest.approx(0.1)
    assert forecast.noise([0.1, 0.2, 0.4]) == pytest.approx(numpy.std([0.1, 0.2, 0.4], ddof=1))


def test_order_is_a_fair_coin() -> None:
    coins = [order(seed, "db-1", "pair", pair, 1)[0] == "tuned" for seed in range(100) for pair in range(100)]
    assert stats.binomtest(sum(coins), len(coins)).pvalue > 0.001
    # Neither the pair before nor the same pair of another run, host, phase or attempt foretells it.
    for others in (
        [coins[-1], *coins[:-1]],
        [*coins[100:], *coins[:100]],
        [order(seed, "db-2", "pair", pair, 1)[0] == "tuned" for seed in range(100) for pair in range(100)],
        [order(seed, "db-1", "sham", pair, 1)[0] == "tuned" for seed in range(100) for pair in range(100)],
        [order(seed, "db-1", "pair", pair, 2)[0] == "tuned" for seed in range(100) for pair in range(100)],
    ):
        alike = sum(first == second for first, second in zip(coins, others))
        assert stats.binomtest(alike, len(coins)).pvalue > 0.001


def test_order_names_each_state_once() -> None:
    assert {tuple(sorted(order(seed, "h", "pair", 1, 1))) for seed in range(50)} == {("tuned", "untuned")}
