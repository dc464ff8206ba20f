# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How strongly differences speak for an effect: an e-process that may be looked at after every pair.

Pure. PRIVATE to the collection.

A difference d is ln(tuned / untuned) of one pair. If the tuning changes nothing, our coin alone decided its sign, so
exp(x d) / cosh(x d) has the mean 1 for every x, whatever the noise is; so has the product over all pairs, and the mean
of such products. A process like that exceeds 20 in at most one run of 20, at whichever moments it is looked at:
Ville's inequality (1939); for this process de la Peña, Annals of Probability 27 (1999); for stopping at will Howard,
Ramdas, McAuliffe and Sekhon, Probability Surveys 17 (2020). Subtracting a shift from each difference first tests
"the tuning changes the metric by exp(shift)" in place of "nothing".
"""

from __future__ import annotations

import math
from typing import List, NamedTuple, Sequence

COARSE = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)  # what is wagered on differences from 20 % to 0.6 %
LAMBDAS = (0.6, 1.25, 2.5, *COARSE)  # and on those up to 160 %, which loads that differ by a tenth and more need
NEEDED = 20.0  # 5 % of runs without effect may end in a verdict of one


class Evidence(NamedTuple):
    """What speaks for an effect above the shift, and for one below it, to 1.

    Each begins at 1/2 and grows no faster than twofold a pair. Their sum is the two-sided process over plus and minus
    the wagers; as each falls or rises with the shift throughout, a verdict can't contradict the interval.
    """

    above: float
    below: float


def path(
    differences: Sequence[float], shift: float = 0.0, wagers: Sequence[float] = LAMBDAS, most: float = math.inf
) -> List[Evidence]:
    """The evidence after each pair; one that is further than `most` from the shift counts as if it were that far.

    A product that falls to zero for a computer could not recover: it would take more than 1000 pairs.
    """
    above = [1 / (2 * len(wagers))] * len(wagers)
    below = list(above)
    evidence = []
    for difference in differences:
        distance = min(abs(difference - shift), most)
        winners, losers = (above, below) if difference > shift else (below, above)
        for index, strength in enumerate(wagers):
            # exp(w) / cosh(w) is 2 / (1 + exp(-2 w)), and of -w it is exp(-2 w) times that.
            ratio = math.exp(-2 * strength * distance)
            factor = 2 / (1 + ratio)
            winners[index] *= factor
            losers[index] *= factor * ratio
        evidence.append(Evidence(sum(above), sum(below)))
    return evidence


def peak(
    differences: Sequence[float], shift: float = 0.0, wagers: Sequence[float] = LAMBDAS, most: float = math.inf
) -> Evidence:
    """The highest evidence that each side ever reached."""
    steps = [Evidence(0.5, 0.5), *path(differences, shift, wagers, most)]
    return Evidence(max(step.above for step in steps), max(step.below for step in steps))
