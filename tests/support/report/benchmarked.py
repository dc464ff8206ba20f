# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of a benchmark on several hosts of one type, as they are written down."""

from __future__ import annotations

import math
import random
from typing import Any, Dict, List, Sequence

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import LARGER, Metric
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._benchmark.store import Entry

DAY = 86400


def a_run(host: str, value: float, day: int = 0, **changed: Any) -> Entry:
    """One run of ten seconds on some day."""
    plain = Entry(
        host=host,
        at=1_790_000_000 // DAY * DAY + DAY * day,
        benchmark="disk",
        options='{"seconds": 10.0, "shape": "random_read"}',
        instance_type="m5.2xlarge",
        instance="0123456789ab",
        kernel="6.1.0",
        versions=("fio: fio-3.33",),
        metrics=(Metric("read_rate", value, "1/s", LARGER),),
    )
    return plain._replace(**changed)


def fleet_of(values: Sequence[Sequence[float]], **changed: Any) -> Dict[str, List[Entry]]:
    """A host for each list of values; a run each day."""
    return {
        f"h-{number}": [a_run(f"h-{number}", value, day, **changed) for day, value in enumerate(found)]
        for number, found in enumerate(values, 1)
    }


def steady(hosts: int = 10, odd: float = 0.0, seed: int = 1, deviation: float = 0.01) -> List[List[float]]:
    """Hosts that differ a little, with five runs each; the third one differs by `odd`, a logarithm."""
    generator = random.Random(seed)
    centers = [generator.gauss(0, deviation) + (odd if number == 2 else 0) for number in range(hosts)]
    return [[30000 * math.exp(center + generator.gauss(0, 0.005)) for _run in range(5)] for center in centers]
