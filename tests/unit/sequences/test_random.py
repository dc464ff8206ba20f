# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random lives of hosts: tuned, killed, rebooted, changed by others; restore brings back what was, or says why not.

A life follows from its seed. `make test-all` has 300 of many concerns and 300 short ones, most of whose runs are
interrupted, and `make test` a tenth of them. NEARMETAL_SEQUENCES=20000 sets another number, NEARMETAL_SEED=4711 runs a
single life of each kind.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Callable, List

import pytest

from tests.support.sequences import life, wanted
from tests.support.sequences.tenth import tenth

TOTAL = int(os.environ.get("NEARMETAL_SEQUENCES", "300"))
SINGLE = os.environ.get("NEARMETAL_SEED")
BATCHES = 10
Draw = Callable[[random.Random], List[wanted.Step]]


def seeds(batch: int) -> List[int]:
    """The seeds of one of the ten tests of a kind."""
    if SINGLE is not None:
        return [int(SINGLE)] if batch == 0 else []
    return tenth(range(TOTAL))[batch::BATCHES]


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("draw", [wanted.steps, wanted.interrupted_steps], ids=["usual", "interrupted"])
def test_every_life_ends_as_if_it_had_not_been_tuned(draw: Draw, batch: int, tmp_path: Path) -> None:
    failures = [failure for seed in seeds(batch) for failure in [life.failure(seed, tmp_path, draw)] if failure]
    assert not failures, "\n\n".join(failures)
