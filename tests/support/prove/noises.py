# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Noise of measurements, as logarithms of values, slot after slot, as hosts in a cloud produce it."""

from __future__ import annotations

import math
import random
from typing import Callable, Dict, Iterator, List

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.order import order

PAIRS = 40
SLOTS = 2 * PAIRS


def white(generator: random.Random) -> "Iterator[float]":
    """Independent noise in each slot."""
    while True:
        yield generator.gauss(0, 0.05)


def drift(generator: random.Random) -> "Iterator[float]":
    """Slow waves: each slot is much like the one before it."""
    level = generator.gauss(0, 0.05)
    while True:
        yield level
        level = 0.95 * level + generator.gauss(0, 0.05 * math.sqrt(1 - 0.95**2))


def neighbour(generator: random.Random) -> "Iterator[float]":
    """Another guest takes 12 % for spells."""
    busy = generator.random() < 0.3
    while True:
        yield math.log(0.88) * busy + generator.gauss(0, 0.01)
        busy = generator.random() > 0.15 if busy else generator.random() < 0.07


def trend(generator: random.Random) -> "Iterator[float]":
    """A tenth less at the end of the run, as credits run out."""
    for slot in range(SLOTS):
        yield math.log(1 - 0.1 * slot / SLOTS) + generator.gauss(0, 0.02)


def spikes(generator: random.Random) -> "Iterator[float]":
    """A tenth of the slots lose 5 to 40 %."""
    while True:
        lost = generator.uniform(0.05, 0.4) if generator.random() < 0.1 else 0.0
        yield math.log(1 - lost) + generator.gauss(0, 0.02)


def every_second(generator: random.Random) -> "Iterator[float]":
    """Something recurs at every second slot: fatal to a fixed order."""
    slot = 0
    while True:
        slot += 1
        yield (0.05 if slot % 2 else -0.05) + generator.gauss(0, 0.02)


NOISES: "Dict[str, Callable[[random.Random], Iterator[float]]]" = {
    function.__name__: function for function in (white, drift, neighbour, trend, spikes, every_second)
}


def heavy_tails(generator: random.Random) -> "Iterator[float]":
    """Student's t with two degrees of freedom, whose variance is infinite."""
    while True:
        yield 0.03 * generator.gauss(0, 1) / math.sqrt(generator.gammavariate(1, 1))


def back_and_forth(generator: random.Random) -> "Iterator[float]":
    """Each slot tends to the other side of the one before it."""
    level = generator.gauss(0, 0.05)
    while True:
        yield level
        level = -0.8 * level + generator.gauss(0, 0.03)


def coarse(generator: random.Random) -> "Iterator[float]":
    """A figure of few digits: 9, 10 or 11, so that many pairs don't differ at all."""
    while True:
        yield math.log(max(1, round(10 + generator.gauss(0, 0.6))) / 10)


def two_levels(generator: random.Random) -> "Iterator[float]":
    """A load that falls on its feet or not, as by the placement of its memory."""
    while True:
        yield 0.25 * (generator.random() < 0.5) + generator.gauss(0, 0.005)


def walk(generator: random.Random) -> "Iterator[float]":
    """It never comes back to where it was."""
    level = 0.0
    while True:
        level += generator.gauss(0, 0.03)
        yield level


# Worse than those of a cloud, to which the promise holds as well.
HARSH: "Dict[str, Callable[[random.Random], Iterator[float]]]" = {
    function.__name__: function for function in (heavy_tails, back_and_forth, coarse, two_levels, walk)
}


def differences(noise: "Iterator[float]", seed: int, effect: float, pairs: int) -> "List[float]":
    """The pairs of one run, in the order of its coins."""
    changes = []
    for pair in range(1, pairs + 1):
        values = {state: next(noise) for state in order(seed, "db-1", "pair", pair, 1)}
        changes.append(values["tuned"] - values["untuned"] + effect)
    return changes


class Boots:
    """A host that is rebooted: each boot has a level of its own, and its first load finds cold caches.

    Every second boot may be slower by a fixed share, as by a job that runs at every second one.
    """

    def __init__(self, noise: "Iterator[float]", generator: random.Random, every_second: float = 0.0) -> None:
        self._noise, self._generator, self._every_second = noise, generator, every_second
        self._slower = False
        self._level, self._cold = 0.0, 0.0

    def boot(self) -> None:
        self._slower = not self._slower
        spread = 0.0 if self._every_second else 0.02
        self._level, self._cold = self._generator.gauss(-self._every_second * self._slower, spread), math.log(0.9)

    def load(self) -> float:
        cold, self._cold = self._cold, 0.0
        return next(self._noise) + self._level + cold


def of_pairs(boots: Boots, seed: int, effect: float, pairs: int) -> "List[float]":
    """Pairs in which each measurement has a boot of its own, whose first load isn't counted."""
    changes = []
    for pair in range(1, pairs + 1):
        values = {}
        for state in order(seed, "db-1", "pair", pair, 1):
            boots.boot()
            boots.load()
            values[state] = boots.load()
        changes.append(values["tuned"] - values["untuned"] + effect)
    return changes


def of_blocks(boots: Boots, seed: int, effect: float, blocks: int) -> "List[List[float]]":
    """Blocks of four measurements in three boots, in the order ABBA or BAAB by one coin: their two differences each."""
    pairs = []
    for block in range(1, blocks + 1):
        outer, inner = order(seed, "db-1", "pair", block, 1)
        values = {outer: [0.0, 0.0], inner: [0.0, 0.0]}
        for state, place in ((outer, 0), (inner, 0), (inner, 1), (outer, 1)):
            if (state, place) != (inner, 1):
                boots.boot()
                boots.load()
            values[state][place] = boots.load()
        pairs.append([tuned - untuned + effect for tuned, untuned in zip(values["tuned"], values["untuned"])])
    return pairs
