# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host of a world: it is switched between untuned and tuned, and runs a load."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple

import tomllib

UNTUNED, TUNED = "untuned", "tuned"
WORLDS: Dict[str, Dict[str, Any]] = tomllib.loads((Path(__file__).parent / "worlds.toml").read_text("utf-8"))
FEWER = ("time", "p99", "errors")  # figures of which less is better


class Load(NamedTuple):
    """What came of one run of the load."""

    figures: Mapping[str, float]  # requests, of which more are better, or another of FEWER; empty: it failed
    guard: str = ""  # what the host's counters show of the time of the load: steal, swap


class Host:
    """A host that is untuned at first. Everything it does follows from the world and the seed."""

    def __init__(self, world: Mapping[str, Any], seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self.state = UNTUNED
        self._since = 1000  # loads since the last switch
        self._tuned: "list[bool]" = []  # of each load, whether it was tuned
        self._level = 0.0
        self._wandered = 0.0
        self._spell = False
        self._bad = False  # the start of the state in which the host is

    def switch(self, state: str) -> None:
        """Bring the host to a state; nothing happens if it is there."""
        if state != self.state:
            self.state, self._since = state, 0
            starts = self._world.get("starts")
            self._bad = bool(starts) and self._random.random() < starts[state]

    def load(self) -> Load:
        """Run the load once."""
        world, tuned = self._world, self.state == TUNED
        change = self._random.gauss(0, world.get("deviation", 1.0) / 100) + self._surroundings()
        change += _log(world.get("effect", 0.0)) * tuned
        switch = world.get("switch")
        if switch and switch["to"] in (self.state, "both") and self._since < switch["loads"]:
            change += _log(switch["percent"])
        fade = world.get("fade")
        if fade and fade["to"] in (self.state, "both") and self._since < fade["loads"]:
            change += _log(fade["percent"] * (1 - self._since / fade["loads"]))
        debt = world.get("debt")
        if debt and self._tuned[-debt["after"] :][:1] == [True] and len(self._tuned) >= debt["after"]:
            change += _log(debt["percent"])
        if self._bad:
            change += _log(world["starts"]["percent"])
        self._since += 1
        self._tuned.append(tuned)
        guard = ""
        void = world.get("void")
        if void and self._random.random() < void[self.state]:
            guard = void["guard"]
            change += _log(-50.0) * (guard == "swap")
        swaps = world.get("swaps")
        if swaps and tuned and sum(self._tuned) % swaps["every"] == 0:
            guard, change = "swap", change + _log(swaps["percent"])
        collapse = world.get("collapse")
        if collapse and tuned and self._random.random() < collapse["share"]:
            change += _log(collapse["percent"])
        fails = world.get("fails")
        if fails and self._random.random() < fails[self.state]:
            return Load({}, guard)
        figure = {"time": 10 * math.exp(-change)} if world.get("timed") else {"requests": 1000 * math.exp(change)}
        return Load({**figure, **self._latency(tuned), **self._errors()}, guard)

    def _surroundings(self) -> float:
        """What the host's surroundings do to its level, whatever its state."""
        jumps, spells, wander = (self._world.get(name) for name in ("jumps", "spells", "wander"))
        if jumps and self._random.random() < jumps["share"]:
            self._level = self._random.gauss(0, jumps["deviation"] / 100)
        self._level += _log(-self._world.get("decline", 0.0))
        if wander:
            memory, fresh = wander["memory"], math.sqrt(1 - wander["memory"] ** 2)
            self._wandered = memory * self._wandered + self._random.gauss(0, fresh * wander["deviation"] / 100)
        if spells:
            chance = self._random.random()
            self._spell = chance >= spells["end"] if self._spell else chance < spells["begin"]
        return self._level + self._wandered + (_log(spells["percent"]) if spells and self._spell else 0.0)

    def _latency(self, tuned: bool) -> "Dict[str, float]":
        latency = self._world.get("latency")
        if not latency:
            return {}
        change = self._random.gauss(0, latency["deviation"] / 100)
        if tuned and self._since > latency.get("after", 0) and self._random.random() < latency.get("share", 1.0):
            change += _log(latency["effect"])
        return {"p99": 3 * math.exp(change)}

    def _errors(self) -> "Dict[str, float]":
        errors = self._world.get("errors")
        if not errors:
            return {}
        return {"errors": errors["count"] * (self._random.random() < errors[self.state])}


def _log(percent: float) -> float:
    return math.log1p(percent / 100)
