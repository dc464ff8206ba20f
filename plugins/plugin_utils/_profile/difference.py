# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which functions truly take another share of the samples in one state than in the other. Pure. PRIVATE.

A profile is a random sample of a load that is never twice the same: of a hundred functions some always differ. So the
profiles come in pairs, whose order a coin decides, as the measurements of `prove`; each function has an e-process of
its own, and e-BH chooses among all of them (Wang and Ramdas, Journal of the Royal Statistical Society B 84, 2022).
However the functions depend on each other, if no share differs, it names any in at most one run of 20.
"""

from __future__ import annotations

import math
from typing import List, Mapping, NamedTuple, Sequence, Tuple

from ...module_utils._prove.statistics.evidence import NEEDED, path
from ...module_utils._prove.statistics.interval import estimate

LEAST_SHARE = 0.005  # in the mean over both states: what takes less isn't judged, nor counted among the functions


class Profile(NamedTuple):
    samples: int
    shares: Mapping[str, float]  # function → the share of the samples that it, or what it called, was in


class Frame(NamedTuple):
    """A function in both states."""

    name: str
    untuned: float  # the mean share
    tuned: float
    evidence: float  # to 1, that the share differs
    moved: int  # 1: a larger share when tuned, -1: a smaller one, 0: no evidence that is strong enough


def frames(pairs: Sequence[Tuple[Profile, Profile]]) -> List[Frame]:
    """The functions above LEAST_SHARE, untuned and tuned, those with most evidence first.

    Which are judged depends on neither the coin nor the state.
    """
    pairs = [pair for pair in pairs if pair[0].samples and pair[1].samples]
    found = []
    for name in sorted({name for pair in pairs for profile in pair for name in profile.shares}):
        shares = [(untuned.shares.get(name, 0.0), tuned.shares.get(name, 0.0)) for untuned, tuned in pairs]
        means = [sum(of_state) / len(pairs) for of_state in zip(*shares)]
        if sum(means) / 2 < LEAST_SHARE:
            continue
        differences = [
            # As if one sample more had hit the function in each, so that a share may be nothing.
            math.log((after + one) / (before + one))
            for (before, after), one in zip(shares, (1 / min(a.samples, b.samples) for a, b in pairs))
        ]
        evidence = path(differences)[-1]
        moved = 1 if estimate(differences) > 0 else -1
        found.append(Frame(name, means[0], means[1], evidence.above + evidence.below, moved))
    found.sort(key=lambda frame: (-frame.evidence, frame.name))
    chosen = max(
        (rank for rank, frame in enumerate(found, 1) if frame.evidence >= NEEDED * len(found) / rank), default=0
    )
    return [frame if rank < chosen else frame._replace(moved=0) for rank, frame in enumerate(found)]
