# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts, their reasons, and whether the tuning is kept."""

from __future__ import annotations

import json
import random
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.order import order
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record_lines import line_of, read
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.rules import VERDICTS
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import DECIDE, Step, next_step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.prove.proofs import PAUSE, SECONDS, Load, noisy, run, start


def several(**effects: float) -> Load:
    """A load that prints several metrics, each with its effect; those that begin with p are latencies."""

    def load(step: Step) -> "Tuple[Metric, ...]":
        found = []
        for name, effect in effects.items():
            (metric,) = noisy(effect, 0.02, 5, name)(step._replace(attempt=step.attempt + 100 * len(found)))
            found.append(metric._replace(unit="", better="smaller" if name.startswith("p") else "larger"))
        return tuple(found)

    return load


def failing(error: str) -> "Callable[[Step, Measurement], Measurement]":
    """A load that always fails."""
    return lambda step, measurement: measurement._replace(metrics=(), error=error)


def warming(values: "List[float]") -> Load:
    """The load's values in the warm-up, then always the last one."""

    def load(step: Step) -> "Tuple[Metric, ...]":
        value = values[step.pair - 1] if step.phase == "warm_up" else values[-1]
        return (Metric("requests", value),)

    return load


@pytest.mark.parametrize(
    ("effect", "deviation", "keep", "word", "kept"),
    [
        (0.06, 0.02, "better", "better", True),
        (0.06, 0.02, "not_worse", "better", True),
        (0.0, 0.005, "better", "same", False),
        (0.0, 0.005, "not_worse", "same", True),
        (-0.06, 0.02, "better", "worse", False),
        (-0.06, 0.02, "not_worse", "worse", False),
        (0.0, 0.10, "not_worse", "unclear", False),
        (0.0, 0.035, "not_worse", "unclear", False),
        (-0.02, 0.03, "not_worse", "unclear", False),
        # Not decided, but more harm than the margin is excluded.
        (0.012, 0.03, "better", "unclear", False),
        (0.012, 0.03, "not_worse", "unclear", True),
    ],
)
def test_the_tuning_stays_by_rule(effect: float, deviation: float, keep: str, word: str, kept: bool) -> None:
    found = verdict(run(noisy(effect, deviation, 6), seed=6, keep=keep))
    assert (found.verdict, found.keep, found.over) == (word, kept, True)
    assert bool(found.soaked) == kept, "the host stays in its states for what may be kept alone"


def test_another_metric_that_is_harmed_outweighs_the_primary() -> None:
    found = verdict(run(several(requests=0.2, p99=0.2), seed=2))
    assert found.verdict == "worse"
    assert found.reasons == ("p99 became worse",)
    assert not found.keep
    primary, other = found.metrics
    assert (primary.name, primary.needed, other.name, other.needed) == ("requests", 20.0, "p99", 20.0)
    # A latency that rises is shown as such.
    assert 0 < other.low < other.change < other.high


def test_the_other_metrics_share_the_five_percent() -> None:
    found = verdict(run(several(requests=0.06, p50=-0.01, p99=0.0, p999=0.0), seed=2))
    assert found.verdict == "better"
    assert [metric.needed for metric in found.metrics] == [20.0, 60.0, 60.0, 60.0]
    # A gain of another metric decides nothing.
    found = verdict(run(several(requests=0.0, p99=-0.2), seed=2))
    assert found.verdict in ("same", "unclear")


@pytest.mark.parametrize("keep", ["better", "not_worse"])
def test_a_gain_is_kept_only_when_no_other_metric_may_be_harmed(keep: str) -> None:
    # Six pairs bring evidence of 28:1 for the gain, and can't bring 40:1 for any harm: p99 is four times as high.
    found = verdict(run(several(requests=0.2, p99=3.0, p50=0.0), seed=2, keep=keep))
    assert (found.verdict, found.reasons, found.keep) == ("worse", ("p99 became worse",), False)
    # Nor is the same load kept with a latency that grew fourfold.
    found = verdict(run(several(requests=0.0, p99=3.0, p50=0.0), seed=2, keep=keep))
    assert (found.verdict, found.keep) == ("worse" if keep == "not_worse" else found.verdict, False)


def spread(changes: "Dict[str, List[float]]") -> Load:
    """A load whose metrics change by these shares when tuned, from pair to pair in turn, without any noise."""

    def load(step: Step) -> "Tuple[Metric, ...]":
        tuned = step.switch_to == "tuned"
        return tuple(
            Metric(name, 1000 * (1 + shares[step.pair % len(shares)] * tuned)) for name, shares in changes.items()
        )

    return load


@pytest.mark.parametrize("keep", ["better", "not_worse"])
def test_a_gain_waits_for_the_harm_that_takes_more_pairs_to_show(keep: str) -> None:
    # The gain is shown after 11 pairs, the harm after 23.
    result = verdict(run(spread({"requests": [0.2], "others": [-0.5, 0.1, -0.3]}), seed=2, keep=keep, pairs=40))
    assert (result.verdict, result.reasons, result.keep) == ("worse", ("others became worse",), False)


@pytest.mark.parametrize(
    ("others", "word", "kept", "words"),
    [
        ([0.0], "better", True, ""),
        ([0.45, -0.3, 0.0], "unclear", False, "but others may have lost 5 % or more: 12 pairs don't exclude that"),
        ([0.3, -0.4, -0.1], "unclear", False, "but others may have lost 5 % or more: 12 pairs don't exclude that"),
    ],
)
def test_other_metrics_decide_after_the_last_pair(others: "List[float]", word: str, kept: bool, words: str) -> None:
    found = verdict(run(spread({"requests": [0.2], "others": others}), seed=2, pairs=12))
    assert (found.verdict, found.keep, found.over) == (word, kept, True)
    assert words in "; ".join(found.reasons)
    assert (found.pairs == 12) == bool(words)


def test_another_metric_may_lose_what_its_guard_allows() -> None:
    load = spread({"requests": [0.2], "others": [0.03, -0.09, 0.0]})
    found = verdict(run(load, seed=2, pairs=12))
    assert (found.verdict, found.keep, found.pairs) == ("unclear", False, 12)
    found = verdict(run(load, seed=2, pairs=12, guard={"others": 20.0}))
    assert (found.verdict, found.keep, found.metrics[1].not_worse) == ("better", True, True)


@pytest.mark.parametrize(
    ("errors", "guard", "kept"),
    [
        ([0], {}, True),
        ([0], {"errors": 0.0}, True),
        ([0, 3], {}, False),
        ([0, 0, 0, 1, 0], {"errors": 0.0}, False),
    ],
)
def test_zero_is_a_value_and_a_count_may_not_rise(errors: "List[int]", guard: "Dict[str, float]", kept: bool) -> None:
    loads: "List[int]" = []

    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.2, 0.005, 3)(step)
        loads.append(1)
        value = errors[len(loads) % len(errors)] if step.switch_to == "tuned" else 0
        return (metric, Metric("errors", value, better="smaller"))

    record = run(load, seed=3, guard=guard)
    found = verdict(record)
    assert found.keep == kept, found.reasons
    assert [metric.unit for metric in found.metrics] == ["requests/s", "count + 1"]
    assert read("".join(line_of(entry) for entry in (record.start, *record.measurements)).encode()) == record


def test_a_zero_does_not_hide_what_happens_to_a_figure_in_small_units() -> None:
    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.2, 0.005, 3)(step)
        seconds = 0.0 if step.phase == "sham" else 0.0038 if step.switch_to == "tuned" else 0.0032
        return (metric, Metric("p99", seconds, "s", better="smaller"))

    found = verdict(run(load, seed=3))
    assert (found.verdict, found.keep) == ("worse", False)
    assert found.metrics[1].unit == "s + 0.0032"


@pytest.mark.parametrize("every", [7, 8])
def test_a_rare_collapse_is_not_kept(every: int) -> None:
    loads: "List[bool]" = []

    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.2, 0.01, 3)(step)
        loads.append(step.phase == "soak" and step.state == "tuned")
        collapsed = loads[-1] and sum(loads) % every == 0
        return (metric._replace(value=metric.value * (0.4 if collapsed else 1.0)),)

    found = verdict(run(load, seed=3))
    assert (found.verdict, found.keep) == ("unclear", False)
    assert "loads fail or lose 15 % or more when tuned, 0 of " in found.reasons[0]


@pytest.mark.parametrize("smaller", [False, True])
def test_a_gain_of_typical_loads_is_not_kept_where_the_mean_loses(smaller: bool) -> None:
    loads: "List[bool]" = []

    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.02, 0.002, 3)(step)
        loads.append(step.phase == "soak" and step.state == "tuned" and step.attempt <= 10)
        value = metric.value * (0.86 if loads[-1] and sum(loads) % 6 == 0 else 1.0)
        return (Metric("time", 1 / value, better="smaller") if smaller else metric._replace(value=value),)

    found = verdict(run(load, seed=3))
    assert (found.verdict, found.keep) == ("unclear", False)
    assert "but the mean may have lost: a few loads are much worse" in found.reasons[0]


def test_the_primary_metric_is_the_one_that_is_named() -> None:
    found = verdict(run(several(requests=0.0, p99=-0.1), seed=2, primary="p99"))
    assert (found.verdict, found.metrics[0].name, found.metrics[0].primary) == ("better", "p99", True)
    found = verdict(run(several(requests=0.0, p99=-0.1), seed=2, primary="p95"))
    assert found.verdict == "unclear"
    assert found.reasons == ("primary is p95, but the command prints requests, p99",)


def test_a_load_that_fails_before_the_pairs_ends_the_run_at_once() -> None:
    record = run(noisy(0.05, 0.02), failing("exit status 127: bench: not found"))
    found = verdict(record)
    assert len(record.measurements) == 1
    assert (found.verdict, found.over, found.keep, found.metrics) == ("unclear", True, False, ())
    assert found.reasons == ("the load failed before any pair was measured: exit status 127: bench: not found",)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([1000, 1010, 1005], 3),
        ([500, 980, 1000, 990], 4),
        ([500, 700, 980, 1000, 990], 5),
        ([1000, 1005, 1010], 3),  # one way, but by less than the margin
        ([1000, 1000, 1000], 3),
        ([900, 500, 900], 3),  # noise; the sham pairs will say how much
    ],
)
def test_the_warm_up_ends_when_the_load_goes_both_ways(values: "List[float]", count: int) -> None:
    record = run(warming(values), most=6)
    assert [measurement.phase for measurement in record.measurements].count("warm_up") == count
    assert {measurement.state for measurement in record.measurements[:count]} == {"untuned"}


@pytest.mark.parametrize("values", [[500, 600, 700, 800, 900], [1000, 900, 800, 700, 600]])
def test_a_load_that_does_not_settle(values: "List[float]") -> None:
    record = run(warming(values))
    found = verdict(record)
    assert len(record.measurements) == 5
    assert found.verdict == "not_quiet"
    assert "doesn't settle" in found.reasons[0]


def test_an_interrupted_run_reports_its_results_so_far() -> None:
    nothing = verdict(start())
    assert (nothing.verdict, nothing.over, nothing.metrics) == ("unclear", False, ())
    assert nothing.reasons == ("the run ended before anything was measured",)
    found = verdict(run(noisy(0.02, 0.02), seed=1, most=3 + 6 + 5))
    assert (found.verdict, found.over, found.keep, found.pairs) == ("unclear", False, False, 2)
    assert found.reasons == ("the run isn't over: 2 of at most 40 pairs",)
    assert (found.metrics[0].low, found.metrics[0].high) == (None, None)
    # 38 pairs are left at most, of two measurements each.
    assert found.seconds_left == pytest.approx(38 * 2 * SECONDS)
    assert PAUSE > 0


def test_an_effect_that_changes_during_the_run_is_no_verdict_of_its_end() -> None:
    # A run stops at the first decision; only a record of several that are looked at later could hold both.
    def load(step: Step) -> "Tuple[Metric, ...]":
        sign = 1 if step.pair <= 5 else -1
        return noisy(0.08 * sign if step.phase == "pair" else 0.0, 0.001, 3)(step)

    found = verdict(run(load, seed=3))
    assert found.verdict in ("worse", "unclear")
    assert not found.keep


def test_carry_over_is_what_the_second_place_in_a_pair_adds() -> None:
    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.03, 0.005, 7)(step)
        second = order(7, "db-1", step.phase, step.pair, step.attempt)[1] == step.state
        return (metric._replace(value=metric.value * (1.04 if second else 1.0)),)

    found = verdict(run(load, seed=7))
    assert found.carry_over == pytest.approx(4.0, abs=0.7)
    assert verdict(run(noisy(0.03, 0.005, 7), seed=7)).carry_over == pytest.approx(0.0, abs=0.7)


def test_no_difference_is_left_out_however_little_it_fits() -> None:
    def load(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = noisy(0.0, 0.02, 4)(step)
        return (metric._replace(value=metric.value * (0.5 if step.phase == "pair" and step.pair % 5 == 0 else 1.0)),)

    def spiked(step: Step) -> "Tuple[Metric, ...]":
        (metric,) = load(step)
        return (metric._replace(value=metric.value * (3.0 if step[1:5] == ("pair", 2, 1, "tuned") else 1.0)),)

    for load_of_run in (load, spiked):
        record = run(load_of_run, seed=4, pairs=12)
        found = verdict(record)
        assert found.pairs == len(
            {measurement.pair for measurement in record.measurements if measurement.phase == "pair"}
        )
    assert found.noise > 30


def test_noise_and_the_smallest_effect_that_could_be_shown() -> None:
    found = verdict(run(noisy(0.0, 0.05, 8), seed=8))
    # Two measurements of 5 % each make a pair of 7 %; 40 pairs see 18 / 37 of its square.
    assert found.noise == pytest.approx(7.3, abs=1.5)
    assert found.smallest_visible == pytest.approx(0.7 * found.noise, abs=0.3)
    assert found.pairs_needed == pytest.approx(3 + 18 * (7.0 / 4.9) ** 2, rel=0.4)


@pytest.mark.parametrize("measurements", [3 + 6 + 2 * pairs for pairs in range(1, 6)])
def test_an_effect_is_not_taken_for_noise(measurements: int) -> None:
    found = verdict(run(noisy(0.3, 0.0), most=measurements, seed=8))
    # However little noise there is: half of the margin of 2 % is called the same in half of the runs.
    assert (found.noise, found.smallest_visible) == (pytest.approx(0, abs=1e-9), pytest.approx(1.5, abs=0.1))


def numbers(value: Any) -> "List[float]":
    """All numbers in plain data."""
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in numbers(item)]
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("seed", range(12))
def test_every_prefix_of_every_run_has_a_verdict_in_plain_data(seed: int) -> None:
    # Whatever happens: failing loads, other metrics, guards, wild values.
    generator = random.Random(seed)

    def disturb(step: Step, measurement: Measurement) -> Measurement:
        changes: "Dict[int, Dict[str, Any]]" = {
            0: {"metrics": (), "error": "exit status 1"},
            1: {"state_lost": "a knob"},
            2: {"before": None, "after": None},
            3: {"metrics": (Metric("requests", 1e-100),)},
            4: {"metrics": (Metric("requests", 1e100),)},
            5: {"metrics": (Metric("other", 1.0),)},
        }
        chosen = changes.get(generator.randrange(40), {})
        return measurement._replace(**chosen)

    record = run(noisy(generator.choice((0.0, 0.02, -0.05)), 0.03, seed), disturb, seed=seed, pairs=10)
    assert next_step(record).action == DECIDE
    for index in range(len(record.measurements) + 1):
        part = record._replace(measurements=record.measurements[:index])
        found = verdict(part)
        content = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert found.over == (index == len(record.measurements)) == (next_step(part).action == DECIDE)
        assert content["verdict"] in VERDICTS
        assert all(reason == reason.strip() and reason.isprintable() for reason in content["reasons"])
        assert not (found.keep and not found.over)
        for metric in found.metrics:
            if metric.low is not None and metric.high is not None:
                assert metric.low <= metric.change <= metric.high or metric.low > metric.high
