# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others set at boot: a value that is called persisted holds, or its owner was named before by path.

NEARMETAL_BESIDE says how many hosts; NEARMETAL_SEED repeats one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.sequences.beside import Beside, actions, differences

MANY = int(os.environ.get("NEARMETAL_BESIDE", "300"))
SEED = os.environ.get("NEARMETAL_SEED")
PARTS = 1 if SEED else 30
BOOTS = tuple(f"{digit}2222222-2222-3333-4444-555555555555" for digit in "23")


def lived(folder: Path, seed: int) -> str:
    """What goes wrong on the host of a seed; empty when all is well."""
    world = Beside(folder, seed)
    promised = world.tune(check=True)
    done = world.tune()
    said, did = ([(outcome.name, outcome.error) for outcome in each.outcomes] for each in (promised, done))
    if said != did or actions(promised) != actions(done):
        return f"check said {said} {actions(promised)}, tune {did} {actions(done)}"
    world.boot(BOOTS[0])
    again = world.tune(check=True)
    errors = [outcome.error for outcome in again.outcomes if outcome.error]
    if errors != [outcome.error for outcome in done.outcomes if outcome.error]:
        return f"after the boot: {errors}"
    waits = [
        finding
        for outcome in again.outcomes
        for finding in outcome.plan.findings
        if finding.status in ("would_change", "needs_reboot") and finding.knob != "state"
    ]
    if waits or actions(again):
        return f"after the boot, still to do: {waits} {actions(again)}"
    world.restore()
    world.boot(BOOTS[1])
    left = differences(world.host, world.twin)
    return f"after restore and a boot: {left}" if left else ""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_persisted_value_is_there_after_a_boot_or_its_owner_was_named(part: int, tmp_path: Path) -> None:
    seeds = [int(SEED)] if SEED else range(part, MANY, PARTS)
    wrong = {}
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        trouble = lived(folder, seed)
        if trouble:
            wrong[seed] = (Beside.__name__, trouble[:1500])
    assert not wrong, "\n".join(f"NEARMETAL_SEED={seed}: {trouble}" for seed, (_name, trouble) in wrong.items())
