# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of `prove` in a world: its rules decide each step, and the world answers."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import LARGER, SMALLER, Metric
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement, Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict

from tests.support.prove.proofs import CPUS, SECONDS, run, start
from tests.worlds.host import FEWER, TUNED, UNTUNED, Host, Load


class Outcome(NamedTuple):
    """What came of one run."""

    verdict: str
    kept: bool
    loads: int


def outcome(world: Mapping[str, Any], seed: int) -> Outcome:
    """One run of prove, with its defaults but for the settings of the world."""
    host = Host(world, seed)
    loads: "list[Load]" = []

    def load(step: Step) -> "tuple[Metric, ...]":
        if not step.stays:  # as the host does it: by way of the other state
            host.switch(TUNED if step.switch_to == UNTUNED else UNTUNED)
        host.switch(step.switch_to)
        loads.append(host.load())
        return tuple(
            Metric(name, value, better=SMALLER if name in FEWER else LARGER)
            for name, value in loads[-1].figures.items()
        )

    def disturb(step: Step, measurement: Measurement) -> Measurement:
        if not measurement.metrics:
            measurement = measurement._replace(error="the command ended with code 1")
        return _guarded(measurement, loads[-1].guard)

    begun = start(seed=seed, **world.get("settings", {}))
    if world.get("starts", {"programs": False}).get("programs", True):
        begun = begun._replace(start=begun.start._replace(restart="server.service"))
    record: Record = run(load, disturb, begun)
    found = verdict(record)
    return Outcome(found.verdict, found.keep, len(loads))


def _guarded(measurement: Measurement, guard: str) -> Measurement:
    """The measurement with the counters that show what happened during the load."""
    after = measurement.after
    if after is None or not guard:
        return measurement
    if guard == "steal":
        after = after._replace(cpu_steal=(after.cpu_steal or 0.0) + 0.05 * CPUS * SECONDS)
    else:
        after = after._replace(swapped=(after.swapped or 0) + 1000 * int(SECONDS))
    return measurement._replace(after=after)
