# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of `prove` on simulated hosts: a load per step, and its disturbances."""

from __future__ import annotations

import random
from typing import Any, Callable, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import (
    Measurement,
    Record,
    Sample,
    Start,
    with_entry,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record_lines import line_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.settings import settings_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import DECIDE, Step, next_step

Load = Callable[[Step], Tuple[Metric, ...]]
Change = Callable[[Measurement], Measurement]
Disturb = Callable[[Step, Measurement], Measurement]

SECONDS = 10.0  # of a load
PAUSE = 2.0  # between two
CPUS = 2
BOOT = "5c1b9d0e-0000-4000-8000-000000000001"


def refusal(reader: Callable[[bytes], Any], data: bytes) -> str:
    """The sentence with which a reader refuses the data; empty if it accepts them. Other errors are raised."""
    try:
        reader(data)
    except NearmetalError as error:
        return str(error)
    return ""


def written(record: Record) -> bytes:
    """The record as the bytes of its file."""
    ends = () if record.end is None else (record.end,)
    return "".join(map(line_of, (record.start, *record.measurements, *ends))).encode()


def start(seed: int = 1, host: str = "db-1", **settings: Any) -> Record:
    """The record of a run that has just begun."""
    return Record(
        Start(settings_of({"seed": seed, "settle": 0, **settings}), host, 1_790_000_000.0, load="bench", load_on=host)
    )


def noisy(effect: float, deviation: float, seed: int = 1, name: str = "requests") -> Load:
    """A load with white noise that is `effect` faster when tuned; both as shares.

    Each step has its own noise, whatever came before it, so that a resumed run has the same host. The
    warm-up has no noise, so that no run ends in it by chance.
    """

    def load(step: Step) -> Tuple[Metric, ...]:
        generator = random.Random(f"{seed} {step}")
        noise = 0.0 if step.phase == "warm_up" else generator.gauss(0, deviation)
        value = 1000 * (1 + noise) * (1 + effect * (step.switch_to == "tuned"))
        return (Metric(name, value, "requests/s"),)

    return load


def shared(effects: Mapping[str, float], deviation: float = 0.004) -> Load:
    """A load to which each concern adds its own effect; the warm-up has no noise."""

    def load(step: Step) -> Tuple[Metric, ...]:
        generator = random.Random(f"{step}")
        value = 1000 * (1 + (0.0 if step.phase == "warm_up" else generator.gauss(0, deviation)))
        for concern, effect in effects.items():
            untuned = step.switch_to == "untuned" and step.concern in ("", concern)
            value *= 1 if untuned else 1 + effect
        return (Metric("requests", value, "1/s"),)

    return load


def quiet(seconds: float) -> Sample:
    """The counters of an otherwise idle host after so many seconds of the run."""
    return Sample(
        boot_id=BOOT,
        host_seconds=1_790_000_000.0 + seconds,
        cpu_total=CPUS * seconds,
        cpu_steal=0.001 * seconds,
        cpu_foreign=0.01 * seconds,
        throttled=7,
        swapped=120,
        allowances={"bw_in_allowance_exceeded": 3, "pps_allowance_exceeded": 0},
        jobs={"apt-daily.timer": "1h 2min", "cron": "4711", "cron (still running)": ""},
    )


def measured(step: Step, index: int, metrics: Tuple[Metric, ...]) -> Measurement:
    """A measurement without any disturbance, the index-th of its run."""
    began = index * (SECONDS + PAUSE)
    return Measurement(
        *step[1:5],
        concern=step.concern,
        began=1_790_000_000.0 + began,
        ended=1_790_000_000.0 + began + SECONDS,
        metrics=metrics,
        switch_seconds=0.25,
        sham_state=step.switch_to if step.phase == "sham" else "untuned",
        before=quiet(began)._replace(host_seconds=1_790_000_000.0 + began + 0.25),
        after=quiet(began + SECONDS),
    )


def starting(name: str, first: str = "1h", last: str = "2h") -> Change:
    """A job whose mark changes during the load."""

    def change(measurement: Measurement) -> Measurement:
        assert measurement.before is not None
        assert measurement.after is not None
        before, after = (
            sample._replace(jobs={**sample.jobs, name: mark})
            for sample, mark in ((measurement.before, first), (measurement.after, last))
        )
        return measurement._replace(before=before, after=after)

    return change


def run(
    load: Load, disturb: Optional[Disturb] = None, record: Optional[Record] = None, most: int = 3000, **settings: Any
) -> Record:
    """Complete a run, or continue it by at most so many further measurements."""
    record = record or start(**settings)
    for _index in range(most):
        step = next_step(record)
        if step.action == DECIDE:
            return record
        measurement = measured(step, len(record.measurements), load(step))
        record = with_entry(record, disturb(step, measurement) if disturb else measurement)
    return record
