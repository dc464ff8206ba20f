# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards: which disturbances void a pair, the effect of voided pairs, and that measured values don't decide it."""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics import guards
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.history import history_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.order import order
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement, Sample
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.rules import most_reboots
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step, next_step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.prove.proofs import CPUS, SECONDS, Change, measured, noisy, run, start, starting


def later(**more: Any) -> Change:
    """Counters after the load that are so much higher than on a quiet host; a text replaces its field."""

    def change(measurement: Measurement) -> Measurement:
        after = measurement.after
        assert after is not None
        fields: Dict[str, Any] = {
            name: value if isinstance(value, (str, dict)) else getattr(after, name) + value
            for name, value in more.items()
        }
        before = measurement.before
        if before is not None and "host_seconds" in more:  # a clock that is off is so before the load too
            earlier = before._replace(host_seconds=before.host_seconds + more["host_seconds"])
            measurement = measurement._replace(before=earlier)
        return measurement._replace(after=after._replace(**fields))

    return change


def on_client(change: Change) -> Change:
    """The same disturbance of the client host on which the load runs, and none of the host under test."""

    def changed(measurement: Measurement) -> Measurement:
        found = change(measurement)
        before, after = ([sample] if sample else [] for sample in (found.before, found.after))
        return measurement._replace(client_before=tuple(before), client_after=tuple(after))

    return changed


ALL = CPUS * SECONDS
# One disturbance per guard, just beyond its limit, and one just within it.
BEYOND: "Dict[str, Change]" = {
    "steal": later(cpu_steal=0.0101 * ALL - 0.001 * SECONDS),
    "foreign_cpu": later(cpu_foreign=0.0501 * ALL - 0.01 * SECONDS),
    "throttled": later(throttled=1),
    "swap": later(swapped=round(10 * SECONDS) + 1),
    "clock": later(host_seconds=0.32),
    "reboot": later(boot_id="5c1b9d0e-0000-4000-8000-000000000002"),
    "allowance": later(allowances={"bw_in_allowance_exceeded": 3, "pps_allowance_exceeded": 1}),
    # Each a job of its own: what comes back at once doesn't count.
    "timers": lambda measurement: starting(f"{measurement.began}.timer")(measurement),
    "state": lambda measurement: measurement._replace(state_lost="vm.swappiness is 60 where 1 was set"),
    "saturated": lambda measurement: measurement._replace(generator_busy=(0.91,)),
    "load": lambda measurement: measurement._replace(metrics=(), error="exit status 1: connection refused"),
    "health": lambda measurement: measurement._replace(metrics=(), error="no answer", unhealthy=True),
    "program": lambda measurement: measurement._replace(metrics=(), error="redis ended", program_ended=True),
}
OF_A_HOST = ("steal", "foreign_cpu", "throttled", "swap", "clock", "reboot", "allowance", "timers")
BEYOND.update({f"client_{guard}": on_client(BEYOND[guard]) for guard in OF_A_HOST})
WITHIN: "Dict[str, Change]" = {
    "steal": later(cpu_steal=0.0099 * ALL - 0.001 * SECONDS),
    "foreign_cpu": later(cpu_foreign=0.0499 * ALL - 0.01 * SECONDS),
    "clock": later(host_seconds=0.30),
    "clock that lags": later(host_seconds=-0.30),
    "swap": later(swapped=round(9 * SECONDS)),
    "generator": lambda measurement: measurement._replace(generator_busy=(0.9,)),
    "nothing known": lambda measurement: measurement._replace(before=None, after=None),
    "counters that fell": later(cpu_steal=-5.0, throttled=-3, swapped=-9),
    "no job of cron any more": starting("cron (still running)", "4711", ""),
    "a timer that is new": lambda measurement: measurement._replace(
        after=measurement.after and measurement.after._replace(jobs={"new.timer": "2h"})
    ),
    "a counter that is new": later(allowances={"conntrack_allowance_exceeded": 9}),
}


def judged(change: Change, **settings: Any) -> "list[str]":
    """The guards that fire in the second of two measurements, which is changed."""
    first, second = (
        measured(Step("measure", "pair", 1, 1, state, state), index, (Metric("requests", 1000.0),))
        for index, state in enumerate(("untuned", "tuned"))
    )
    first = on_client(lambda measurement: measurement)(first)
    chosen = start(**settings).start.settings
    return [
        firing.guard
        for firing in guards.firings_of(change(second), guards.Reference().with_measurement(first, ()), chosen)
    ]


@pytest.mark.parametrize("guard", sorted(BEYOND))
def test_a_guard_fires_beyond_its_limit(guard: str) -> None:
    assert judged(BEYOND[guard]) == [guard]


@pytest.mark.parametrize("name", sorted(WITHIN))
def test_no_guard_fires_within_its_limit(name: str) -> None:
    assert judged(WITHIN[name]) == []


def test_guards_between_two_measurements() -> None:
    def shifted(seconds: float) -> Change:
        def change(measurement: Measurement) -> Measurement:
            displaced = measurement._replace(began=measurement.began + seconds, ended=measurement.ended + seconds)
            return later(host_seconds=seconds)(displaced)

        return change

    def rebooted(measurement: Measurement) -> Measurement:
        assert measurement.before is not None
        before = measurement.before._replace(boot_id="5c1b9d0e-0000-4000-8000-000000000002")
        return later(boot_id=before.boot_id)(measurement)._replace(before=before)

    assert judged(shifted(890)) == []
    assert judged(shifted(900)) == ["pause"]
    assert judged(shifted(-3)) == ["pause"]  # the controller's clock was set back
    assert judged(rebooted) == ["reboot"]
    other = (Metric("requests", 5.0), Metric("p99", 1.0))
    assert judged(lambda measurement: measurement._replace(metrics=other)) == ["load"]
    assert judged(rebooted, reboot=True) == []
    assert judged(lambda measurement: measurement, reboot=True) == ["same_boot"]
    assert judged(lambda measurement: measurement._replace(before=None), reboot=True) == ["same_boot"]
    assert judged(BEYOND["reboot"], reboot=True) == ["reboot", "same_boot"], "during the load isn't before it"
    assert set(BEYOND) | {"pause", "same_boot", "generator"} == set(guards.GUARDS), "which records of before have"


@pytest.mark.parametrize("disturbed", [0.0, 0.2, 0.33, 0.5])
def test_a_host_is_rebooted_no_more_often_than_was_said(disturbed: float) -> None:
    for seed in range(6):

        def boot(step: Step, measurement: Measurement, seed: int = seed) -> Measurement:
            assert measurement.before is not None
            assert measurement.after is not None
            name = f"{step.phase}-{step.pair}-{step.attempt}-{step.state}".encode().hex()[:60]
            before, after = (sample._replace(boot_id=name) for sample in (measurement.before, measurement.after))
            void = step.phase != "warm_up" and random.Random(f"{seed} {step}").random() < disturbed
            return measurement._replace(before=before, after=after, state_lost="a knob" if void else "")

        record = run(noisy(0.0, 0.05), boot, seed=seed, pairs=8, reboot=True)
        reboots = [measurement for measurement in record.measurements if measurement.phase != "warm_up"]
        assert [measurement.phase for measurement in record.measurements].count("warm_up") == 1
        assert len(reboots) < most_reboots(record.start.settings)
        assert verdict(record).unwatched == ("clock",)
        if not disturbed:
            assert verdict(record).repeated == {}


# A clock fires again when it is right again, and an unhealthy host ends the run.
@pytest.mark.parametrize("guard", sorted(set(BEYOND) - {"clock", "client_clock", "health"}))
def test_a_pair_in_which_a_guard_fires_is_repeated_with_a_coin_of_its_own(guard: str) -> None:
    def disturb(step: Step, measurement: Measurement) -> Measurement:
        return BEYOND[guard](measurement) if step[1:4] in (("sham", 2, 1), ("pair", 3, 1)) else measurement

    record = run(noisy(0.05, 0.02), disturb, seed=8)
    found = verdict(record)
    assert (found.verdict, dict(found.repeated)) == ("better", {guard: 2})
    assert sum(found.repeated_in.values()) == 2
    assert found.repeated_in["untuned"] >= 1, "in a sham pair the host is untuned"
    tries = [
        (measurement.attempt, measurement.state)
        for measurement in record.measurements
        if measurement[:2] == ("pair", 3)
    ]
    # The first attempt ends with the measurement that was voided; the second one has both states.
    assert tries == [
        (1, order(8, "db-1", "pair", 3, 1)[0]),
        *((2, state) for state in order(8, "db-1", "pair", 3, 2)),
    ]


@pytest.mark.parametrize("guard", sorted(set(BEYOND) - {"health"}))  # which ends the run at once
def test_a_guard_that_always_fires_ends_the_run_and_is_named(guard: str) -> None:
    def disturb(step: Step, measurement: Measurement) -> Measurement:
        if step.phase != "pair":
            return on_client(lambda quiet: quiet)(measurement)
        too_fast = later(host_seconds=0.05 * (measurement.began - 1_790_000_000.0))  # by 5 %
        change = {"clock": too_fast, "client_clock": on_client(too_fast)}.get(guard, BEYOND[guard])
        return change(measurement)

    found = verdict(run(noisy(0.05, 0.02), disturb, most=100, seed=8))
    assert found.verdict == ("capped" if guard in guards.LIMITS else "not_quiet")
    assert "4 of 7 pairs had to be repeated" in found.reasons[0]
    assert guards.GUARDS[guard] in found.reasons[0]
    assert (found.over, found.keep, found.pairs) == (True, False, 0)


def test_sham_pairs_are_not_said_to_be_disturbed_in_one_state() -> None:
    def disturb(step: Step, measurement: Measurement) -> Measurement:
        return BEYOND["steal"](measurement) if step.phase == "sham" else measurement

    (reason,) = verdict(run(noisy(0.05, 0.02), disturb, seed=8)).reasons
    assert reason.endswith(f"most because of {guards.GUARDS['steal']}"), "they have the untuned state alone"


def test_a_host_that_is_not_quiet_from_the_start() -> None:
    # As a T type whose CPU credits are gone: nothing is compared.
    record = run(noisy(0.05, 0.02), lambda step, measurement: BEYOND["steal"](measurement), seed=8)
    found = verdict(record)
    assert found.verdict == "not_quiet"
    assert found.reasons == (f"the warm-up was disturbed by {guards.GUARDS['steal']}",)
    assert "CPU credits are gone" in found.reasons[0]
    assert {measurement.phase for measurement in record.measurements} == {"warm_up"}


@pytest.mark.parametrize("state", ["untuned", "tuned"])
@pytest.mark.parametrize("guard", sorted(set(BEYOND) - {"clock", "client_clock", "health"}))
def test_a_guard_that_fires_in_one_state_alone_decides_nothing_about_the_tuning(guard: str, state: str) -> None:
    def always(step: Step, measurement: Measurement) -> Measurement:
        return BEYOND[guard](measurement) if step.phase == "pair" and step.switch_to == state else measurement

    found = verdict(run(noisy(0.2, 0.02), always, seed=8))
    word = "capped" if guard in guards.LIMITS else "not_quiet"
    if guard in ("load", "program") and state == "tuned":
        assert (found.verdict, found.keep) == ("unsafe", False)
        return
    assert (found.verdict, found.keep, found.pairs) == (word, False, 0)
    assert found.reasons[0].endswith(f"most because of {guards.GUARDS[guard]}, each time in the {state} state")


@pytest.mark.parametrize(
    ("fails", "word"),
    [
        ({"tuned": (2, 3, 4)}, "unsafe"),
        ({"tuned": (2, 5)}, "unclear"),  # of a load that fails now and then, chance explains that
        ({"tuned": (2,)}, "better"),
        ({"tuned": (2, 5), "untuned": (4,)}, "better"),
        ({"tuned": (2,), "sham": (2,)}, "better"),  # in this sham pair the host is untuned, whatever its label says
        ({"tuned": (1, 2), "sham": (3,)}, "unsafe"),  # and in each third it is tuned
        ({"untuned": (2, 5)}, "better"),
    ],
)
def test_a_load_that_fails_only_when_tuned_is_no_disturbance(fails: "Dict[str, tuple[int, ...]]", word: str) -> None:
    def disturb(step: Step, measurement: Measurement) -> Measurement:
        place = step.switch_to if step.phase == "pair" else step.phase
        failed = step.attempt == 1 and step.pair in fails.get(place, ())
        return BEYOND["load"](measurement) if failed else measurement

    found = verdict(run(noisy(0.05, 0.03), disturb, seed=8))
    assert (found.verdict, found.keep, found.over) == (word, word == "better", True)
    if word in ("unsafe", "unclear"):
        count, chance = len(fails["tuned"]) + ("sham" in fails), ", which may be chance" * (word == "unclear")
        assert found.reasons[0] == (
            f"the load failed in {count} measurements of the tuned host, and in none of the untuned host{chance}:"
            " exit status 1: connection refused"
        )


def test_a_load_that_fails_now_and_then_is_seldom_called_broken_by_the_tuning() -> None:
    def flaky(generator: random.Random) -> "Callable[[Step, Measurement], Measurement]":
        def disturb(step: Step, measurement: Measurement) -> Measurement:
            failed = step.phase != "warm_up" and generator.random() < 0.05
            return BEYOND["load"](measurement) if failed else measurement

        return disturb

    runs = 100
    found = [
        verdict(run(noisy(0.0, 0.03, seed), flaky(random.Random(seed)), seed=seed, pairs=20)) for seed in range(runs)
    ]
    assert sum(outcome.verdict == "unsafe" for outcome in found) <= (0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5) * runs
    assert not any(outcome.keep for outcome in found if "may be chance" in outcome.reasons[0])


@pytest.mark.parametrize(("effect", "looks"), [(0.025, "better"), (-0.025, "worse"), (0.0, "the same")])
def test_biased_pairs_give_no_verdict(effect: float, looks: str) -> None:
    # Six attempts voided in the tuned state, none in the other: a fair coin does so in 1 of 32 runs.
    def often(step: Step, measurement: Measurement) -> Measurement:
        voided = step.switch_to == "tuned" and step.phase == "pair" and step.pair % 2 and step.attempt == 1
        return BEYOND["throttled"](measurement) if voided and step.pair < 12 else measurement

    record = run(noisy(effect, 0.03, 6), often, seed=21, pairs=200, soak=0)
    found = verdict(record)
    assert found.repeated_in == {"untuned": 0, "tuned": 6}
    assert found.verdict == "unclear"
    assert f"(they look {looks})" in found.reasons[0]
    assert "guards voided more attempts in the tuned state than chance explains" in found.reasons[0]
    assert not found.keep


@pytest.mark.parametrize("guard", ["allowance", "client_allowance"])
def test_an_exceeded_allowance_is_never_no_effect(guard: str) -> None:
    def once(step: Step, measurement: Measurement) -> Measurement:
        return BEYOND[guard](measurement) if step[1:4] == ("pair", 2, 1) else measurement

    assert verdict(run(noisy(0.0, 0.01), seed=3)).verdict == "same"
    found = verdict(run(noisy(0.0, 0.01), once, seed=3))
    assert found.verdict == "capped"
    assert "allowance was exceeded" in found.reasons[0]
    assert verdict(run(noisy(0.05, 0.01), once, seed=3)).verdict == "better"
    assert verdict(run(noisy(-0.05, 0.01), once, seed=3)).verdict == "worse"


def test_a_clock_that_steps_and_a_host_that_reboots_cost_a_pair_each() -> None:
    def disturb(step: Step, measurement: Measurement) -> Measurement:
        if len_of(measurement) >= 9:  # the host's clock is set forward by a minute, for good
            measurement = later(host_seconds=60.0)(measurement)
        if len_of(measurement) >= 13:  # and later the host boots again
            assert measurement.before is not None
            boot = "5c1b9d0e-0000-4000-8000-000000000002"
            measurement = later(boot_id=boot)(measurement)._replace(before=measurement.before._replace(boot_id=boot))
        return measurement

    def len_of(measurement: Measurement) -> int:
        return round((measurement.began - 1_790_000_000.0) / 12)

    found = verdict(run(noisy(0.05, 0.02), disturb, seed=8))
    assert found.verdict == "better"
    assert sum(found.repeated.values()) <= 2
    assert "clock" in found.repeated


@pytest.mark.parametrize("seed", range(10, 18))
def test_measured_values_do_not_decide_which_pairs_count(seed: int) -> None:
    # The same disturbances with all values different: the same attempts are voided, as long as both runs go on.
    generator = random.Random(seed)
    voided = {
        (pair, attempt): generator.choice(sorted(set(BEYOND) - {"health"}))
        for pair in range(41)
        for attempt in (1, 2)
        if generator.random() < 0.15
    }

    def disturb(step: Step, measurement: Measurement) -> Measurement:
        guard: Optional[str] = voided.get((step.pair, step.attempt)) if step.phase == "pair" else None
        return BEYOND[guard](measurement) if guard else measurement

    def wild(step: Step) -> "tuple[Metric, ...]":
        (metric,) = noisy(0.0, 0.02, seed)(step)
        outlier = step.phase == "pair" and random.Random(f"{seed} {step}").random() < 0.2
        return (metric._replace(value=metric.value * (1e4 if outlier else 1)),)

    calm, other = (history_of(run(load, disturb, seed=seed)) for load in (noisy(0.0, 0.02, seed), wild))
    counts = [[(pair[1:3], pair.valid) for pair in history.pairs if pair.over] for history in (calm, other)]
    shorter = min(map(len, counts))
    assert shorter >= 4
    assert counts[0][:shorter] == counts[1][:shorter]


def test_the_duration_of_an_answer_does_not_affect_the_clock_guard() -> None:
    def slow(measurement: Measurement) -> Measurement:
        return measurement._replace(began=measurement.began - 1.5, ended=measurement.ended + 7.0)

    assert judged(slow) == []
    assert judged(lambda measurement: later(host_seconds=30.0)(slow(measurement))) == ["clock"]


@pytest.mark.parametrize("states", [("untuned", "tuned"), ("tuned",)])
def test_a_clock_that_runs_too_fast_is_noticed_despite_slow_answers(states: "tuple[str, ...]") -> None:
    # 5 % of 12 s are less than the 2 s by which each answer is late, so no two measurements beside each other show it.
    ahead = 0.0

    def disturb(step: Step, measurement: Measurement) -> Measurement:
        nonlocal ahead
        ahead += 0.6 if step.switch_to in states else 0.0
        return later(host_seconds=ahead)(measurement)._replace(ended=measurement.ended + 2.0)

    found = verdict(run(noisy(0.0, 0.03), disturb, seed=8))
    assert found.repeated["clock"] >= 4
    assert set(found.repeated) == {"clock"}


def test_a_load_timed_by_the_controller_is_independent_of_the_hosts_clock() -> None:
    def stray(measurement: Measurement) -> Measurement:
        return later(host_seconds=30.0)(measurement)._replace(generator_busy=(0.1,))

    assert judged(stray) == ["clock"]
    assert judged(stray, timed=True) == []


def test_guards_without_counters_are_named() -> None:
    def blind(step: Step, measurement: Measurement) -> Measurement:
        sample = Sample(boot_id="1", host_seconds=measurement.began + 1.0, throttled=0)
        return (
            measurement._replace(before=None, after=None)
            if step.phase == "pair"
            else measurement._replace(before=sample, after=sample._replace(host_seconds=measurement.ended))
        )

    assert verdict(run(noisy(0.05, 0.02), blind, seed=8)).unwatched == (
        "steal",
        "foreign_cpu",
        "swap",
        "allowance",
        "timers",
    )
    assert verdict(run(noisy(0.05, 0.02), seed=8)).unwatched == ()
    assert next_step(start()).phase == "warm_up"
