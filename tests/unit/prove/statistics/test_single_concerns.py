# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effect of each concern: the pairs after a better verdict, what they say, and how often they may be wrong."""

from __future__ import annotations

import random
from types import MappingProxyType
from typing import Dict, List, Mapping, Set, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics import record_lines, single_concerns
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.evidence import path, peak
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement, Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import DECIDE, Step, next_step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import sentences

from tests.support.prove.proofs import Load, run, shared, start

EFFECTS: Mapping[str, float] = MappingProxyType({"clocksource": 0.1, "hugepages": 0.0, "network_stack": -0.03})


def begun(effects: Mapping[str, float] = EFFECTS, **settings: object) -> Record:
    record = start(seed=3, each=True, **settings)
    tested = tuple(f"{concern}.{knob}" for concern in effects for knob in ("first", "second"))
    return record._replace(start=record.start._replace(tested=tested))


def test_after_a_better_verdict_each_concern_is_tested_in_turn() -> None:
    record = run(shared(EFFECTS), record=begun())
    found = verdict(record)
    assert (found.verdict, found.keep, found.over) == ("better", True, True)
    asked = list(
        dict.fromkeys(measurement.concern for measurement in record.measurements if measurement.phase == "each")
    )
    assert asked == list(EFFECTS)
    assert {part.concern: part.verdict for part in found.parts} == {
        "clocksource": "better",
        "hugepages": "same",
        "network_stack": "worse",
    }
    for part in found.parts:
        comparison = part.comparison
        assert comparison.low is not None
        assert comparison.high is not None
        assert comparison.low <= 100 * EFFECTS[part.concern] <= comparison.high, part
    assert next_step(record).action == DECIDE


def test_a_concern_without_effect_is_reported_with_the_evidence_needed() -> None:
    found = verdict(run(shared(EFFECTS), record=begun()))
    same = {part.concern: part.comparison for part in found.parts}["hugepages"]
    assert same.needed == 60
    assert same.low is not None
    assert same.high is not None
    assert -2 <= same.low <= same.high <= 2.01  # percent: the margin
    (line,) = [line for line in sentences.parts(found) if "hugepages" in line]
    assert "(60:1 is needed)" in line


def test_the_effect_of_each_concern_is_in_the_block_the_report_and_the_progress() -> None:
    record = run(shared(EFFECTS), record=begun())
    found = verdict(record)
    ending = sentences.Ending(True, record.start.tested)
    block = "\n".join(sentences.block(record, found, ending))
    assert "\n  with clocksource: better than without it: at least +" in block
    assert "\n  with hugepages: the same as without it: " in block
    assert "\n  with network_stack: worse than without it: at least −" in block
    text = sentences.markdown(record, found, ending)
    assert "- with clocksource: better than without it: at least +" in text
    assert "| without clocksource |" in text
    halfway = record._replace(measurements=record.measurements[:-1])
    assert sentences.progress(halfway).startswith("db-1  network\\_stack, pair ".replace("\\", ""))
    assert "so far −" in sentences.progress(halfway)
    plain = found.as_dict()["parts"]
    assert [part["concern"] for part in plain] == list(EFFECTS)
    assert plain[0]["comparison"]["evidence"] >= 20


@pytest.mark.parametrize(
    ("effects", "settings", "reason"),
    [
        ({"clocksource": -0.1, "hugepages": 0.0}, {}, single_concerns.NO_GAIN),
        ({"clocksource": 0.0, "hugepages": 0.0}, {"keep": "not_worse"}, single_concerns.NO_GAIN),
        ({"clocksource": 0.1}, {}, "clocksource is the only concern that was tested, so the whole change is its own"),
    ],
    ids=["worse", "same", "one concern"],
)
def test_nothing_is_asked_where_there_is_no_gain_to_divide(
    effects: Dict[str, float], settings: Dict[str, object], reason: str
) -> None:
    record = run(shared(effects), record=begun(effects, **settings))
    found = verdict(record)
    assert found.over
    assert found.reasons[-1] == reason, "the user asked for each concern"
    unasked = record._replace(start=record.start._replace(settings=record.start.settings._replace(each=False)))
    assert verdict(unasked).reasons == found.reasons[:-1]
    assert reason not in verdict(record._replace(measurements=record.measurements[:-1])).reasons, "it may go on"
    assert found.parts == ()
    assert "each" not in {measurement.phase for measurement in record.measurements}


@pytest.mark.parametrize("cut", [1, 2, 9])
def test_a_run_that_is_killed_among_the_concerns_goes_on_with_the_same_steps(cut: int) -> None:
    whole = run(shared(EFFECTS), record=begun())
    head = sum(measurement.phase != "each" for measurement in whole.measurements) + cut
    killed = whole._replace(measurements=whole.measurements[:head])
    data = "".join(record_lines.line_of(entry) for entry in (killed.start, *killed.measurements)).encode()
    resumed = record_lines.read(data)
    assert not verdict(resumed).over
    assert run(shared(EFFECTS), record=resumed) == whole
    other = [*killed.measurements[:-1], killed.measurements[-1]._replace(concern="network_stack", pair=1)]
    data = "".join(record_lines.line_of(entry) for entry in (killed.start, *other)).encode()
    with pytest.raises(record_lines.NearmetalError, match="doesn't follow from the seed and the lines before it"):
        record_lines.read(data)


def test_disturbances_among_the_concerns_leave_the_verdict_of_the_whole_alone() -> None:
    def stolen(step: Step, measurement: Measurement) -> Measurement:
        if measurement.after is None or step.concern != "hugepages":
            return measurement
        return measurement._replace(after=measurement.after._replace(cpu_steal=9999.0))

    found = verdict(run(shared(EFFECTS), stolen, begun()))
    assert (found.verdict, found.keep) == ("better", True)
    parts = {part.concern: part for part in found.parts}
    assert (parts["hugepages"].verdict, parts["hugepages"].pairs, parts["hugepages"].repeated) == ("not_quiet", 0, 4)
    assert parts["hugepages"].reason == (
        "more than a third of the pairs had to be repeated, most because of CPU time that the hypervisor gave to others"
        " (steal above 1 %; on a T type, the CPU credits are gone)"
    )
    assert parts["clocksource"].verdict == "better"


@pytest.mark.parametrize(
    ("states", "word"),
    [({"tuned"}, "unclear"), ({"tuned", "untuned"}, "unclear"), ({"untuned"}, "better")],
    ids=["with all", "always", "without a concern"],
)
def test_a_load_that_breaks_among_the_concerns_ends_the_run(states: Set[str], word: str) -> None:
    def breaks(step: Step, measurement: Measurement) -> Measurement:
        failed = step.phase == "each" and step.state in states
        return measurement._replace(metrics=(), error="exit status 1: connection refused") if failed else measurement

    record = run(shared(EFFECTS), breaks, begun())
    found = verdict(record)
    assert (found.verdict, found.keep, found.over) == (word, word == "better", True)
    if word == "unclear":
        # It was tuned in eight pairs before, in which it did not fail.
        reason = found.reasons[0]
        assert reason.startswith(
            "the load failed in 2 measurements of the tuned host, and in none of the untuned host, which may be chance:"
        )
        assert reason.endswith(": exit status 1: connection refused")
        assert sum(bool(measurement.error) and measurement.state == "tuned" for measurement in record.measurements) == 2


@pytest.mark.parametrize(
    ("effect", "every", "word", "reason"),
    [
        (0.0, 3, "capped", "in 4 attempts an instance's network or disk allowance was exceeded: what hugepages would"),
        (0.0, 1, "capped", "more than a third of the pairs had to be repeated, most because of exceeded network"),
        (0.1, 3, "better", ""),
    ],
    ids=["same", "not quiet", "better"],
)
def test_a_concern_capped_by_an_allowance_is_not_called_the_same(
    effect: float, every: int, word: str, reason: str
) -> None:
    def capped(step: Step, measurement: Measurement) -> Measurement:
        again = step.attempt > 1 and every > 1
        if measurement.after is None or step.concern != "hugepages" or step.pair % every or again:
            return measurement
        allowances = {**measurement.after.allowances, "bw_in_allowance_exceeded": 9}
        return measurement._replace(after=measurement.after._replace(allowances=allowances))

    effects = {"clocksource": 0.1, "hugepages": effect}
    found = verdict(run(shared(effects, 0.008), capped, begun(effects)))
    part = {part.concern: part for part in found.parts}["hugepages"]
    assert (found.verdict, part.verdict, part.reason[: len(reason)]) == ("better", word, reason)
    assert bool(part.reason) == bool(reason)
    assert part.repeated


def test_pairs_voided_more_often_in_one_state_are_biased() -> None:
    def restless(step: Step, measurement: Measurement) -> Measurement:
        if (step.concern, step.state) != ("hugepages", "untuned") or step.attempt > 1 or step.pair % 3:
            return measurement
        return measurement._replace(state_lost="thp is always")

    effects = {"clocksource": 0.3, "hugepages": 0.0}
    record = run(shared(effects, 0.04), restless, begun(effects))
    part = {part.concern: part for part in verdict(record).parts}["hugepages"]
    assert (part.verdict, part.reason) == (
        "unclear",
        "guards voided more pairs without hugepages than chance explains",
    )


def switched_knob(factor: float, slow: str, seed: int) -> Load:
    """A load that clocksource speeds up; hugepages changes only the first load after a switch with it or without it."""
    last = [False]

    def load(step: Step) -> "Tuple[Metric, ...]":
        generator = random.Random(f"{seed} {step}")
        has_it = step.switch_to == "tuned" or step.concern == "clocksource"
        noise = 0.0 if step.phase == "warm_up" else generator.gauss(0, 0.01)
        value = 1000 * (1 + noise) * (1.3 if step.switch_to == "tuned" or step.concern == "hugepages" else 1)
        if has_it != last[-1] and step.phase == "each" and has_it == (slow == "with"):
            value *= factor
        last.append(has_it)
        return (Metric("requests", value, "1/s"),)

    return load


@pytest.mark.parametrize(("slow", "factor"), [("without", 0.95), ("with", 1.05), ("with", 0.95)])
def test_a_knob_whose_switch_alone_does_something_is_neither_better_nor_worse(slow: str, factor: float) -> None:
    effects = {"clocksource": 0.3, "hugepages": 0.0}
    words_of, reasons = [], []
    for seed in range(8):
        record = begun(effects, pairs=16)
        settings = record.start.settings._replace(seed=seed)
        record = record._replace(start=record.start._replace(settings=settings))
        found = verdict(run(switched_knob(factor, slow, seed), record=record))
        assert found.verdict == "better"
        concerns = {part.concern: part for part in found.parts}
        assert concerns["clocksource"].verdict == "better"
        words_of.append(concerns["hugepages"].verdict)
        reasons.append(concerns["hugepages"].reason)
    assert words_of.count("unclear") >= 7, words_of
    place = "without hugepages" if slow == "without" else "with all concerns"
    assert any(f"right after a switch to the host {place} than later in the same state" in reason for reason in reasons)


def test_holm_asks_as_much_as_its_definition_says() -> None:
    generator = random.Random(5)
    for _run in range(100):
        found = {name: [generator.gauss(0.01, 0.02) for _pair in range(generator.randint(6, 25))] for name in "abcd"}
        shares = {name: min(1.0, 1 / max(peak(found[name]))) for name in found}
        needed = single_concerns.holm(found)
        # The definition by adjusted p-values: the largest (m - j + 1) p(j) of those at most as large.
        ranked = sorted(shares, key=lambda name: shares[name])
        adjusted: List[float] = []
        for place, name in enumerate(ranked):
            adjusted.append(max([*adjusted, (len(ranked) - place) * shares[name]]))
        rejected = {name for name, share in zip(ranked, adjusted) if share <= 0.05}
        assert {name for name in found if max(peak(found[name])) >= needed[name]} == rejected


def test_concerns_that_do_nothing_are_blamed_in_at_most_one_of_twenty_runs() -> None:
    generator, runs, wrong = random.Random(11), 500, 0
    for _run in range(runs):
        found: Dict[str, List[float]] = {}
        for concern in "abc":
            differences = [generator.gauss(0, 0.03) for _pair in range(20)]
            ends = [index for index, step in enumerate(path(differences), 1) if max(step) >= 60]
            found[concern] = differences[: ends[0]] if ends else differences
        needed = single_concerns.holm(found)
        wrong += any(max(peak(found[name])) >= needed[name] for name in found)
    assert wrong / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
