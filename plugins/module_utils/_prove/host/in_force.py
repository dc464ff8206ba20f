# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody else has set at the places that an experiment switches. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from ..._engine.lease.record import UNTUNED
from ..._host.host import WritableHost
from ..._levers.registry import place_of
from ..._plan import Action, Value
from ..._words import in_words
from .running import Experiment


def taken_back(host: WritableHost, experiment: Experiment, state: str, without: str = "") -> List[str]:
    """The places that aren't in this state although the host was brought to it, because somebody else has set them."""
    goals = []
    for action in (*experiment.shared, *experiment.difference):
        untuned = state == UNTUNED and without in ("", action.concern) and action not in experiment.shared
        goals.append((action, action.before if untuned else action.after))
    return list(_differing(host, goals))


def set_by_others(host: WritableHost, experiment: Optional[Experiment]) -> Dict[str, List[str]]:
    """The places that aren't as before the experiment although it was taken back, as a part of the answer, if any.

    After a comparison with another tuning only those that nearmetal had set before are known.
    """
    if experiment is None:
        return {}
    earlier = {action.key: action.after for action in experiment.lease.earlier}
    goals = [
        (action, earlier.get(action.key, action.before))
        for action in experiment.difference
        if action.concern in experiment.lease.concerns  # of those that a failed try left
        and not (experiment.against and action.key not in earlier)
        and not place_of(host, action.key).detached()
    ]
    differing = list(_differing(host, goals))
    return {"set_by_others": differing} if differing else {}


def _differing(host: WritableHost, goals: List[Tuple[Action, Value]]) -> Iterator[str]:
    for action, goal in goals:
        place = place_of(host, action.key)
        now = place.read()
        if not place.same(now, goal):
            name = f"{action.what} {action.where}".strip()
            yield f"{name} is {in_words(now, 'absent', 40)}, not {in_words(goal, 'absent', 40)}"
