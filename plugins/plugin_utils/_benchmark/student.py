# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Student's t for whole degrees of freedom. Pure. PRIVATE to the collection.

The finite series are those of Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
"""

from __future__ import annotations

import math

_HALVINGS = 200  # of an interval of doubles: more change nothing


def tail_probability(distance: float, degrees: int) -> float:
    """The probability that t lies farther from zero than `distance`, on either side."""
    if math.isinf(distance):
        return 0.0
    angle = math.atan(abs(distance) / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for number in range(2 + odd, degrees - 1, 2):
        term *= cosine**2 * (number - 1) / number
        total += term
    within = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(1.0, max(0.0, 1 - within))


def quantile(probability: float, degrees: int) -> float:
    """The distance from zero beyond which t lies with this probability, on both sides together."""
    low, high = 0.0, 1.0
    while tail_probability(high, degrees) > probability:
        high *= 2
    for _halving in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if tail_probability(middle, degrees) > probability else (low, middle)
    return high
