# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A difference names functions that moved, and of two equal states at most one run in 20 names any."""

from __future__ import annotations

import random
from typing import Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._profile.difference import Profile, frames

FUNCTIONS = [f"f{number}" for number in range(40)]
RUNS = 120
# 3 standard deviations above one in 20 of so many runs.
MOST = RUNS / 20 + 3 * (RUNS / 20 * 19 / 20) ** 0.5


def profile(generator: random.Random, weights: Dict[str, float], samples: int = 800) -> Profile:
    """Samples that fall on leaves; a caller of ten leaves each has their samples, too."""
    drawn = generator.choices(list(weights), list(weights.values()), k=samples)
    shares: Dict[str, float] = {}
    for name in drawn:
        for each in (name, f"caller{int(name[1:]) // 10}", "main"):
            shares[each] = shares.get(each, 0.0) + 1 / samples
    return Profile(samples, shares)


def noise(kind: str, generator: random.Random, slot: int, rank: int) -> float:
    """What a function's weight is multiplied by in one profile, whatever the tuning is."""
    if kind == "white":
        return generator.lognormvariate(0, 0.2)
    if kind == "spikes":
        return generator.choice([1.0] * 9 + [6.0])
    if kind == "every second slot":
        return 1.5 if (slot + rank) % 2 else 1.0
    return 1.0 + 0.1 * slot * (rank % 3)  # a trend


def pairs(seed: str, kind: str, effect: float = 1.0, count: int = 16) -> List[Tuple[Profile, Profile]]:
    generator, found = random.Random(seed), []
    base = {name: 1 / (rank + 1) for rank, name in enumerate(FUNCTIONS)}
    for pair in range(count):
        states = {}
        for slot, state in enumerate(generator.choice([("untuned", "tuned"), ("tuned", "untuned")])):
            weights = {
                name: weight * noise(kind, generator, 2 * pair + slot, rank)
                for rank, (name, weight) in enumerate(base.items())
            }
            if state == "tuned":
                weights["f5"] *= effect
            states[state] = profile(generator, weights)
        found.append((states["untuned"], states["tuned"]))
    return found


@pytest.mark.parametrize("kind", ["white", "spikes", "every second slot", "trend"])
def test_two_equal_states_color_anything_in_one_run_of_twenty_at_most(kind: str) -> None:
    colored = sum(any(frame.moved for frame in frames(pairs(f"{kind} {run}", kind))) for run in range(RUNS))
    assert colored <= MOST


@pytest.mark.parametrize(("effect", "moved"), [(2.0, 1), (0.4, -1)])
def test_a_function_that_moves_is_named_with_its_direction(effect: float, moved: int) -> None:
    found = frames(pairs("moves", "white", effect))
    assert [(frame.name, frame.moved) for frame in found if frame.moved] == [("f5", moved)]
    assert (found[0].tuned > found[0].untuned) == (moved > 0)
    assert "main" in {frame.name for frame in found}, "what has all samples is judged, and never moves"


def test_two_pairs_are_evidence_of_nothing() -> None:
    assert not any(frame.moved for frame in frames(pairs("few", "white", 8.0, count=2)))


def test_what_takes_little_is_not_judged() -> None:
    found = frames([(Profile(1000, {"a": 0.5, "b": 0.009}), Profile(1000, {"a": 0.5}))] * 16)
    assert [frame.name for frame in found] == ["a"]
    assert frames([]) == frames([(Profile(0, {}), Profile(10, {"a": 1.0}))]) == []


def test_a_function_that_vanishes_is_named() -> None:
    (gone, stays) = frames([(Profile(1000, {"a": 1.0, "b": 0.1}), Profile(1000, {"a": 1.0}))] * 16)
    assert (gone.name, gone.moved, stays.moved) == ("b", -1, 0)
