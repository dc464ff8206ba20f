# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated fleets, of which it is known what the tuning does, and how far a rollout comes in them.

By hand, with PyPy and .ansible/collections on PYTHONPATH: `pypy3 -m tests.support.prove.rollouts 2000`.
"""

from __future__ import annotations

import math
import random
import sys
from typing import Dict, List, NamedTuple, Optional, Sequence

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.decision import BACK, GO_ON, HOLD, Settings, judge
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.draw import batch_ends, draw, strata_of, watched
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.effect import Watch, Won

METRICS = ("requests", "p99", "cpu")
BETTER = ("larger", "smaller", "smaller")
WORLDS = ("quiet", "incident", "deploy", "missing", "restarts", "spikes")
_BEFORE, _LOOKS, _MOST = 10, 10, 30
_DRIFT, _KEPT, _NOISE = 0.04, 0.95, 0.05  # of a host's minutes: what drifts, how much of it is left a minute later


class End(NamedTuple):
    """How a rollout ended."""

    tuned: int
    decision: str
    looks: int


class Fleet:
    """So many hosts in a world; a tuned host loses `loss` of the first metric."""

    def __init__(self, seed: int, hosts: int, world: str, loss: float) -> None:
        self._random, self._world, self._loss = random.Random(f"{seed} {world} {loss}"), world, loss
        strata = {f"h{number:05}": f"{number % 2} {number % 3}" for number in range(hosts)}
        self.order = draw(seed, strata)
        self.strata = strata_of(strata, self.order)
        self.levels = [[self._random.gauss(5, 0.5) for _metric in METRICS] for _host in self.order]
        self.drift = [[self._random.gauss(0, _DRIFT) for _metric in METRICS] for _host in self.order]
        self.absent = [world == "missing" and self._random.random() < 0.05 for _host in self.order]
        self.deployed = [self._random.randrange(_LOOKS) for _host in self.order]  # the minute of each host's deploy
        self.gains = [self._random.gauss(0.05, 0.1) for _host in self.order]  # what a deploy does to each

    def look(self, first: int, last: int, tuned: int, minute: int) -> Dict[str, List[Optional[float]]]:
        """A minute of these hosts, the first `tuned` of all being tuned; before the batch its number is negative."""
        toss, common = self._random, self._common(minute)
        values: Dict[str, List[Optional[float]]] = {name: [] for name in METRICS}
        scale = _DRIFT * math.sqrt(1 - _KEPT**2)
        lost = self._world == "restarts" and minute in (3, 4)
        for host in range(first, last):
            for place, name in enumerate(METRICS):
                drift = self.drift[host][place] = _KEPT * self.drift[host][place] + toss.gauss(0, scale)
                value = self.levels[host][place] + drift + toss.gauss(0, _NOISE) + common * (1 + toss.random())
                if place == 0 and host < tuned:
                    value += math.log1p(-self._loss)
                value += self._disturbance(host, minute)
                none = lost or self.absent[host] or (self._world == "missing" and toss.random() < 0.03)
                values[name].append(None if none else math.exp(value))
        return values

    def _common(self, minute: int) -> float:
        """What hits all hosts: the time of the day, and an incident of a few minutes, which some feel more."""
        incident = -0.3 if self._world == "incident" and 2 <= minute <= 7 else 0.0
        return incident + 0.1 * math.sin(minute / 20)

    def _disturbance(self, host: int, minute: int) -> float:
        if self._world == "deploy" and minute >= self.deployed[host]:
            return self.gains[host]
        if self._world == "spikes" and self._random.random() < 0.05:
            return math.log1p(-self._random.uniform(0.05, 0.4))
        if self._world == "restarts" and minute == 5 and self._random.random() < 0.5:
            return math.log(0.5)  # a rate over a window that the restart cut
        return 0.0


def roll_out(
    seed: int, hosts: int, world: str, loss: float, batches: Sequence[object] = (1, "10%", "30%", "100%")
) -> End:
    """Tune batch by batch, looking every minute, as the decisions say."""
    fleet = Fleet(seed, hosts, world, loss)
    ends = batch_ends(batches, hosts)
    metrics = tuple((name, better, 5.0) for name, better in zip(METRICS, BETTER))
    settings = Settings(metrics, len(ends) - 1, _LOOKS, _MOST, seed)
    begin = looks = 0
    for end in ends:
        last = end + watched(end - begin, hosts - end)
        before = [fleet.look(begin, last, begin, minute) for minute in range(-_BEFORE, 0)]
        watch = Watch(end - begin, fleet.strata[begin:last], before, [])
        decision = ""
        won: Dict[str, Won] = {}
        for minute in range(_MOST + 5):
            look = fleet.look(begin, last, end, minute)
            if any(value is not None for value in look[METRICS[0]]):
                watch = watch._replace(after=[*watch.after, look])
                looks += 1
                decision = judge(settings, watch, won=won).decision
            if decision:
                break
        if decision != GO_ON:
            return End(end, decision or HOLD, looks)
        begin = end
    return End(hosts, GO_ON, looks)


def main(runs: int, hosts: int = 1000) -> None:
    """A line for each world: how often a harmful change is stopped by a tenth, and a harmless one reaches all."""
    print(f"{'world':10}{'5 % harm stopped':>18}{'of it taken back':>18}{'harmless to all':>17}{'held':>7}{'looks':>7}")
    for world in WORLDS:
        harm = [roll_out(seed, hosts, world, 0.05) for seed in range(runs)]
        good = [roll_out(seed, hosts, world, 0.0) for seed in range(runs)]
        stopped = sum(end.tuned <= hosts // 10 for end in harm)
        back = sum(end.tuned <= hosts // 10 and end.decision == BACK for end in harm)
        reached, held = sum(end.decision == GO_ON for end in good), sum(end.decision == HOLD for end in good)
        looks = sum(end.looks for end in harm) / runs
        shares = [100 * count / runs for count in (stopped, back, reached, held)]
        print("{:10}{:17.1f}%{:17.1f}%{:16.1f}%{:6.1f}%{:7.1f}".format(world, *shares, looks), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(int, sys.argv[2:]))
