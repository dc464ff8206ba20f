# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What explains a verdict: what the host did in each state, and which version of the load ran."""

from __future__ import annotations

from typing import Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement, Record, Sample
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record_lines import line_of, read
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import activity, document, page, sentences

from tests.support.prove.proofs import CPUS, SECONDS, noisy, run

ENDING = sentences.Ending(True, ("a.b",))
SOFTIRQ = {"untuned": 0.01, "tuned": 0.04}  # of the CPUs' time
SWITCHES = {"untuned": 1000, "tuned": 500}  # a second
QUEUES = {"untuned": (300, 100), "tuned": (50, 150)}  # a second


def active(step: Step, measurement: Measurement) -> Measurement:
    """A host whose tuning moves work from one queue to another, and into software interrupts."""
    state = step.switch_to
    before, after = measurement.before, measurement.after
    assert before is not None
    assert after is not None
    seconds = after.host_seconds - before.host_seconds
    counters = {"cpu_softirq": 5.0, "context_switches": 7000, "interrupts": {"eth0-Tx-Rx-0": 9, "idle": 4}}
    first, second = (round(seconds * rate) for rate in QUEUES[state])
    counted = {
        "cpu_softirq": 5.0 + SOFTIRQ[state] * CPUS * SECONDS,
        "context_switches": 7000 + round(seconds * SWITCHES[state]),
        "interrupts": {"eth0-Tx-Rx-0": 9 + first, "eth0-Tx-Rx-1": second, "idle": 4},
    }
    return measurement._replace(before=with_counters(before, counters), after=with_counters(after, counted))


def with_counters(sample: Sample, counters: object) -> Sample:
    assert isinstance(counters, dict)
    return sample._replace(**counters)


def versions(record: Record, *texts: str) -> Record:
    """The record with these versions of the load, in turn, the last one to the end."""
    changed = [
        measurement._replace(load_version=texts[min(number, len(texts) - 1)])
        for number, measurement in enumerate(record.measurements)
    ]
    return record._replace(measurements=tuple(changed))


def test_what_the_host_did_in_each_state_is_in_each_report() -> None:
    record = run(noisy(0.1, 0.01), active)
    line = (
        "untuned → tuned: softirq 1.00 → 4.00 % of the CPUs' time, 1000 → 500 context switches/s, 400 → 200"
        " interrupts/s of devices, the busiest eth0-Tx-Rx-0 (75%) → eth0-Tx-Rx-1 (75%)"
    )
    assert activity.lines(record) == [line]
    found = verdict(record)
    assert f"  {line}" in sentences.block(record, found, ENDING)
    assert f"- {sentences.cell(line)}" in sentences.markdown(record, found, ENDING).splitlines()
    assert "eth0-Tx-Rx-1 (75%)" in page.render(record, found, ENDING)
    content = document.content(record, found, ENDING)["activity"]
    assert content["tuned"]["softirq"] == pytest.approx(4.0, rel=0.01)
    assert content["untuned"]["interrupts"] == pytest.approx({"eth0-Tx-Rx-0": 300, "eth0-Tx-Rx-1": 100}, rel=0.01)
    assert read("".join(line_of(entry) for entry in (record.start, *record.measurements)).encode()) == record
    against = record._replace(start=record.start._replace(against="workload web"))
    assert activity.lines(against)[0].startswith("the other tuning → tuned: ")


def test_devices_that_are_silent_in_most_loads_have_no_busiest() -> None:
    def rarely_active(step: Step, measurement: Measurement) -> Measurement:
        busy = active(step, measurement)
        assert busy.after is not None
        silent = busy.after._replace(interrupts=busy.before.interrupts if busy.before else {})
        return busy if measurement.pair == 1 else busy._replace(after=silent)

    record = run(noisy(0.1, 0.01), rarely_active)
    assert activity.lines(record)[0].endswith("1000 → 500 context switches/s, 0 → 0 interrupts/s of devices")
    assert "0 → 0 interrupts/s" in sentences.markdown(record, verdict(record), ENDING)


@pytest.mark.parametrize("most", [None, 6])
def test_nothing_is_said_of_what_no_host_or_pair_shows(most: Optional[int]) -> None:
    record = run(noisy(0.1, 0.01)) if most is None else run(noisy(0.1, 0.01), active, most=most)
    assert activity.lines(record) == []


def test_the_version_of_the_load_is_in_each_report_and_a_change_of_it_too() -> None:
    record = versions(run(noisy(0.1, 0.01)), "bench 1.2")
    found = verdict(record)
    assert document.content(record, found, ENDING)["load"]["versions"] == ["bench 1.2"]
    assert "the load's version: bench 1.2" in sentences.facts(record, found, ENDING)
    changed = versions(record, "bench 1.2", "", "bench 1.3")
    assert activity.version(changed) == ["the load changed during the run: first bench 1.2, last bench 1.3"]
    assert activity.version(versions(record, "")) == []
