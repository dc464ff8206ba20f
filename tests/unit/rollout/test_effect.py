# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Difference in differences against the hosts that wait: its tests keep their word, whatever the noise is."""

from __future__ import annotations

import math
import random
from itertools import combinations
from statistics import mean
from typing import List, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import effect
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.effect import Draws, Watch


def watch_of(before: List[List[Optional[float]]], after: List[List[Optional[float]]], tuned: int) -> Watch:
    """Looks at one metric, m, of hosts of one stratum."""
    hosts = len((before + after)[0])
    return Watch(tuned, [0] * hosts, [{"m": row} for row in before], [{"m": row} for row in after])


def test_what_hits_all_hosts_alike_is_no_gain_of_the_tuned() -> None:
    watch = watch_of([[10, 20, 40, 80]], [[5, 10, 20, 40]], 2)
    assert effect.gains(watch, "m", True) == pytest.approx([-math.log(2)] * 4)
    assert Draws(watch, effect.gains(watch, "m", True), 1).estimate() == pytest.approx(0)


def test_a_metric_of_which_less_is_better_gains_by_falling() -> None:
    watch = watch_of([[10, 10]], [[9, 10]], 1)
    assert Draws(watch, effect.gains(watch, "m", False), 1).estimate() == pytest.approx(math.log(10 / 9))


def test_looks_without_any_value_dont_count_and_a_host_needs_a_value_in_half_of_the_others() -> None:
    nothing: List[Optional[float]] = [None, None, None]
    watch = watch_of([[1, 1, 1]], [[2, 1, None], nothing, [2, None, None], [2, None, 1]], 1)
    assert effect.gains(watch, "m", True) == [pytest.approx(math.log(2)), None, None]


def test_a_metric_that_never_changes_excludes_a_loss() -> None:
    watch = watch_of([[0.1, 0.2, 0.3] * 4] * 10, [[0.1, 0.2, 0.3] * 4] * 3, 5)
    draws = Draws(watch, effect.gains(watch, "m", True), 1)
    assert draws.p_no_harm(0.05) < 0.01 < draws.p_harm()


@pytest.mark.parametrize("unit", [0.001, 1, 1000])
def test_a_metric_that_may_be_zero_is_compared_alike_in_any_unit(unit: float) -> None:
    watch = watch_of([[0, unit]], [[unit, unit]], 1)
    assert effect.gains(watch, "m", True) == pytest.approx([math.log(11), 0])


def test_what_comes_later_changes_no_look_that_was_judged() -> None:
    first = watch_of([[10, 30, 20, 20]], [[10, 20, 20, 20]], 2)
    later = first._replace(after=[*first.after, {"m": [0, 20, 0, 20]}])
    before = effect.evidence_of_harm(first, "m", True, 2)
    assert effect.evidence_of_harm(later, "m", True, 2) == effect.evidence_of_harm(later, "m", True, 2, before)
    assert effect.evidence_of_harm(first, "m", True, 2, before) == before, "a look is bet on once"
    gained = effect.gains(later, "m", True)
    assert gained[0] == pytest.approx(math.log(1 / 10) / 2)  # a zero counts as a tenth of the least, which was 10


def test_a_sample_is_large_enough_for_what_it_has_to_show() -> None:
    gains = [-1.0 - host / 1e3 if host < 30 else host / 1e3 for host in range(90)]
    draws = Draws(Watch(30, [0] * 90, [], []), gains, 1)
    assert draws.p_harm() == pytest.approx(1 / 2001)
    assert draws.p_harm(needed=3600) < 1 / 3600


def test_the_exact_test_counts_the_draws_by_hand() -> None:
    values = [-0.3, -0.1, 0.0, 0.05, 0.1, 0.2]
    watch = Watch(2, [0] * 6, [], [])
    sums = [sum(chosen) for chosen in combinations(values, 2)]
    by_hand = sum(total <= values[0] + values[1] + 1e-9 for total in sums) / len(sums)
    assert Draws(watch, values, 1).p_harm() == pytest.approx(by_hand) == pytest.approx(1 / 15)
    assert Draws(watch, values, 1).p_no_harm(0.0) == 1.0


def test_strata_are_drawn_each_by_itself() -> None:
    watch = Watch(2, [0, 1, 0, 1, 1], [], [])
    assert Draws(watch, [-1, -1, 0, 0, 0], 1).count == 2 * 3
    assert Draws(watch, [-1, -1, 0, 0, 0], 1).p_harm() == pytest.approx(1 / 6)


def test_both_tests_are_false_as_rarely_as_they_say() -> None:
    coin = random.Random(4)
    harm = no_harm = 0
    for run in range(300):
        values = [coin.choice((coin.gauss(0, 0.1), coin.gauss(0, 2))) for _host in range(20)]
        harm += Draws(Watch(6, [0] * 20, [], []), values, run).p_harm() <= 0.05
        worse = [*(value - 0.05 for value in values[:6]), *values[6:]]
        no_harm += Draws(Watch(6, [0] * 20, [], []), worse, run).p_no_harm(0.05) <= 0.05
    assert max(harm, no_harm) <= 26  # 15 are expected, 27 in less than 1 of 200


def test_the_interval_holds_the_effect_and_excludes_what_the_tests_exclude() -> None:
    coin = random.Random(5)
    missed = 0
    for run in range(12):
        values = [coin.gauss(-0.1 if host < 10 else 0, 0.05) for host in range(40)]
        draws = Draws(Watch(10, [0] * 40, [], []), values, run)
        low, high = draws.interval(0.025)
        missed += not low <= -0.1 <= high
        assert low <= draws.estimate() <= high
    assert missed <= 3


def test_evidence_at_every_look_is_false_as_rarely_as_it_says() -> None:
    coin = random.Random(6)
    alarms = 0
    for _run in range(150):
        looks = 10
        levels = [coin.gauss(0, 0.3) for _host in range(40)]  # what a host keeps is in all looks
        rows = [[math.exp(level + coin.gauss(0, 0.05)) for level in levels] for _look in range(looks)]
        watch = watch_of([[1.0] * 40], [list(row) for row in rows], 20)
        alarms += effect.evidence_of_harm(watch, "m", True, looks).evidence >= 20
    assert alarms <= 8


def test_hosts_that_fell_silent_are_counted_against_chance() -> None:
    tuned = [True] * 10 + [False] * 90
    assert effect.p_missing(tuned, [True] * 5 + [False] * 95) < 1e-4
    assert effect.p_missing(tuned, [False] * 95 + [True] * 5) == pytest.approx(1)
    assert mean([effect.p_missing(tuned, [False] * 100)]) == 1
