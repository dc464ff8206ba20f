# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that are started during a load, and those that come back again and again."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.guards import Reference, firings_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step

from tests.support.prove.proofs import SECONDS, measured, start, starting


def hits(every: float, begun: float = 0.0, length: float = SECONDS) -> "list[float]":
    """The times of the loads in which a job that comes back after so many seconds counts."""
    found: "list[float]" = []
    reference, settings = Reference(), start().start.settings
    for index in range(400):
        step = Step("measure", "pair", index + 1, 1, "tuned", "tuned")
        measurement = measured(step, index, (Metric("requests", 1000.0),))
        assert measurement.before is not None
        assert measurement.after is not None
        seconds = measurement.began - 1_790_000_000.0
        first, last = (f"{max(0, (moment - begun) // every):.0f}" for moment in (seconds, seconds + length))
        measurement = starting("job.timer", first, last)(measurement)
        firings = firings_of(measurement, reference, settings)
        found += [seconds for firing in firings if firing.guard == "timers"]
        reference = reference.with_measurement(measurement, firings)
    return found


def test_a_job_that_comes_back_again_and_again_counts_only_the_first_time() -> None:
    # One load of 10 s in 12 s: what comes back within 20 loads of 10 s belongs to the host.
    assert len(hits(66.0)) == 1
    assert len(hits(183.0)) == 1
    hourly = hits(3600.0, begun=-3590.0)
    assert len(hourly) == 2, "it comes at 10 s, 3610 s, and then after the end"
    assert hits(600.0, begun=-595.0) == [0.0, 600.0, 1200.0, 1800.0, 2400.0, 3000.0, 3600.0, 4200.0]


def test_a_job_that_started_before_the_load_and_after_it_does_not_count() -> None:
    assert hits(1e6, begun=-1e6 + 11.0) == []
