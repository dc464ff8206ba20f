# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
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

LAMBDAS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)  # what is wagered on differences from 20 % to 0.6 %
NEEDED = 20.0  # 5 % of runs without effect may end in a verdict of one

_LOG_WEIGHT = -math.log(2 * len(LAMBDAS))
_LOG_2 = math.log(2.0)


class Evidence(NamedTuple):
    """Logarithms of what speaks for an effect above the shift, and for one below it.

    Each begins at 1/2 and grows no faster than twofold a pair. Their sum is the two-sided process over plus and minus
    LAMBDAS; as each falls or rises with the shift throughout, a verdict can't contradict the interval.
    """

    above: float
    below: float


def path(differences: Sequence[float], shift: float = 0.0) -> List[Evidence]:
    """The evidence after each pair."""
    above = [_LOG_WEIGHT] * len(LAMBDAS)
    below = list(above)
    found = []
    for difference in differences:
        for index, strength in enumerate(LAMBDAS):
            wager = strength * (difference - shift)
            winning = _log_factor(abs(wager))
            losing = winning - 2 * abs(wager)
            above[index] += winning if wager > 0 else losing
            below[index] += losing if wager > 0 else winning
        found.append(Evidence(_log_sum(above), _log_sum(below)))
    return found


def most(differences: Sequence[float], shift: float = 0.0) -> Evidence:
    """The most that each side ever reached."""
    steps = path(differences, shift)
    beginning = -_LOG_2
    return Evidence(
        max((step.above for step in steps), default=beginning), max((step.below for step in steps), default=beginning)
    )


def p_value(differences: Sequence[float]) -> float:
    """The probability, at most, of so much evidence on either side if the tuning changes nothing; at any moment."""
    sides = most(differences)
    return min(1.0, math.exp(-max(sides)))


def _log_factor(wager: float) -> float:
    """ln(exp(w) / cosh(w)), which is ln 2 - ln(1 + exp(-2 w)), of w above zero; of -w it is 2 w less."""
    return _LOG_2 - math.log1p(math.exp(-2 * wager))


def _log_sum(logs: Sequence[float]) -> float:
    largest = max(logs)
    return largest + math.log(sum(math.exp(value - largest) for value in logs))
