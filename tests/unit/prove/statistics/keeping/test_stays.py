# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before a tuning is kept, the host stays in each state for several loads, and the gain must be there too."""

from __future__ import annotations

import random
from itertools import groupby
from typing import Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import SOAK
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step, next_step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.prove.proofs import Load, measured, noisy, run, start


def lasting(loads: int, percent: float, effect: float = 0.0, deviation: float = 0.01) -> Load:
    """A load that gains so much for so many loads after a switch to tuned, and has an effect that lasts."""
    since = [0]

    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(effect, deviation)(step)
        since[0] = since[0] + 1 if step.stays else 1
        gain = percent if step.switch_to == "tuned" and since[0] <= loads else 0.0
        return (metric._replace(value=metric.value * (1 + gain / 100)),)

    return load


def test_a_host_stays_for_several_loads_and_a_state_that_goes_on_is_not_switched() -> None:
    record = run(noisy(0.2, 0.005), seed=3, burn_in=4)
    stays = [measurement for measurement in record.measurements if measurement.phase == SOAK]
    first = len(record.measurements) - len(stays)
    steps = [
        next_step(record._replace(measurements=record.measurements[:index]))
        for index in range(first, len(record.measurements))
    ]
    of_pairs = [list(loads) for _pair, loads in groupby(steps, lambda step: step.pair)]
    assert len(of_pairs) > 5
    assert all({step.state for step in loads} == {"tuned", "untuned"} for loads in of_pairs)
    switched = [index for index, step in enumerate(steps) if not step.stays]
    turns = [list(loads) for _state, loads in groupby(steps, lambda step: step.state)]
    assert switched == [sum(map(len, turns[:turn])) for turn in range(len(turns))]
    # The last two of six loads count. A state in which the next pair begins goes on with those that count.
    stay, goes_on = [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 5, 6]
    attempts = [[step.attempt for step in loads] for loads in turns]
    assert all(numbers in (stay, goes_on) for numbers in attempts)
    assert stay in attempts
    assert goes_on in attempts


@pytest.mark.parametrize("seed", range(4))
def test_a_gain_that_ends_after_the_switch_is_not_kept(seed: int) -> None:
    for loads in (1, 3, 8, 15):
        found = verdict(run(lasting(loads, 6.0), seed=seed))
        assert (found.verdict, found.keep) == ("unclear", False)
        assert "requests is better with evidence of more than 20:1 right after switches, but not in" in found.reasons[0]
        assert found.metrics[0].low is not None
        assert found.metrics[0].high is not None
        assert found.metrics[0].low < 0 < found.metrics[0].high
        assert found.switched is not None
        assert found.switched.low is not None
        assert found.switched.low > 0
    assert verdict(run(lasting(20, 6.0), seed=seed, burn_in=20)).verdict == "unclear"
    assert verdict(run(lasting(3, 6.0, 0.1), seed=seed)).keep, "what lasts is kept"


def test_stays_that_contradict_the_pairs_end() -> None:
    found = verdict(run(lasting(3, 6.0, -0.02), seed=3))
    assert found.soaked < 240
    assert verdict(run(noisy(0.05, 0.2, 8), seed=8, soak=210)).soaked <= 210, "at most so many"
    with pytest.raises(NearmetalError, match="6 pairs of stays, the fewest that decide, are up to 204 loads"):
        start(soak=203)


def test_another_figure_that_gets_worse_in_stays_is_not_kept() -> None:
    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.2, 0.005)(step)
        slow = step.phase == SOAK and step.attempt > 3 and step.state == "tuned"
        return (metric, Metric("p99", 3.3 if slow else 3.0, "ms", "smaller"))

    found = verdict(run(load, seed=3))
    assert (found.verdict, found.keep) == ("unclear", False)
    assert found.reasons[0].endswith("but p99 looks 5 % worse in stays")


def test_stays_go_on_until_a_loss_of_another_figure_is_excluded() -> None:
    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.2, 0.005)(step)
        share = 1 + random.Random(f"{step}").gauss(0, 0.08) * (step.phase == SOAK)
        return (metric, Metric("p99", 3.0 * share, "ms", "smaller"))

    found = verdict(run(load, seed=3))
    assert found.keep
    assert found.stays > 6, "six show the gain, and that no load fails"
    found = verdict(run(load, seed=3, soak=204))
    assert (found.verdict, found.keep) == ("unclear", False)
    assert found.reasons[0].endswith("but p99 may have lost 5 % in stays")


def test_stays_that_show_less_than_half_of_the_claim_keep_nothing() -> None:
    found = verdict(run(lasting(3, 8.0, 0.02, 0.003), seed=3))
    assert (found.verdict, found.keep) == ("unclear", False)
    assert "but not in 7 pairs of stays" in found.reasons[0]


def test_not_worse_is_shown_by_stays_too() -> None:
    found = verdict(run(noisy(0.0, 0.005), seed=3, keep="not_worse"))
    assert (found.verdict, found.keep, found.stays > 5) == ("same", True, True)
    found = verdict(run(lasting(3, 6.0, -0.06), seed=3, keep="not_worse"))
    assert (found.verdict, found.keep) == ("unclear", False)


def test_a_load_that_is_missing_in_a_stay_leaves_the_others() -> None:
    def missing(step: Step, last: int) -> bool:
        return step.phase == SOAK and step.state == "untuned" and step.attempt > last and step.pair == 2

    whole = verdict(run(noisy(0.2, 0.005), seed=3))
    for last, none in ((16, False), (15, True)):
        found = verdict(
            run(
                noisy(0.2, 0.005),
                lambda step, measurement, last=last: (
                    measurement._replace(metrics=(), error="exit status 1") if missing(step, last) else measurement
                ),
                seed=3,
            )
        )
        assert (found.verdict, found.keep) == ("better", True)
        assert found.stays == whole.stays
        assert (found.soaked > whole.soaked) == none, "of a stay without any load there is no difference"


def test_a_host_that_is_not_healthy_after_a_switch_ends_the_stays() -> None:
    record = run(noisy(0.2, 0.005), seed=3)
    first = next(index for index, load in enumerate(record.measurements) if load.phase == SOAK)
    for number in (0, 5, 9):
        before = record._replace(measurements=record.measurements[: first + number])
        broken = measured(next_step(before), 60, ())._replace(error="no answer", unhealthy=True)
        found = verdict(before._replace(measurements=(*before.measurements, broken)))
        assert (found.verdict, found.over, found.keep) == ("unsafe", True, False)
