# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""In each world of tests/worlds prove keeps what may be kept, and nothing else, in nineteen of twenty runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.worlds.host import WORLDS
from tests.worlds.rates import is_broken, rate_of

RUNS = os.environ.get("NEARMETAL_WORLDS", "")
QUICK, FEW = 25, 10  # runs where nothing says how many; and of a world in which all of the few are right, those alone


# Where the rule is free there is a rate to read, in docs/prove.md, and nothing to be broken.
@pytest.mark.parametrize("name", [name for name, world in WORLDS.items() if world["keep"] != "may"])
def test_prove_keeps_its_word_in_this_world(name: str) -> None:
    world = WORLDS[name]
    rate = rate_of(name, int(RUNS or FEW))
    if not RUNS and rate.kept != {"never": 0, "always": FEW}[world["keep"]]:
        rate = rate_of(name, QUICK)
    assert not is_broken(world, rate), rate


def test_a_world_is_served_to_any_tool() -> None:
    served = subprocess.run(
        [sys.executable, "-m", "tests.worlds", "serve", "swaps_every_fifth", "1"],
        input="load\ntuned\n" + 5 * "load\n",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = served.stdout.splitlines()
    assert len(lines) == 6
    assert [line.split()[2:] for line in lines] == [[], [], [], [], [], ["swap"]]
    assert float(lines[-1].split()[1]) < 700 < float(lines[0].split()[1])
